"""Atomics of block scope are atomic for the threads of their own block alone; each mistake beside a correct program."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found, reports

pytestmark = WRONG_ON_PURPOSE

BLOCKS, THREADS = 4, 64
SOURCE = """
#include <cuda/atomic>
using OfBlock = cuda::atomic_ref<int, cuda::thread_scope_block>;
using OfDevice = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ bool first() { return threadIdx.x == 0; }

#define KERNEL(NAME) extern "C" __global__ void NAME(int* x, int* y)
// Several blocks at one word, at least one with block scope.
KERNEL(adds) { atomicAdd_block(x, 1); }
KERNEL(results) { y[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd_block(x, 1); }
KERNEL(one_thread_each) { if (first()) atomicExch_block(x, blockIdx.x + 1); }
KERNEL(swaps) { atomicCAS_block(x, threadIdx.x, blockIdx.x); }
KERNEL(references) { OfBlock(*x).fetch_add(1, cuda::memory_order_relaxed); }
KERNEL(stores) { if (first()) OfBlock(*x).store(blockIdx.x + 7, cuda::memory_order_relaxed); }
KERNEL(mixed) { if (blockIdx.x % 2) atomicAdd(x, 1); else atomicAdd_block(x, 1); }
KERNEL(mixed_the_other_way) { if (blockIdx.x % 2) atomicAdd_block(x, 1); else atomicAdd(x, 1); }
KERNEL(mixed_references) {
    if (blockIdx.x == 0) OfBlock(*x).fetch_add(1, cuda::memory_order_relaxed);
    else OfDevice(*x).fetch_add(1, cuda::memory_order_relaxed);
}
KERNEL(block_then_device) { atomicAdd_block(x, 1); __syncthreads(); if (first()) atomicAdd(x, 1); }
KERNEL(loads) {
    if (blockIdx.x == 0 && first()) y[0] = OfBlock(*x).load(cuda::memory_order_relaxed);
    else if (first()) atomicAdd(x, 1);
}
KERNEL(scattered) { atomicAdd_block(&x[(threadIdx.x * 7 + blockIdx.x) % 64], 1); }
// The same where it is right.
KERNEL(device_adds) { atomicAdd(x, 1); }
KERNEL(system_adds) { atomicAdd_system(x, 1); }
KERNEL(device_and_system) { if (blockIdx.x % 2) atomicAdd(x, 1); else atomicAdd_system(x, 1); }
KERNEL(own_words) { atomicAdd_block(&x[blockIdx.x], 1); }
KERNEL(own_references) { OfBlock(x[blockIdx.x]).fetch_add(1, cuda::memory_order_relaxed); }
KERNEL(own_words_of_both_scopes) { atomicAdd_block(&x[blockIdx.x], 1); atomicAdd(&x[blockIdx.x], 1); }
KERNEL(own_loads) {
    OfBlock mine(x[blockIdx.x]);
    if (first()) mine.store(1, cuda::memory_order_relaxed);
    y[blockIdx.x * blockDim.x + threadIdx.x] = mine.load(cuda::memory_order_relaxed);
}
KERNEL(shared) {
    __shared__ int sum;
    if (first()) sum = 0;
    __syncthreads();
    atomicAdd_block(&sum, 1);
    OfBlock(sum).fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();
    if (first()) y[blockIdx.x] = sum;
}
KERNEL(handed_on) {
    // Each block adds when the block before it has published that it is done.
    if (first()) while (atomicAdd(y, 0) != blockIdx.x) __nanosleep(1000);
    __threadfence();
    __syncthreads();
    atomicAdd_block(x, 1);
    __threadfence();
    __syncthreads();
    if (first()) atomicAdd(y, 1);
}
KERNEL(last_block_sums) {
    __shared__ bool last;
    atomicAdd_block(&x[blockIdx.x], 1);
    __threadfence();
    __syncthreads();
    if (first()) last = atomicAdd(y, 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    if (last) atomicAdd_block(&x[threadIdx.x % gridDim.x], 1);
}
"""
WRONG = [
    "adds", "results", "one_thread_each", "swaps", "references", "stores", "mixed", "mixed_the_other_way",
    "mixed_references", "block_then_device", "loads", "scattered",
]  # fmt: skip  # in the order of the source
RIGHT = [
    "device_adds", "system_adds", "device_and_system", "own_words", "own_references", "own_words_of_both_scopes",
    "own_loads", "shared", "handed_on", "last_block_sums",
]  # fmt: skip  # in the order of the source


@pytest.fixture(scope="module")
def module() -> Any:
    with cuda.Device(0):
        return cuda.compile(SOURCE)


@pytest.fixture(params=["numpy", "native"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)


def launches(kernel: Any, blocks: int = BLOCKS, times: int = 1) -> list[str]:
    """Return what the checks find in launches of a kernel on fresh memory, in one stream."""
    x, y = cuda.zeros(64, np.int32), cuda.zeros(BLOCKS * THREADS, np.int32)
    with reports() as texts:
        for _ in range(times):
            kernel[blocks, THREADS](x, y)
    return texts


@pytest.mark.parametrize("name", WRONG)
def test_blocks_that_meet_in_a_block_scoped_atomic_race(module: Any, name: str) -> None:
    texts = launches(module[name])
    assert texts
    assert all("race: " in text and "block scope" in text for text in texts), texts
    # One block alone does not race, and launches end in order.
    assert launches(module[name], blocks=1, times=2) == []


@pytest.mark.parametrize("name", RIGHT)
def test_wider_scopes_and_words_of_one_block_are_no_race(module: Any, name: str) -> None:
    assert launches(module[name]) == []


def test_launches_of_two_streams_race_at_a_block_scoped_atomic(module: Any) -> None:
    x, y = cuda.zeros(64, np.int32), cuda.zeros(THREADS, np.int32)
    streams = [cuda.Stream(non_blocking=True) for _ in range(2)]

    def launch(ordered: bool) -> None:
        for stream in streams:
            module["own_words"][1, THREADS, 0, stream](x, y)
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


# Machine code of each takes a third of a second to compile.
@pytest.mark.parametrize("numbers", [range(10, 18), pytest.param(range(40), marks=pytest.mark.exhaustive)])
def test_random_atomics_race_where_blocks_meet_in_block_scope(numbers: range) -> None:
    made = [random_kernel(number) for number in numbers]
    head = 'extern "C" __global__ void NAME(int* x, int* y)'
    module = cuda.compile("\n".join([f"#define KERNEL(NAME) {head}", *(source for source, _ in made)]))
    for number, (source, races) in zip(numbers, made, strict=True):
        assert bool(launches(module[f"random{number}"])) is races, source
    assert 0 < sum(races for _, races in made) < len(made)
