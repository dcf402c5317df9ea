"""Atomics of block scope are atomic for the threads of their own block alone; each mistake beside a correct program."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, compiled, found

pytestmark = [*WRONG_ON_PURPOSE, pytest.mark.usefixtures("engine")]

BLOCKS, THREADS = 4, 64
# The kernels, and the same where it is right.
WRONG, RIGHT = (
    re.findall(r"KERNEL\((\w+)\) \{", half)
    for half in (FOLDER / "scopes.cuh").read_text().split("// The same where it is right.")
)


def launches(kernel: Any, blocks: int = BLOCKS, times: int = 1) -> list[str]:
    x, y = cuda.zeros(64, np.int32), cuda.zeros(BLOCKS * THREADS, np.int32)
    return found(lambda: [kernel[blocks, THREADS](x, y) for _ in range(times)])


@pytest.mark.parametrize("name", WRONG)
def test_blocks_that_meet_in_a_block_scoped_atomic_race(name: str) -> None:
    texts = launches(compiled("synchronisation.cu")[name])
    assert texts
    assert all("race: " in text and "block scope" in text for text in texts), texts
    # One block alone does not race, and launches end in order.
    assert launches(compiled("synchronisation.cu")[name], blocks=1, times=2) == []


@pytest.mark.parametrize("name", RIGHT)
def test_wider_scopes_and_words_of_one_block_are_no_race(name: str) -> None:
    assert launches(compiled("synchronisation.cu")[name]) == []


def test_launches_of_two_streams_race_at_a_block_scoped_atomic() -> None:
    x, y = cuda.zeros(64, np.int32), cuda.zeros(THREADS, np.int32)
    streams = [cuda.Stream(non_blocking=True) for _ in range(2)]

    def launch(ordered: bool) -> None:
        for stream in streams:
            compiled("synchronisation.cu")["own_words"][1, THREADS, 0, stream](x, y)
            if ordered:
                streams[1].wait(streams[0])

    cuda.current_device().synchronize()
    assert found(launch, True) == []
    (text,) = found(launch, False)
    assert "block scope" in text
    assert "in another stream" in text


def random_kernel(number: int) -> tuple[str, bool]:
    """Return a kernel of a few atomics, and whether threads of different blocks meet where one has block scope."""
    generator = random.Random(number)
    steps = []
    touched: dict[int, set[tuple[int, bool]]] = {}
    for _ in range(generator.randrange(1, 5)):
        scoped, factor, shift = generator.random() < 0.4, generator.choice([0, 1, 1, 2]), generator.randrange(3)
        only = generator.choice([-1, *range(BLOCKS)])
        own = generator.random() < 0.6
        place = f"{BLOCKS} * ((t * {factor} + {shift}) % 16)" + (" + b" if own else "")
        guard = "" if only < 0 else f"if (b == {only}) "
        steps.append(f"{guard}atomicAdd{'_block' * scoped}(&x[{place}], 1);")
        for block in range(BLOCKS) if only < 0 else [only]:
            for thread in range(THREADS):
                word = BLOCKS * ((thread * factor + shift) % 16) + (block if own else 0)
                touched.setdefault(word, set()).add((block, scoped))
    races = any(scoped and len({other for other, _ in words}) > 1 for words in touched.values() for _, scoped in words)
    body = "\n    ".join(steps)
    return f"KERNEL(random{number}) {{\n    int t = threadIdx.x, b = blockIdx.x;\n    {body}\n}}", races


@pytest.mark.parametrize("numbers", [range(10, 18), pytest.param(range(40), marks=pytest.mark.exhaustive)])
def test_random_atomics_race_where_blocks_meet_in_block_scope(numbers: range) -> None:
    made = [random_kernel(number) for number in numbers]
    head = 'extern "C" __global__ void NAME(int* x, int* y)'
    module = cuda.compile("\n".join([f"#define KERNEL(NAME) {head}", *(source for source, _ in made)]))
    for number, (source, races) in zip(numbers, made, strict=True):
        assert bool(launches(module[f"random{number}"])) is races, source
    assert 0 < sum(races for _, races in made) < len(made)
