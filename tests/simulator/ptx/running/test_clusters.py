"""Clusters in the machine: which shapes it takes, and what its checks and faults say. What kernels get is in
tests/launch/test_clusters.py, for every driver."""

from __future__ import annotations

import pytest

from cudart_py.simulator.checks.findings import pending
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault, UnsupportedError
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void without_sync(int* out, const int* in) {
    __shared__ int s[64];
    cg::cluster_group cluster = cg::this_cluster();
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = *cluster.map_shared_rank(s + threadIdx.x, cluster.block_rank() ^ 1);
}
extern "C" __global__ void beyond(int* out, int n) {
    __shared__ int s[64];
    cg::cluster_group cluster = cg::this_cluster();
    s[threadIdx.x] = 1;
    cluster.sync();
    out[threadIdx.x] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x + n];
    cluster.sync();
}
extern "C" __global__ void absent(int rank) {
    __shared__ int s[64];
    unsigned own = __cvta_generic_to_shared(s + threadIdx.x), there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %0;" ::"r"(there) : "memory");
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def test_a_cluster_of_rows_needs_blocks_that_are_neighbours(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("beyond", (2, 8, 1), 64, out, 0, cluster=(2, 2, 1))
    with pytest.raises(UnsupportedError, match="whose blocks aren't neighbours"):
        kernels.launch("beyond", (4, 4, 1), 64, out, 0, cluster=(2, 2, 1))


def test_beyond_another_blocks_shared_memory_is_out_of_bounds(kernels: Kernels) -> None:
    with pytest.raises(Fault, match="0 bytes past the end of the block's 256 bytes of shared memory") as caught:
        kernels.launch("beyond", 2, 64, kernels.zeros(64), 1, cluster=(2, 1, 1))
    assert "thread (63, 0, 0)" in caught.value.report


def test_a_block_that_the_cluster_has_not_is_named(kernels: Kernels) -> None:
    kernels.launch("absent", 4, 64, 1, cluster=(2, 1, 1))
    text = "a shared write of 4 bytes at .* is out of bounds: it names the block of rank 5, in a cluster of 2 blocks"
    with pytest.raises(Fault, match=text) as caught:
        kernels.launch("absent", 4, 64, 5, cluster=(2, 1, 1))
    assert caught.value.status_name == "CUDA_ERROR_LAUNCH_FAILED"


def test_reading_another_blocks_shared_memory_too_early_is_a_race(kernels: Kernels) -> None:
    pending.clear()
    kernels.launch(
        "without_sync", 2, 64, kernels.zeros(64), kernels.zeros(64), cluster=(2, 1, 1), observer=LaunchChecks()
    )
    texts = "\n".join(map(str, pending))
    pending.clear()
    assert "race: it reads 4 bytes of shared memory" in texts
