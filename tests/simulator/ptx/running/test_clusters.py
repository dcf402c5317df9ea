"""Clusters and bulk copies: what checks and faults say. What kernels get is in tests/launch, for every driver."""

from __future__ import annotations

import pytest

from cudart_py.simulator.checks.findings import pending
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault, UnsupportedError
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
__device__ unsigned in_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ int* of_the_other(int* p) { return (int*)__cluster_map_shared_rank(p, __clusterRelativeBlockRank() ^ 1); }
extern "C" __global__ void without_sync(int* out, const int* in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = of_the_other(s)[threadIdx.x];
}
extern "C" __global__ void beyond(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[threadIdx.x] = of_the_other(s)[threadIdx.x + n];
}
extern "C" __global__ void absent(int rank) {
    __shared__ int s[64];
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(in_shared(s + threadIdx.x)), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %0;" ::"r"(there) : "memory");
}
extern "C" __global__ void fetch(const int* in, int bytes, int to, int from, int lane) {
    __shared__ alignas(16) int s[64];
    __shared__ long long barrier;
    if (threadIdx.x == lane)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(in_shared(s) + to), "l"((const char*)in + from), "r"(bytes), "r"(in_shared(&barrier)));
}
extern "C" __global__ void store(int* out, int bytes) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = 1;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(out), "r"(in_shared(s)), "r"(bytes) : "memory");
}
extern "C" __global__ void spread(const int* in, int ranks) {
    __shared__ alignas(16) int s[64];
    __shared__ long long barrier;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 256, [%2], %3;" ::"r"(in_shared(s)), "l"(in), "r"(in_shared(&barrier)),
                     "h"((short)ranks) : "memory");
}
"""


def test_a_cluster_of_rows_needs_blocks_that_are_neighbours(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("beyond", (2, 8, 1), 64, out, 0, cluster=(2, 2, 1))
    with pytest.raises(UnsupportedError, match="aren't neighbours"):
        kernels.launch("beyond", (4, 4, 1), 64, out, 0, cluster=(2, 2, 1))


def test_a_place_or_a_block_that_the_cluster_has_not_is_named(kernels: Kernels) -> None:
    pair = {"cluster": (2, 1, 1)}
    with pytest.raises(Fault, match="0 bytes past the end of .*256 bytes") as caught:
        kernels.launch("beyond", 2, 64, kernels.zeros(64), 1, **pair)
    assert "thread (63, 0, 0)" in caught.value.report
    kernels.launch("absent", 4, 64, 1, **pair)
    with pytest.raises(Fault, match="rank 5, in a cluster of 2") as caught:
        kernels.launch("absent", 4, 64, 5, **pair)
    assert caught.value.status_name == "CUDA_ERROR_LAUNCH_FAILED"
    with pytest.raises(Fault, match="rank 3, in a cluster of 2"):
        kernels.launch("spread", 2, 32, kernels.zeros(64), 0b1001, **pair)
    with pytest.raises(Fault, match="global write of 16 bytes at .* out of bounds"):
        kernels.launch("store", 1, 1, kernels.zeros(32), 256)


def test_reading_another_blocks_shared_memory_too_early_is_a_race(kernels: Kernels) -> None:
    pending.clear()
    arguments = kernels.zeros(64), kernels.zeros(64)
    kernels.launch("without_sync", 2, 64, *arguments, cluster=(2, 1, 1), observer=LaunchChecks())
    texts = "\n".join(map(str, pending))
    pending.clear()
    assert "race: it reads 4 bytes of shared memory" in texts


@pytest.mark.parametrize(
    ("bytes_", "to", "source", "status", "text"),
    [
        (24, 0, 0, "ILLEGAL_INSTRUCTION", "24 bytes, which is no multiple of 16"),
        (64, 8, 0, "MISALIGNED_ADDRESS", "aligned to 16 bytes"),
        (64, 0, 4, "MISALIGNED_ADDRESS", "aligned to 16 bytes"),
        (1 << 16, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* out of bounds"),
        (0x7FFFFFF0, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* out of bounds"),
        (-16, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* out of bounds"),
        (256, 0, 16, "ILLEGAL_ADDRESS", "global read of 16 bytes at .* out of bounds"),
    ],
)
def test_a_wrong_bulk_copy_is_a_fault_of_its_thread(
    kernels: Kernels, bytes_: int, to: int, source: int, status: str, text: str
) -> None:
    with pytest.raises(Fault, match=text) as caught:
        kernels.launch("fetch", 1, 64, kernels.zeros(64), bytes_ & 0xFFFFFFFF, to, source, 37)
    assert caught.value.status_name == f"CUDA_ERROR_{status}"
    assert "thread (37, 0, 0)" in caught.value.report
