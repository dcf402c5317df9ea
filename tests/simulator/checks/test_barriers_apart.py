"""Threads of a block that wait at different barriers in the code are reported alike by both engines."""

import numpy as np
import pytest

from tests.simulator.checks.reports import of_both, run_natively
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import engine as native_engine

SOURCE = """
#define BEGIN int t = threadIdx.x, i = blockIdx.x * blockDim.x + t
__device__ __noinline__ void meet(int* p) {
    *p += 1;
    __syncthreads();
    *p += 2;
}
extern "C" __global__ void three_ways(int* out) {
    BEGIN;
    if (t >= 64) {
        __syncthreads();
        out[i] = 1;
    } else if (t >= 32 || blockIdx.x == 0) {
        __syncthreads();
        out[i] = 2;
    } else {
        meet(out + i);
    }
}
extern "C" __global__ void several_phases(int* out) {
    BEGIN;
    if (t < 32) {
        out[i] += 59;
        meet(out + i);
    } else {
        out[i] += 88;
        __syncthreads();
        meet(out + i);
        if (t % 3) __syncthreads();
        __syncthreads();
    }
    __syncthreads();
}
extern "C" __global__ void backwards(int* out) {
    BEGIN;
    __syncthreads();
    for (int k = 0; k < 1 + (t >= 32); k++)
        for (int l = 0; l < 2; l++) {
            __syncthreads();
            if (i % 3 == 0) {
                __syncthreads();
                meet(out + i);
            }
        }
}
extern "C" __global__ void named(int* out) {
    BEGIN;
    __shared__ int s[96];
    s[t] = i;
    if (t < 32) {
        asm volatile("barrier.sync 1;" ::: "memory");
        out[i] = s[t + 32];
    } else {
        asm volatile("barrier.sync 1;" ::: "memory");
        out[i] = s[t - 32];
    }
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("grid", "block"), [(1, 96), (5, 64), (2, 48)])
@pytest.mark.parametrize("name", ["three_ways", "several_phases"])
def test_barriers_apart_are_reported_by_machine_code(kernels, monkeypatch, name, grid, block, threads):
    monkeypatch.setattr(native_engine, "_WORTH_THREAD", 1)
    kernels.threads = threads
    texts = of_both(kernels, name, grid, block, np.zeros(grid * block, np.int32))
    assert texts
    assert all("other threads of the block wait at" in text for text in texts)
    assert not any(kernel.recorded.doubts for kernel in kernels.program(name).native.values())


def test_lanes_that_branch_backwards_arrive_in_an_order_that_only_numpy_knows(kernels: Kernels) -> None:
    assert of_both(kernels, "backwards", 2, 64, np.zeros(128, np.int32))


def test_a_named_barrier_may_be_in_several_places(kernels: Kernels) -> None:
    run_natively(kernels, "named", 3, 64, np.zeros(192, np.int32))
