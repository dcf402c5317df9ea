"""Random kernels race exactly if, between two barriers, one thread writes a word that another thread accesses.

The tests compute the words that each thread accesses without the simulator. `tests.fuzz.random_races` also has barriers
of warps, several blocks, vectors, bytes, atomics, and accesses by some of the threads.
"""

import random

import numpy as np
import pytest

import cudart_py as cuda
from tests.fuzz import random_races
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE

THREADS = WORDS = 96


def random_kernel(number: int, space: str) -> tuple[str, bool]:
    """Return a kernel that reads and writes words, and whether it has a race."""
    generator = random.Random(f"{space} {number}")
    steps, races = [], False
    readers: dict[int, set[int]] = {}
    writers: dict[int, set[int]] = {}
    for step in range(generator.randrange(2, 6)):
        kind = generator.choice(["barrier", "read", "read", "read", "write"])
        if kind == "barrier":
            steps.append("__syncthreads();")
            readers.clear()
            writers.clear()
            continue
        shift = generator.choice([0, 0, 1, 32]) if kind == "read" else generator.choice([0, 0, 0, 33])
        word = f"words[(t + {shift}) % {WORDS}]"
        steps.append(f"sum += {word};" if kind == "read" else f"{word} = sum + {step} * {THREADS} + t;")
        for thread in range(THREADS):
            touched = readers if kind == "read" else writers
            touched.setdefault((thread + shift) % WORDS, set()).add(thread)
        races |= any(len(threads | readers.get(word, set())) > 1 for word, threads in writers.items())
    declared = f"__shared__ unsigned words[{WORDS}]; words[t] = 1000 * t;" if space == "shared" else ""
    # The read at the end keeps the compiler from eliminating the stores.
    body = "\n    ".join([declared, "__syncthreads();", *steps, "__syncthreads();", "out[t] = sum + words[t];"])
    parameter = "words" if space == "global" else "unused"
    head = f'extern "C" __global__ void k{number}(unsigned* {parameter}, unsigned* out)'
    return f"{head} {{\n    unsigned t = threadIdx.x, sum = 0;\n    {body}\n}}", races


# Compiling to machine code takes most of the time, so the native engine runs fewer kernels by default.
@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(
    ("engine", "numbers"),
    [
        ("numpy", range(30)),
        ("native", range(8)),
        pytest.param("numpy", range(100, 140), marks=pytest.mark.exhaustive),
        pytest.param("native", range(100, 124), marks=pytest.mark.exhaustive),
    ],
    indirect=["engine"],
    ids=str,
)
def test_threads_race_where_a_word_that_one_writes_is_anothers_too(engine: str, numbers: range, space: str) -> None:
    made = [random_kernel(number, space) for number in numbers]
    module = cuda.compile("\n".join(source for source, _ in made))
    words, out = cuda.to_device(np.arange(WORDS, dtype=np.uint32)), cuda.empty(THREADS, np.uint32)
    for number, (source, races) in zip(numbers, made, strict=True):
        texts = found(lambda number=number: module[f"k{number}"][1, THREADS](words, out))
        assert all("race: " in text for text in texts), texts
        assert bool(texts) is races, source
    assert 0 < sum(races for _, races in made) < len(made)


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(
    ("engine", "seed", "count"),
    [
        ("numpy", 1, 75),
        ("native", 1, 10),
        pytest.param("numpy", 2, 500, marks=pytest.mark.exhaustive),
        pytest.param("native", 2, 50, marks=pytest.mark.exhaustive),
    ],
    indirect=["engine"],
    ids=str,
)
@pytest.mark.usefixtures("engine")
def test_threads_race_if_a_comparison_of_all_their_accesses_says_so(seed: int, count: int, space: str) -> None:
    for first in range(0, count, random_races.BATCH):
        numbers = range(first, min(first + random_races.BATCH, count))
        made = [random_races.make(seed, number, space) for number in numbers]
        wrong = [(kernel.source, texts) for kernel, texts in random_races.mistakes(made)]
        assert not wrong, wrong
