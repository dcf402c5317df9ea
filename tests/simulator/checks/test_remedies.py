"""The report of a race between threads of one launch says what would order the two accesses."""

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE

KERNELS = """
extern "C" __global__ void reversed(int* x) {
    __shared__ int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void counted(int* x) {
    *x += threadIdx.x;
}
extern "C" __global__ void numbered(int* x) {
    if (threadIdx.x == 0) *x = blockIdx.x;
}
extern "C" __global__ void __cluster_dims__(2) gathered(int* x) {
    __shared__ int first;
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(&first)));
    if (threadIdx.x == 0) asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(there), "r"(blockIdx.x) : "memory");
}
extern "C" __global__ void counted_in_blocks(int* x) {
    atomicAdd_block(x, 1);
}
"""
REMEDIES = {
    "reversed": (1, ": put a barrier such as __syncthreads() between them;"),
    "counted": (1, ": use atomics or, between iterations of a loop, a barrier such as __syncthreads();"),
    "numbered": (2, ", which are in different blocks: use atomics, grid.sync() or separate launches;"),
    "gathered": (2, ": put a barrier for the cluster, such as cluster.sync(), between them;"),
    "counted_in_blocks": (2, ";"),  # the report says why two atomics race
}


@pytest.mark.parametrize("kernel", REMEDIES)
def test_a_race_says_what_would_order_it(kernels, kernel):
    blocks, remedy = REMEDIES[kernel]
    [report] = found(kernels[kernel][blocks, 64], cuda.zeros(64, np.int32))
    assert f"nothing orders the two accesses{remedy} block" in report
