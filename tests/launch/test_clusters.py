"""Clusters: their blocks wait for one another, and read and update one another's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda

# What cooperative_groups.h calls, without the seconds that it takes to compile.
KERNELS = """
__device__ void cluster_sync() { __cluster_barrier_arrive(); __cluster_barrier_wait(); }
template <class T> __device__ T *map(T *here, unsigned rank) { return (T *)__cluster_map_shared_rank(here, rank); }
extern "C" __global__ void rotate(int *out, const int *in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    cluster_sync();
    int *next = map(s, (__clusterRelativeBlockRank() + 1) % __clusterSizeInBlocks());
    out[blockIdx.x * 64 + threadIdx.x] = next[63 - threadIdx.x];
    cluster_sync();
}
// Each block has a part of the bins, and all count in all of them.
extern "C" __global__ void histogram(int *out, const int *in) {
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    cluster_sync();
    int bin = in[blockIdx.x * 64 + threadIdx.x];
    atomicAdd(map(bins, bin / 32) + bin % 32, 1);
    cluster_sync();
    if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = bins[threadIdx.x];
}
extern "C" __global__ void ranks(int *out) {
    __shared__ int s[64];
    unsigned rank = __cluster_query_shared_rank(map(s, threadIdx.x % __clusterSizeInBlocks()));
    out[blockIdx.x * 64 + threadIdx.x] = rank * 100 + __cluster_query_shared_rank(s);
}
"""


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_block_reads_the_next_ones_shared_memory(device, kernels, rng, size):
    values = rng.integers(0, 1000, 64 * 64, np.int32)
    out = cuda.zeros(values.size, np.int32)
    kernels["rotate"].launch(64, 64, cluster=size)(out, cuda.to_device(values))
    expected = np.roll(values.reshape(-1, size, 64), -1, axis=1)[:, :, ::-1]
    np.testing.assert_array_equal(out.to_host(), expected.reshape(-1))


def test_atomics_reach_every_block_of_the_cluster(device, kernels, rng):
    bins = rng.integers(0, 128, (6, 256), np.int32)
    out = cuda.zeros((6, 128), np.int32)
    kernels["histogram"].launch(24, 64, cluster=4)(out, cuda.to_device(bins))
    np.testing.assert_array_equal(out.to_host(), [np.bincount(row, minlength=128) for row in bins])


def test_an_address_tells_the_rank_of_its_block(device, kernels):
    out = cuda.zeros((8, 64), np.int32)
    kernels["ranks"].launch(8, 64, cluster=4)(out)
    np.testing.assert_array_equal(out.to_host(), np.arange(64) % 4 * 100 + np.arange(8)[:, None] % 4)


@pytest.mark.parametrize("size", [1, 2, 4, 8, (2, 2), (4, 4)])
def test_the_most_active_clusters_fit_the_device(device, kernels, size):
    """A GPU's groups of multiprocessors differ from card to card, so that only the bounds are known."""
    kernel = kernels["rotate"]
    blocks = int(np.prod(size))
    most = kernel.max_active_clusters(256, size)
    assert 0 < most * blocks <= kernel.occupancy(256).blocks * device.sm_count
    assert kernel.max_active_clusters(256, size, 100 << 10) <= most


def test_a_launch_takes_the_largest_cluster(device, kernels):
    kernel = kernels["ranks"]
    most = kernel.max_cluster_size(64)
    assert most >= 8
    out = cuda.zeros((most, 64), np.int32)
    kernel.launch(most, 64, cluster=most)(out)
    np.testing.assert_array_equal(out.to_host() // 100, np.tile(np.arange(64) % most, (most, 1)))


def test_clusters_that_cannot_be_are_refused_before_the_driver_is_asked(device, kernels):
    kernel = kernels["rotate"]
    with pytest.raises(ValueError, match="a cluster of .* has 64 blocks, and .* is the most here"):
        kernel.max_active_clusters(64, 64)
    with pytest.raises(TypeError, match="'cluster.x' must be an int"):
        kernel.max_active_clusters(64, "2")
    with pytest.raises(ValueError, match="2048 threads"):
        kernel.max_cluster_size((64, 32))
