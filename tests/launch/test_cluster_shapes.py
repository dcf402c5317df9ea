"""Clusters of any shape: each block knows its place, and reads the shared memory of every block of its cluster."""

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = pytest.mark.needs("sm_90")  # which has clusters

KERNELS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Each block sums the identity numbers of its cluster's blocks, and writes them with its place in the cluster.
extern "C" __global__ void places(int* out) {
    __shared__ int number;
    auto cluster = cg::this_cluster();
    int linear = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    number = linear * linear + 1;
    cluster.sync();
    int total = 0;
    for (int rank = 0; rank < (int)cluster.num_blocks(); ++rank) total += *cluster.map_shared_rank(&number, rank);
    cluster.sync();
    dim3 place = cluster.block_index();
    int row[5] = {total, (int)cluster.block_rank(), (int)place.x, (int)place.y, (int)place.z};
    for (int k = 0; k < 5; ++k) out[5 * linear + k] = row[k];
}
"""


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((4, 6, 1), (2, 2, 1)),
        ((3, 4, 2), (1, 2, 2)),
        ((6, 2, 4), (3, 1, 2)),
        ((4, 8, 1), (1, 8, 1)),
        ((6, 1, 1), (2, 1, 1)),
    ],
)
def test_the_blocks_of_a_cluster_are_neighbours_in_the_grid(device, kernels, grid, cluster):
    shape = grid[::-1]
    out = cuda.full((*shape, 5), -1, np.int32)
    kernels["places"].launch(grid, 1, out, cluster=cluster)
    z, y, x = np.indices(shape)
    numbers = (x + grid[0] * (y + grid[1] * z)) ** 2 + 1
    places = [axis % extent for axis, extent in zip((x, y, z), cluster, strict=True)]
    groups = [axis // extent for axis, extent in zip((x, y, z), cluster, strict=True)]
    group = groups[0] + 100 * (groups[1] + 100 * groups[2])
    total = np.bincount(group.ravel(), numbers.ravel())[group]
    rank = places[0] + cluster[0] * (places[1] + cluster[1] * places[2])
    np.testing.assert_array_equal(out.to_host(), np.stack([total, rank, *places], axis=-1))
