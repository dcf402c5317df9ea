"""Machine code follows what fences with atomics and volatile accesses put in order, with the findings of NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from tests.simulator.checks.test_native import checked, found, random_kernel
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# What threads of the random kernels do, as in `test_native`. Each counter counts blocks, warps or threads of one step.
STEPS = {
    "__threadfence();": 14, "if (t == 0) __threadfence();": 5, "if (t % 32 == 0) __threadfence();": 3,
    "__syncthreads();": 12, "__syncwarp();": 6, "g[Y] = v;": 10, "v += g[Y];": 7, "s[X] = v;": 3, "v += s[X];": 3,
    "if (last_block(C)) v += g[Y];": 8, "if (last_warp(C + 1)) v += g[Y];": 6, "if (last_thread(C + 2)) v += g[Y];": 5,
    "if (last_block(C + 3)) g[Y] = v;": 3, "atomicAdd(C + 4, 1);": 3, "*(volatile int*)(C + 5 + blockIdx.x) = 1;": 4,
    "if (*(volatile int*)(C + 5 + blockIdx.x / 2)) v += g[Y];": 5, "__threadfence_block();": 2,
}  # fmt: skip  # rows of a table
FUNCTIONS = r"""
#define C ((int*)h + 500)
__device__ bool last_block(int* count) {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    bool is_last = last;
    __syncthreads();
    return is_last;
}
__device__ bool last_warp(int* count) {
    int before = 0;
    if (threadIdx.x % 32 == 0) before = atomicAdd(count, 1);
    return __shfl_sync(-1u, before, 0) == gridDim.x * blockDim.x / 32 - 1;
}
__device__ bool last_thread(int* count) { return atomicAdd(count, 1) == gridDim.x * blockDim.x - 1; }
"""

SOURCE = (
    FUNCTIONS.replace("#define C ((int*)h + 500)", "")
    + r"""
enum { RIGHT, NO_FENCE, FENCE_OF_THE_BLOCK, FENCE_TOO_LATE };
template <int how> __device__ void fence() {
    if (how == FENCE_OF_THE_BLOCK) __threadfence_block();
    if (how == RIGHT) __threadfence();
}
template <int how> __device__ void sum_once(int* total, int* sums, int* count) {
    int t = threadIdx.x;
    __shared__ bool last;
    if (t == 0) {
        sums[blockIdx.x] = blockIdx.x;
        fence<how>();
        last = atomicInc((unsigned*)count, gridDim.x - 1) == gridDim.x - 1;
        if (how == FENCE_TOO_LATE) __threadfence();
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int i = t; i < gridDim.x; i += blockDim.x) atomicAdd(total, __ldcg(sums + i));
}
template <int how> __device__ void chain(int* sums, int* data, int* flags) {
    int t = threadIdx.x, b = blockIdx.x;
    data[b * blockDim.x + t] = t;
    fence<how>();
    __syncthreads();
    if (t < 32 && b > 0) while (*(volatile int*)(flags + b - 1) == 0) {}
    __syncthreads();
    int before = b > 0 ? data[b * blockDim.x - 1 - t] : 0;
    if (t == 0) sums[b] = (b > 0 ? sums[b - 1] : 0) + 1;
    if (how == FENCE_TOO_LATE) __syncthreads();
    if (t == 0) fence<how>();
    if (t == 0) *(volatile int*)(flags + b) = 1;
    if (how == FENCE_TOO_LATE) __threadfence();
    atomicAdd(&flags[64], before);
}
template <int how> __device__ void locks(int* data, int* lock) {
    for (bool done = false; !done;)
        if (atomicCAS(lock + threadIdx.x % 4, 0, 1) == 0) {
            fence<how>();
            data[threadIdx.x % 4] += 1;
            fence<how>();
            atomicExch(lock + threadIdx.x % 4, 0);
            if (how == FENCE_TOO_LATE) __threadfence();
            done = true;
        }
}
template <int how> __device__ void steps(float* x, float* y, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    for (int k = 0; k < n; k++) {
        y[i] = x[(i + blockDim.x) % all] + k;
        __syncthreads();
        if (threadIdx.x == 0) {
            fence<how>();
            atomicAdd(count, 1);
            while (*(volatile int*)count < (k + 1) * gridDim.x) {}
            fence<how>();
        }
        __syncthreads();
        float* other = x;
        x = y;
        y = other;
    }
}
#define ALL(HOW, NAME)                                                                                              \
    extern "C" __global__ void sum_once##NAME(int* a, int* b, int* c) { sum_once<HOW>(a, b, c); }                   \
    extern "C" __global__ void chain##NAME(int* a, int* b, int* c) { chain<HOW>(a, b, c); }                         \
    extern "C" __global__ void locks##NAME(int* a, int* b) { locks<HOW>(a, b); }                                    \
    extern "C" __global__ void steps##NAME(float* a, float* b, int* c, int n) { steps<HOW>(a, b, c, n); }
