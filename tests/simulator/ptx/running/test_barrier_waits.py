"""Threads that wait forever at mbarriers are a deadlock; the report says which arrivals or bytes are missing."""

import pytest

from cudart_py.simulator.ptx.faults import Fault
from cudart_py.simulator.ptx.running import launch

SOURCE = """
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// A thread may compute for long before it arrives.
extern "C" __global__ void arrive(int* out, int arrivals, int rounds) {
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, arrivals);
    __syncthreads();
    unsigned x = 1;
    if (threadIdx.x == 0)
        for (int round = 0; round < rounds; round++) x = x * 1664525 + 1013904223 + (x >> 7);
    bar.arrive_and_wait();
    out[threadIdx.x] = threadIdx.x ? 1 : x;
}
extern "C" __global__ void fetch(int* out, int expected) {
    __shared__ alignas(16) int s[64];
    __shared__ alignas(8) uint64_t full;
    if (threadIdx.x == 0 && expected) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, expected);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, out, 256, &full);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    out[threadIdx.x] = s[threadIdx.x];
}
// The one thread waits for another that waits for all.
extern "C" __global__ void crossed(int* out, int first) {
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 2);
    __syncthreads();
    if (threadIdx.x == first) bar.arrive_and_wait();
    __syncthreads();
    if (threadIdx.x == 32) bar.arrive_and_wait();
    out[threadIdx.x] = 1;
}
extern "C" __global__ void elsewhere(int* out) {
    __shared__ alignas(8) uint64_t bar;
    unsigned rank = __clusterRelativeBlockRank();
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 2);
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    if (threadIdx.x == 0 && rank == 1)
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                             (uint64_t*)__cluster_map_shared_rank(&bar, 0));
    if (rank == 0) while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {}
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


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_STEPS_OF_WAITING", STEPS)


@pytest.mark.parametrize(
    ("name", "blocks", "threads", "numbers", "texts"),
    [
        (
            "arrive",
            1,
            48,
            [50, 0],
            ["48 threads wait", "E3bar) still expects 2 of 50 arrivals", "; block (0, 0, 0), thread (0, 0, 0)"],
        ),
        ("arrive", 11, 32, [33, 0], ["352 threads wait", "1 of 33 arrivals; the barrier of block 1 at", "and 7 more"]),
        ("arrive", 4, 32, [33, 0], ["128 threads wait", "of block 3 at", "1 of 33 arrivals; block (0, 0, 0), thread"]),
        ("fetch", 1, 64, [257], ["_ZZ5fetchE4full) still expects 1 bytes of copies"]),
        ("fetch", 1, 64, [240], ["_ZZ5fetchE4full) has received 16 more bytes of copies than it expects"]),
        ("fetch", 1, 32, [0], ["bytes into _ZZ5fetchE4full) has not been initialised"]),
        ("crossed", 1, 64, [5], ["1 thread waits", "still expects 1 of 2 arrivals; block (0, 0, 0), thread (5, 0, 0)"]),
        ("elsewhere", 4, 32, [], ["_ZZ9elsewhereE3bar) still expects 1 of 2 arrivals; the barrier of block 2 at"]),
        ("back_off", 1, 32, [16], ["32 threads wait", "_ZZ8back_offE3bar) still expects 1 of 33 arrivals"]),
    ],
)
def test_a_deadlocks_report_says_what_each_barrier_lacks(kernels, name, blocks, threads, numbers, texts):
    cluster = (2, 1, 1) if name == "elsewhere" else (1, 1, 1)
    with pytest.raises(Fault) as caught:
        kernels.launch(name, blocks, threads, kernels.zeros(64), *numbers, cluster=cluster)
    assert caught.value.status_name == "CUDA_ERROR_LAUNCH_TIMEOUT"
    assert [text for text in ["deadlock: ", *texts] if text not in caught.value.report] == []


def test_a_wait_of_many_seconds_gives_up_by_the_simulated_clock(kernels):
    out = kernels.zeros(32)
    for blocks in (1, 3):
        kernels.launch("wait_for", blocks, 32, out, 3600)
        assert all(3_600_000 <= milliseconds < 4_000_000 for milliseconds in kernels.get(out, 32))


def test_waiting_for_a_thread_that_computes_or_until_one_gives_up_is_no_deadlock(kernels):
    out = kernels.zeros(64)
    kernels.launch("arrive", 1, 64, out, 64, 2 * STEPS)
    assert (kernels.get(out, 64)[1:] == 1).all()
    for cycles, tries in ((8 * STEPS, 0), (0, 50)):
        kernels.launch("give_up", 1, 32, out, cycles, tries)
        assert (kernels.get(out, 32) >= 50).all()


def test_tiles_of_several_warps_leave_the_kernels_own_shared_memory_alone(kernels):
    out = kernels.zeros(128)
    kernels.launch("tiles", 3, 128, out)
    assert kernels.get(out, 128).tolist() == [1000 * (t // 64 * 64 + 63) + t for t in range(128)]
