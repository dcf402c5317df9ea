"""Threads of a block that wait at different barriers in the code are reported alike by both engines."""

import re

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.checks.reports import of_both, run_natively
from tests.simulator.ptx.machine import HEAD, Kernels

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
extern "C" __global__ void some_miss_it(int* out) {
    BEGIN;
    if (t < 40) {
        out[i] = 1;
        __syncthreads();
        out[i] += 2;
    }
    if (t % 2) out[i] += 3;
    out[i] += 4;
}
extern "C" __global__ void unequal_loop(int* out) {
    BEGIN;
    for (int k = 0; k < (t < 32 ? 2 : 1); k++) {
        out[i] += k;
        __syncthreads();
    }
    for (int k = 0; k < blockIdx.x + 2; k++) out[i] += 7 * k + t;
}
extern "C" __global__ void call_unequally(int* out) {
    BEGIN;
    if (t < 35) meet(out + i);
    out[i] += 4;
}
extern "C" __global__ void different_ones_in_two_blocks(int* out) {
    BEGIN;
    if (t < 8) {
        out[i] = 5;
        if (blockIdx.x == 1) {
            __syncthreads();
            out[i] += 1;
        }
        __syncthreads();
    }
    out[i] += 4;
}
extern "C" __global__ void others_come_later(int* out) {
    BEGIN;
    if (t >= 32) __syncthreads();
    out[i] += 4;
}
extern "C" __global__ void leave_before(int* out) {
    BEGIN;
    if (t < 8) {
        out[i] = 5;
        return;
    }
    if (t < 40) __syncthreads();
    out[i] += 4;
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

# Some threads of the first warp wait. Its others and the second warp go past the barrier to different blocks, of which
# that of the second warp comes first in the code.
TWO_WAYS = """.visible .entry two_ways(.param .u64 out) {
    .reg .b32 i; .reg .b64 at; .reg .pred waits, second;
    ld.param.u64 at, [out];
    mov.u32 i, %tid.x; mad.wide.u32 at, i, 4, at;
    setp.lt.u32 waits, i, 8; setp.ge.u32 second, i, 32;
    @!waits bra past;
    bar.sync 0;
past:
    @!second bra others;
    st.global.u32 [at], 3; bra end;
others:
    st.global.u32 [at], 2;
end:
    ret;
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


# The lines of barriers, and those where a thread is that has gone past them.
PAST = [("some_miss_it", 38, 41), ("unequal_loop", 48, 50), ("call_unequally", 5, 55), ("leave_before", 80, 81)]


@pytest.mark.parametrize(("grid", "block"), [(1, 96), (5, 64), (2, 48)])
@pytest.mark.parametrize(("name", "barrier", "here"), PAST)
def test_a_barrier_that_threads_go_past_is_reported_by_machine_code(kernels, name, barrier, here, grid, block):
    (text,) = of_both(kernels, name, grid, block, np.zeros(grid * block, np.int32))
    place = rf"this thread is at \S+:{here}, from which it does not reach it"
    assert re.search(rf":{barrier}: divergent barrier: .* {place}", text)
    assert not any(kernel.recorded.doubts for kernel in kernels.program(name).native.values())


def test_each_barrier_that_threads_of_some_block_go_past_is_reported(kernels: Kernels) -> None:
    texts = of_both(kernels, "different_ones_in_two_blocks", 2, 64, np.zeros(128, np.int32))
    assert {"block (0, 0, 0)" in text for text in texts} == {True, False}


@pytest.mark.parametrize("name", ["backwards", "others_come_later"])
def test_what_only_numpy_knows_is_found_by_running_again(kernels: Kernels, name: str) -> None:
    assert of_both(kernels, name, 2, 64, np.zeros(128, np.int32))


def test_the_thread_that_numpy_finds_past_a_barrier_is_reported() -> None:
    (text,) = of_both(Kernels(load_module(HEAD + TWO_WAYS)), "two_ways", 1, 64, np.zeros(64, np.int32))
    assert "thread (32, 0, 0)" in text


def test_a_named_barrier_may_be_in_several_places(kernels: Kernels) -> None:
    run_natively(kernels, "named", 3, 64, np.zeros(192, np.int32))
