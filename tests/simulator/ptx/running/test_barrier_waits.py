"""Threads that wait for each other at barriers in memory are a deadlock, whose report says what the barriers lack."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx.faults import Fault
from cudart_py.simulator.ptx.running import launch
from tests.simulator.ptx.machine import Kernels

SOURCE = """
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void arrive(int* out, int arrivals) {
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, arrivals);
    __syncthreads();
    bar.arrive_and_wait();
    out[threadIdx.x] = 1;
}
extern "C" __global__ void fetch(int* out, const int* in, int expected) {
    __shared__ alignas(16) int s[64];
    __shared__ alignas(8) uint64_t full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, expected);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, in, 256, &full);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void uninitialised(int* out) {
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 1000) ptx::mbarrier_init(&bar, 1);
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    out[0] = 1;
}
// The one thread waits for another that waits for all.
extern "C" __global__ void crossed(int* out) {
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 2);
    __syncthreads();
    if (threadIdx.x == 0) bar.arrive_and_wait();
    __syncthreads();
    if (threadIdx.x == 32) bar.arrive_and_wait();
    out[threadIdx.x] = 1;
}
extern "C" __global__ void elsewhere(int* out) {
    __shared__ alignas(8) uint64_t bar;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 2);
    cluster.sync();
    if (threadIdx.x == 0 && cluster.block_rank() == 1)
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                             cluster.map_shared_rank(&bar, 0));
    if (cluster.block_rank() == 0)
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {}
    cluster.sync();
}
// A thread computes for long before it arrives.
extern "C" __global__ void late(int* out, int rounds) {
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    unsigned x = 1;
    if (threadIdx.x == 0)
        for (int round = 0; round < rounds; round++) x = x * 1664525 + 1013904223 + (x >> 7);
    bar.arrive_and_wait();
    out[threadIdx.x] = threadIdx.x ? 1 : x;
}
// As the wait loop of CUDA 13.0's headers, threads sleep the longer the longer they have waited, but never give up.
extern "C" __global__ void back_off(int* out, int spins) {
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 33);
    __syncthreads();
    uint64_t token = ptx::mbarrier_arrive(&bar), start = ptx::get_sreg_globaltimer();
    for (int asked = 0; !ptx::mbarrier_try_wait(&bar, token); asked++) {
        if (asked < spins) continue;
        uint64_t waited = ptx::get_sreg_globaltimer() - start;
        if (waited >= 4000000) __nanosleep(1000000);
        else if (waited >= 40000) __nanosleep(waited / 4);
    }
    out[threadIdx.x] = 1;
}
extern "C" __global__ void wait_for(int* out, int seconds) {
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x + 1);
    __syncthreads();
    auto token = bar.arrive();
    uint64_t start = ptx::get_sreg_globaltimer();
    bool complete = bar.try_wait_for(cuda::std::move(token), cuda::std::chrono::seconds(seconds));
    out[threadIdx.x] = complete ? -1 : (ptx::get_sreg_globaltimer() - start) / 1000000;
}
// Threads give up after some cycles, or after some tries.
extern "C" __global__ void give_up(int* out, int cycles, int tries) {
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 33);
    __syncthreads();
    long long start = clock64();
    int asked = 0;
    while (!ptx::mbarrier_try_wait_parity(&bar, 0) && (cycles ? clock64() - start < cycles : asked < tries)) asked++;
    out[threadIdx.x] = asked;
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
extern "C" __global__ void tiles(int *out) {
    __shared__ cg::block_tile_memory<128> scratch;
    __shared__ int own[128];
    auto block = cg::this_thread_block(scratch);
    own[threadIdx.x] = threadIdx.x;
    auto tile = cg::tiled_partition<64>(block);
    tile.sync();
    int sum = tile.shfl(own[threadIdx.x], 63);
    tile.sync();
    out[threadIdx.x] = 1000 * sum + own[threadIdx.x];
}
"""
STEPS = 5000


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_STEPS_OF_WAITING", STEPS)


def deadlock(kernels: Kernels, name: str, blocks: int, threads: int, *arguments: object, **options: object) -> str:
    with pytest.raises(Fault) as caught:
        kernels.launch(name, blocks, threads, *arguments, **options)
    assert caught.value.status_name == "CUDA_ERROR_LAUNCH_TIMEOUT"
    return caught.value.report


def test_missing_arrivals_are_counted_at_each_blocks_barrier(kernels: Kernels) -> None:
    report = deadlock(kernels, "arrive", 1, 48, kernels.zeros(64), 50)
    assert "deadlock: 48 threads wait" in report
    assert "block 0's at 0x400 (0 bytes into _ZZ6arriveE3bar) lacks 2 of 50 arrivals; block (0, 0, 0)" in report
    report = deadlock(kernels, "arrive", 7, 32, kernels.zeros(64), 33)
    assert "224 threads wait" in report
    assert "lacks 1 of 33 arrivals; block 1's at 0x400" in report
    assert "block 3's at 0x400 (0 bytes into _ZZ6arriveE3bar) lacks 1 of 33 arrivals, and 3 more" in report


@pytest.mark.parametrize(
    ("expected", "text"), [(320, "lacks 64 bytes of copies"), (240, "has got 16 bytes of copies more than it expects")]
)
def test_bytes_of_copies_are_counted(kernels: Kernels, expected: int, text: str) -> None:
    report = deadlock(kernels, "fetch", 1, 64, kernels.zeros(64), kernels.zeros(64), expected)
    assert text in report
    assert "into _ZZ5fetchE4full)" in report


def test_a_barrier_without_a_count_has_not_been_initialised(kernels: Kernels) -> None:
    report = deadlock(kernels, "uninitialised", 1, 32, kernels.zeros(64))
    assert "block 0's at 0x400 (0 bytes into _ZZ13uninitialisedE3bar) has not been initialised" in report


def test_threads_at_other_barriers_wait_as_well(kernels: Kernels) -> None:
    report = deadlock(kernels, "crossed", 1, 64, kernels.zeros(64))
    assert "deadlock: 1 thread waits" in report
    assert "lacks 1 of 2 arrivals; block (0, 0, 0), thread (0, 0, 0)" in report


def test_arrivals_from_another_block_are_counted(kernels: Kernels) -> None:
    report = deadlock(kernels, "elsewhere", 4, 32, kernels.zeros(64), cluster=(2, 1, 1))
    assert "block 0's at 0x400 (0 bytes into _ZZ9elsewhereE3bar) lacks 1 of 2 arrivals; block 2's at" in report


def test_a_wait_that_reads_the_time_and_never_gives_up_is_a_deadlock(kernels: Kernels) -> None:
    report = deadlock(kernels, "back_off", 1, 32, kernels.zeros(64), 16)
    assert "deadlock: 32 threads wait" in report
    assert "into _ZZ8back_offE3bar) lacks 1 of 33 arrivals" in report


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_wait_of_many_seconds_gives_up_by_the_simulated_clock(kernels: Kernels, blocks: int) -> None:
    out = kernels.zeros(32)
    kernels.launch("wait_for", blocks, 32, out, 3600)
    milliseconds = kernels.get(out, 32)
    assert (milliseconds >= 3_600_000).all()
    assert (milliseconds < 4_000_000).all()


def test_waiting_long_for_a_thread_that_computes_is_no_deadlock(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("late", 1, 64, out, 2 * STEPS)
    assert (kernels.get(out, 64)[1:] == 1).all()


@pytest.mark.parametrize(("cycles", "tries"), [(8 * STEPS, 0), (0, 50)])
def test_a_wait_that_gives_up_is_no_deadlock(kernels: Kernels, cycles: int, tries: int) -> None:
    out = kernels.zeros(64)
    kernels.launch("give_up", 1, 32, out, cycles, tries)
    asked = kernels.get(out, 32)
    assert (asked >= 50).all()


def test_a_cooperative_grid_synchronises(kernels: Kernels) -> None:
    n = 20 * 256
    p = kernels.zeros(n)
    kernels.launch("grid", 20, 256, p, kernels.zeros(n), cooperative=True)
    np.testing.assert_array_equal(kernels.get(p, n), (np.arange(n) + 1554) % n)


def test_tiles_of_several_warps_leave_the_kernels_own_shared_memory_alone(kernels: Kernels) -> None:
    out = kernels.zeros(128)
    kernels.launch("tiles", 3, 128, out)
    threads = np.arange(128)
    assert kernels.get(out, 128).tolist() == (1000 * (threads // 64 * 64 + 63) + threads).tolist()
