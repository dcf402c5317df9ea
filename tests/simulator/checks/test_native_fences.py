"""Machine code follows what fences with atomics and volatile accesses put in order, with the findings of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.checks.reports import assert_native, of_both, run_natively
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# Tell the last block, the threads of the last warp, and the last thread that count.
LAST = r"""
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
    LAST
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


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "sum_once": (None, None, None),
    "chain": (None, None, None),
    "locks": (None, None),
    "steps": (None, None, None, 3),
    # Ordered accesses release and acquire.
    "hand_over": (None, None, None),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_fences_put_in_order_runs_in_machine_code(kernels: Kernels, name: str) -> None:
    """The last block that reads what all have stored, flags from block to block, locks, and barriers of the grid."""
    assert of_both(kernels, name, 4, 96, *ARGUMENTS[name]) == []
    assert_native(kernels, name)


@pytest.mark.parametrize("name", ["sum_once", "chain", "locks", "steps"])
def test_what_no_fence_puts_in_order_is_found_in_the_same_words(kernels: Kernels, name: str) -> None:
    for how in ("no_fence", "fence_of_the_block", "fence_too_late"):
        texts = of_both(kernels, f"{name}_{how}", 4, 96, *ARGUMENTS[name])
        # For the NumPy engine a chain's late fence is followed by a release of all that has happened.
        assert texts or (name, how) == ("chain", "fence_too_late"), how


def test_barriers_of_the_grid_put_blocks_in_order(kernels: Kernels) -> None:
    run_natively(kernels, "whole_grid", 4, 96, kernels.zeros(512), kernels.zeros(512), 4, cooperative=True)


def test_the_last_of_many_blocks_reads_what_all_have_stored(kernels: Kernels) -> None:
    total, data, count = kernels.zeros(1), kernels.zeros(100 * 96), kernels.zeros(1)
    run_natively(kernels, "many_blocks", 100, 96, total, data, count)
    assert kernels.get(total, 1)[0] == np.arange(9600).sum()
