"""Damaged PTX is refused with its line or fails like a faulty kernel: it never crashes the simulator."""

import collections

from tests.fuzz import ptx_mutants
from tests.simulator.ptx.machine import ptx_of

SOURCE = r"""
__device__ int table[4] = {1, 2, 3, 4};
__device__ __noinline__ float twice(float x) { return x + x; }
extern "C" __global__ void sums(float* x, const float* y, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = i < n ? twice(y[i]) : 0;
    __syncthreads();
    for (int step = 32; step; step /= 2) {
        if (t < step) tile[t] += tile[t + step];
        __syncthreads();
    }
    if (!t) atomicAdd(x, tile[0] + __shfl_sync(1, table[i % 4], 0));
    switch (n & 7) { case 0: x[1] = 1; break; case 1: x[2] = 5; break; case 2: x[3] = 7; break; case 3: x[4] = 2; }
}
"""


def test_damaged_ptx_is_refused_or_runs() -> None:
    counts: collections.Counter[str] = collections.Counter()
    for result, report, _ in ptx_mutants.run([ptx_of(SOURCE)], 80, seed=14):
        counts[result] += 1
        assert result not in ptx_mutants.MISTAKES, report
    assert counts["refused, CUDA_ERROR_INVALID_PTX"] > 12
    assert counts["loaded and ran"] > 12
