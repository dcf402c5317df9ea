"""Clocks in machine code: they advance with every instruction, and never go back from warp to warp or launch to launch.

`running/test_specials.py` tests waits for clocks with both engines.
"""

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Clock
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
extern "C" __global__ void looks(long long* out, int n) {
    __shared__ long long first;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long start = clock64();
    if (threadIdx.x == 0) first = start;
    float x = n;
    for (int j = 0; j < n; j++) x = x * x + threadIdx.x;
    long long middle = clock64();
    __syncthreads();
    switch (n & 3) {
        case 0: x += 1; break;
        case 1: x *= 3; break;
        case 2: x -= 7; break;
    }
    #pragma unroll
    for (int j = 0; j < 64; j++) x = x * x + j;
    unsigned end = clock();
    out[4 * i] = start;
    out[4 * i + 1] = middle;
    out[4 * i + 2] = end + (x == 0.5f);
    out[4 * i + 3] = first;
}
"""


@pytest.mark.parametrize("checked", [False, True])
def test_time_never_goes_back(checked):
    kernels, clock = Kernels(SOURCE, engine="native"), Clock()
    count, before = 5 * 96, 0
    for n in (1, 50, 3):
        out = kernels.zeros(4 * count, np.int64)
        kernels.launch("looks", 5, 96, out, n, clock=clock, observer=LaunchChecks() if checked else None)
        start, middle, end, first = kernels.get(out, 4 * count, np.int64).reshape(count, 4).T
        assert (np.diff(start) >= 0).all()
        assert before < start[0]
        assert (middle - start >= 2 * n).all()
        assert len(set((middle - start).tolist())) == 1
        assert (end > middle.reshape(5, 96).max(1).repeat(96)).all()
        assert (first == start.reshape(5, 96)[:, 0].repeat(96)).all()
        # Machine code runs one block after another.
        assert (start.reshape(5, 96)[1:].min(1) > end.reshape(5, 96)[:-1].max(1)).all()
        before = end.max()
        assert clock.cycles(0) >= before
    assert kernels.ran_natively("looks")
