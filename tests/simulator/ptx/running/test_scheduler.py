"""Lanes that wait for one another, however they stand, all get on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
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
extern "C" __global__ void grid(int* p, int* q) {
    cg::grid_group g = cg::this_grid();
    unsigned rank = g.thread_rank(), size = g.size();
    p[rank] = rank;
    g.sync();
    q[rank] = p[(rank + 777) % size];
    g.sync();
    p[rank] = q[(rank + 777) % size];
}
extern "C" __global__ void counted(int* out) {
    int t = threadIdx.x;
    int count = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < 100), any = __syncthreads_or(t == 5);
    out[t + blockIdx.x * blockDim.x] = count * 100 + all * 10 + any;
}
extern "C" __global__ void early(int* out) {
    __shared__ int s;
    int t = threadIdx.x;
    if (t == 0) s = 7;
    if (t > 50) return;
    __syncthreads();
    out[t] = s;
}
extern "C" __global__ void producer(int* out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        for (int i = 0; i < t; i++) out[64] = i;
        s[t] = t * t;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[t - 32] = s[t - 32];
    }
}
extern "C" __global__ void halves(int* out) {
    int t = threadIdx.x, v = t;
    if (t % 32 < 16) v += __shfl_xor_sync(0xffff, v, 1);
    else v += __shfl_xor_sync(0xffff0000, v, 2);
    __syncwarp();
    out[t] = v + __reduce_add_sync(0xffffffff, t);
}
extern "C" __global__ void numbered(int* out) {
    __shared__ int s[128];
    int t = threadIdx.x, warp = t / 32;
    for (int i = 0; i < warp; i++) out[128] = i;
    s[t] = t;
    asm volatile("bar.sync %0, 32;" :: "r"(warp + 1) : "memory");
    out[t] = s[t ^ 31];
}
extern "C" __global__ void scattered(int* out) {
    int t = threadIdx.x, v = 0;
    if (t % 2) { for (int i = 0; i < t; i++) v += i; }
    v += __popc(__ballot_sync(0xffffffff, t % 2));
    out[t] = v;
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
def kernels() -> Kernels:
    return Kernels(SOURCE)


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


def test_a_cooperative_grid_synchronises(kernels: Kernels) -> None:
    n = 200 * 256
    p = kernels.zeros(n)
    kernels.launch("grid", 200, 256, p, kernels.zeros(n), cooperative=True)
    np.testing.assert_array_equal(kernels.get(p, n), (np.arange(n) + 1554) % n)


def test_barriers_count_and_combine(kernels: Kernels) -> None:
    out = kernels.zeros(384)
    kernels.launch("counted", 3, 128, out)
    assert set(kernels.get(out, 384).tolist()) == {4301}


def test_lanes_that_have_ended_count_as_arrived(kernels: Kernels) -> None:
    out = kernels.zeros(51)
    kernels.launch("early", 1, 128, out)
    assert set(kernels.get(out, 51).tolist()) == {7}


def test_a_named_barrier_joins_producers_and_consumers(kernels: Kernels) -> None:
    out = kernels.zeros(65)
    kernels.launch("producer", 1, 64, out)
    assert kernels.get(out, 32).tolist() == [t * t for t in range(32)]


def test_warps_may_have_barriers_of_their_own(kernels: Kernels) -> None:
    out = kernels.zeros(129)
    kernels.launch("numbered", 1, 128, out)
    assert kernels.get(out, 128).tolist() == [t ^ 31 for t in range(128)]


def test_parts_of_a_warp_exchange_apart(kernels: Kernels) -> None:
    out = kernels.zeros(32)
    kernels.launch("halves", 1, 32, out)
    assert kernels.get(out, 32).tolist() == [t + (t ^ 1 if t < 16 else t ^ 2) + 496 for t in range(32)]


def test_a_vote_waits_for_the_lanes_of_its_mask(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("scattered", 1, 64, out)
    assert kernels.get(out, 64).tolist() == [16 + (t * (t - 1) // 2 if t % 2 else 0) for t in range(64)]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_lanes_meet_though_other_warps_wait_for_them(kernels: Kernels, first: int) -> None:
    out = kernels.zeros(96)
    kernels.launch("meet", 1, 96, kernels.zeros(2), out, first, steps=100_000)
    assert (kernels.get(out, 96) == 1).all()
