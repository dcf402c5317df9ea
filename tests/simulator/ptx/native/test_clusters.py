"""Clusters run in machine code: barriers, distributed shared memory, and faults are the NumPy engine's."""

import re
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = """
#include <cooperative_groups.h>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// Each block reads what its neighbours have written, through addresses of shared memory and generic ones.
extern "C" __global__ void exchange(unsigned* out, const unsigned* in, int rounds) {
    __shared__ unsigned s[96];
    __shared__ double wide[96];
    auto cluster = cg::this_cluster();
    unsigned thread = threadIdx.x + blockDim.x * threadIdx.y, block = blockIdx.x + gridDim.x * blockIdx.y;
    unsigned rank = cluster.block_rank(), count = cluster.num_blocks(), x = in[(block * 96 + thread) % 512];
    for (int round = 0; round < rounds; round++) {
        s[thread] = x;
        wide[thread] = x * 0.5;
        cluster.sync();
        unsigned *there = cluster.map_shared_rank(s, (rank + round) % count);
        x = x * 3 + there[(thread * 7 + round) % 96] + *cluster.map_shared_rank(&s[5], (rank + thread) % count);
        x ^= (unsigned)cluster.map_shared_rank(wide, (rank + 1) % count)[95 - thread];
        __syncthreads();
        cluster.sync();
        if (thread == 0) there[round] = x;
        cluster.sync();
        x += s[round];
        cluster.sync();
    }
    out[block * 96 + thread] = x + 7 * cluster.query_shared_rank(cluster.map_shared_rank(s, count - 1 - rank))
        + 1000 * cluster.block_index().x + 100000 * cluster.block_index().y;
}
// Atomics and barriers in the shared memory of other blocks; some warps exit early.
extern "C" __global__ void counted(unsigned* out) {
    __shared__ unsigned bins[64];
    __shared__ alignas(8) uint64_t bar;
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), count = cluster.num_blocks(), thread = threadIdx.x;
    if (thread < 64) bins[thread] = 0;
    if (thread == 0) ptx::mbarrier_init(&bar, count);
    cluster.sync();
    for (int i = 0; i < 8; i++)
        atomicAdd(cluster.map_shared_rank(bins, (thread + i) % count) + (thread * 5 + i) % 64, rank + 1);
    cluster.sync();
    if (thread >= 64) return;
    if (thread < count) {
        uint64_t *there = cluster.map_shared_rank(&bar, thread);
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there);
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {}
    out[blockIdx.x * 64 + thread] = bins[thread];
    cluster.sync();
}
extern "C" __global__ void wild(unsigned* out, int rank, int place) {
    __shared__ unsigned s[32];
    s[threadIdx.x] = 1;
    cg::this_cluster().sync();
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"((unsigned)__cvta_generic_to_shared(s)), "r"(rank));
    unsigned x = 0;
    if (blockIdx.x == 2 && threadIdx.x > 3)
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(address + place + 4 * threadIdx.x));
    cg::this_cluster().sync();
    out[threadIdx.x] = x;
}
// One block copies to the others of its cluster at once.
extern "C" __global__ void shared_out(unsigned* out, const unsigned* in) {
    __shared__ alignas(16) unsigned s[64];
    __shared__ alignas(8) uint64_t bar;
    unsigned rank = cg::this_cluster().block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, rank == 1 ? 0 : 256);
    }
    cg::this_cluster().sync();
    // In assembly, because the headers of CUDA 13.0 accept it only for sm_90a.
    if (rank == 1 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 256, [%2], %3;"
                     ::"r"((unsigned)__cvta_generic_to_shared(s)), "l"(in + blockIdx.x * 64),
                     "r"((unsigned)__cvta_generic_to_shared(&bar)), "h"((unsigned short)0b1101) : "memory");
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {}
    out[blockIdx.x * 64 + threadIdx.x] = rank == 1 ? 7 : s[threadIdx.x];
    cg::this_cluster().sync();
}
// Half of each block meets at a barrier whose number is in a register, and all threads of a block combine predicates.
extern "C" __global__ void combined(unsigned* out, const unsigned* in) {
    __shared__ unsigned s[64];
    unsigned thread = threadIdx.x, x = in[blockIdx.x * 64 + thread], sum = __syncthreads_count(x % 3 == 0);
    s[thread] = x;
    asm volatile("barrier.sync %0, 32;" ::"r"(1 + thread / 32) : "memory");
    sum = sum * 100 + s[thread ^ 7] % 50;
    cg::this_cluster().sync();
    out[blockIdx.x * 64 + thread] = sum * 2 + __syncthreads_or(x % 40 == 1);
}
extern "C" __global__ void stuck(unsigned* out) {
    if (blockIdx.x % 2 == 0) asm volatile("bar.sync 1, 64;");
    cg::this_cluster().sync();
}
"""