ALL(RIGHT, )
ALL(NO_FENCE, _no_fence)
ALL(FENCE_OF_THE_BLOCK, _fence_of_the_block)
ALL(FENCE_TOO_LATE, _fence_too_late)

#include <cuda/atomic>
extern "C" __global__ void hand_over(int* out, int* data, int* flag) {
    using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        __syncthreads();
        if (t == 0) Flag(*flag).store(1, cuda::memory_order_release);
    } else {
        if (t == 0) while (!Flag(*flag).load(cuda::memory_order_acquire)) {}
        __syncthreads();
        out[blockIdx.x * blockDim.x + t] = data[t ^ 5];
    }
}
#include <cooperative_groups.h>
extern "C" __global__ void whole_grid(float* a, float* b, int n) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    for (int k = 0; k < n; k++) {
        b[i] = a[(i + blockDim.x) % grid.size()] + i;
        grid.sync();
        float* other = a;
        a = b;
        b = other;
    }
}
extern "C" __global__ void many_blocks(int* sum, int* data, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = i;
    __threadfence();
    __syncthreads();
    if (last_block(count))
        for (int k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x) atomicAdd(sum, data[k]);
}
"""
)


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def of_both(kernels: Kernels, name: str, *arguments: Any) -> list[str]:
    """Return the findings of a launch on zeros, which are the same with both engines."""
    texts = {}
    for engine in ("numpy", "native"):
        kernels.engine = engine
        findings.pending.clear()
        given = [kernels.zeros(512) if argument is None else argument for argument in arguments]
        kernels.launch(name, 4, 96, *given, observer=LaunchChecks())
        texts[engine] = [re.sub("0x[0-9a-f]+", "", text) for text in map(str, findings.pending)]
        findings.pending.clear()
    assert texts["native"] == texts["numpy"]
    return texts["numpy"]


CASES = {
    "sum_once": (None, None, None),
    "chain": (None, None, None),
    "locks": (None, None),
    "steps": (None, None, None, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_what_fences_put_in_order_runs_in_machine_code(kernels: Kernels, name: str) -> None:
    """The last block that reads what all have stored, flags from block to block, locks, and barriers of the grid."""
    given = [kernels.zeros(512) if argument is None else argument for argument in CASES[name]]
    assert checked(kernels, name, *given, block=96)
    assert of_both(kernels, name, *CASES[name]) == []


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["no_fence", "fence_of_the_block", "fence_too_late"])
def test_what_no_fence_puts_in_order_is_found_in_the_same_words(kernels: Kernels, name: str, how: str) -> None:
    # For the NumPy engine a chain's late fence is followed by a release of all that has happened.
    assert of_both(kernels, f"{name}_{how}", *CASES[name]) or (name, how) == ("chain", "fence_too_late")


def test_ordered_accesses_release_and_acquire(kernels: Kernels) -> None:
    assert checked(kernels, "hand_over", *(kernels.zeros(512) for _ in range(3)), grid=4, block=96)
    assert of_both(kernels, "hand_over", None, None, None) == []


def test_barriers_of_the_grid_put_blocks_in_order(kernels: Kernels) -> None:
    assert checked(kernels, "whole_grid", kernels.zeros(512), kernels.zeros(512), 4, block=96, cooperative=True)


def test_the_last_of_many_blocks_reads_what_all_have_stored(kernels: Kernels) -> None:
    total, data, count = kernels.zeros(1), kernels.zeros(100 * 96), kernels.zeros(1)
    assert checked(kernels, "many_blocks", total, data, count, grid=100, block=96)
    assert kernels.get(total, 1)[0] == np.arange(9600).sum()


def test_random_fences_have_the_same_findings() -> None:
    numbers = range(40)
    kernels = Kernels(FUNCTIONS + "".join(random_kernel(number, STEPS) for number in numbers))
    some = 0
    for number in numbers:
        expected, _ = found(kernels, "numpy", f"k{number}", 2 * number)
        texts, _ = found(kernels, "native", f"k{number}", 2 * number)
        assert texts == expected, random_kernel(number, STEPS)
        some += bool(texts)
    assert 0 < some < len(numbers)
