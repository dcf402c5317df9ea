"""Lanes that wait for one another, however they stand, all get on."""

from __future__ import annotations

import pytest

from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern "C" __global__ void lock(int* lock, int* count) {
    bool done = false;
    while (!done) if (atomicCAS(lock, 0, 1) == 0) {
        *(volatile int*)count = *(volatile int*)count + 1;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
    }
}
extern "C" __global__ void chain(volatile int* flags, volatile int* out) {
    int b = gridDim.x - 1 - blockIdx.x;
    if (threadIdx.x == 0) {
        if (b > 0) while (flags[b - 1] == 0);
        out[b] = b ? out[b - 1] + b : 0;
        __threadfence();
        flags[b] = 1;
    }
}
extern "C" __global__ void numbered(int* out) {
    __shared__ int s[128];
    int t = threadIdx.x, warp = t / 32;
    for (int i = 0; i < warp; i++) out[128] = i;
    s[t] = t;
    asm volatile("bar.sync %0, 32;" :: "r"(warp + 1) : "memory");
    out[t] = s[t ^ 31];
}
// One lane of a warp comes late to the others, and another warp waits for what they do then.
extern "C" __global__ void meet(volatile int* flags, int* out, int first) {
    int t = threadIdx.x, warp = (t / 32 + first) % 3;
    if (warp == 0) {
        if (t % 32 == 0) flags[0] = 1;
    } else if (warp == 1) {
        if (t % 32 == 0)
            while (!flags[0]) {}
        __syncwarp();
        flags[1] = 1;
    } else {
        while (!flags[1]) {}
    }
    out[t] = 1;
}
"""


@pytest.fixture(scope="module")
def kernels(engine: str) -> Kernels:
    kernels = Kernels(SOURCE)
    kernels.engine = engine
    return kernels


def test_a_lock_within_a_warp_is_passed_on(kernels: Kernels) -> None:
    state = kernels.zeros(2)
    kernels.launch("lock", 4, 64, state, state + 4)
    assert kernels.get(state, 2).tolist() == [0, 256]


@pytest.mark.parametrize("threads", [32, 1024])
def test_blocks_may_wait_for_blocks_behind_them(kernels: Kernels, threads: int) -> None:
    """With 1024 threads the blocks don't fit into one chunk."""
    out = kernels.zeros(80)
    kernels.launch("chain", 80, threads, kernels.zeros(80), out)
    assert kernels.get(out, 80)[-1] == 79 * 80 // 2


def test_warps_may_have_barriers_of_their_own(kernels: Kernels) -> None:
    out = kernels.zeros(129)
    kernels.launch("numbered", 1, 128, out)
    assert kernels.get(out, 128).tolist() == [t ^ 31 for t in range(128)]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_lanes_meet_though_other_warps_wait_for_them(kernels: Kernels, first: int) -> None:
    out = kernels.zeros(96)
    kernels.launch("meet", 1, 96, kernels.zeros(2), out, first, steps=100_000)
    assert (kernels.get(out, 96) == 1).all()