@pytest.mark.parametrize(
    ("grid", "block", "cluster"),
    [
        ((8, 1, 1), (96, 1, 1), (4, 1, 1)),
        ((6, 1, 1), (48, 2, 1), (2, 1, 1)),
        ((2, 4, 1), (96, 1, 1), (2, 2, 1)),
        ((3, 1, 1), (96, 1, 1), (1, 1, 1)),
        ((4, 4, 1), (96, 1, 1), (2, 2, 1)),
        ((2, 2, 4), (96, 1, 1), (1, 2, 2)),
        ((16, 1, 1), (32, 3, 1), (16, 1, 1)),
    ],
)
def test_blocks_exchange_shared_memory(kernels: Kernels, grid: Any, block: Any, cluster: Any) -> None:
    given = np.random.default_rng(1).integers(0, 1 << 32, 512, np.uint32)
    plain, counted = (
        kernels.agree("exchange", grid, block, np.zeros(16 * 96, np.uint32), given, 5, cluster=cluster, observe=observe)
        for observe in (None, LaunchCounters)
    )
    np.testing.assert_array_equal(counted[0], plain[0])
    assert kernels.ran_natively("exchange")


def test_atomics_and_barriers_in_other_blocks(kernels: Kernels) -> None:
    (out,) = kernels.agree("counted", 12, 128, np.zeros(12 * 64, np.uint32), cluster=(4, 1, 1))
    assert out.any()
    assert kernels.ran_natively("counted")


def test_one_copy_reaches_several_blocks(kernels: Kernels) -> None:
    given = np.random.default_rng(6).integers(0, 1 << 32, 8 * 64, np.uint32)
    out, _ = kernels.agree("shared_out", 8, 64, np.zeros(8 * 64, np.uint32), given, cluster=(4, 1, 1))
    expected = np.repeat(given.reshape(2, 4, 64)[:, 1:2], 4, axis=1)
    expected[:, 1] = 7
    np.testing.assert_array_equal(out.reshape(2, 4, 64), expected)
    assert kernels.ran_natively("shared_out")


@pytest.mark.parametrize("observe", [None, LaunchCounters])
def test_each_block_has_its_own_barriers(kernels: Kernels, observe: Any) -> None:
    given = np.random.default_rng(5).integers(0, 200, 8 * 64, np.uint32)
    (out,) = kernels.agree("combined", 8, 64, np.zeros(8 * 64, np.uint32), given, cluster=(4, 1, 1), observe=observe)[
        :1
    ]
    blocks = given.reshape(8, 64)
    expected = (blocks % 3 == 0).sum(axis=1, keepdims=True) * 100 + blocks[:, np.arange(64) ^ 7] % 50
    expected = expected * 2 + (blocks % 40 == 1).any(axis=1, keepdims=True)
    np.testing.assert_array_equal(out.reshape(8, 64), expected)
    assert kernels.ran_natively("combined")


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("wild", (0, 256), "out of bounds"),
        ("wild", (3, 2), "aligned"),
        ("wild", (4, 0), "the block of rank 4, in a cluster of 4 blocks"),
        ("stuck", (), "deadlock"),
    ],
)
def test_faults_have_the_same_reports(kernels: Kernels, name: str, arguments: tuple[int, ...], text: str) -> None:
    reports = []
    for kernels.engine in ("numpy", "native"):
        with pytest.raises(Fault) as caught:
            kernels.launch(name, 8, 32, kernels.zeros(32), *arguments, cluster=(4, 1, 1))
        reports.append(re.sub(r"\d+ threads wait", "threads wait", caught.value.report))
    assert text in reports[0]
    assert reports[1] == reports[0]
    assert kernels.ran_natively(name)
