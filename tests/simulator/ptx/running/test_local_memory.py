"""Local memory: both engines place the lanes' variables alike, and spread them over the processor's cache."""

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx.running.launch import Launch, plan_of
from tests.simulator.ptx.machine import PROPERTIES, Kernels

# Each thread fills an array in local memory and adds up a part of it, which depends on the thread.
SOURCE = r"""
template <int N> __device__ void add_up(int* out, int n, int step)
{
    int own[N], i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < n; k++) own[k * step % N] = i + k;
    for (int k = 0; k <= i; k++) sum += own[k * step % N];
    out[i] = sum;
}
extern "C" __global__ void bytes_400(int* out, int n, int step) { add_up<100>(out, n, step); }
extern "C" __global__ void bytes_512(int* out, int n, int step) { add_up<128>(out, n, step); }
extern "C" __global__ void bytes_4096(int* out, int n, int step) { add_up<1024>(out, n, step); }
extern "C" __global__ void bytes_32768(int* out, int n, int step) { add_up<8192>(out, n, step); }
"""
SIZES = [400, 512, 4096, 32768]
# The first-level cache of current processors has 64 sets of lines of 64 bytes, with at least eight lines each.
SETS, LINE, WAYS = 64, 64, 8


@pytest.mark.parametrize("size", SIZES)
def test_the_same_variable_of_all_lanes_fits_into_the_processors_cache(kernels: Kernels, size: int) -> None:
    launch = Launch(kernels.module.entries[f"bytes_{size}"], (2, 1, 1), (96, 1, 1), parameters=b"")
    plan = plan_of(kernels.program(f"bytes_{size}"), launch, PROPERTIES)
    assert plan.local_size == size
    assert plan.local_stride % 16 == 0
    sets = np.arange(32) * plan.local_stride // LINE % SETS
    assert np.bincount(sets).max() <= WAYS


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("checks", [None, LaunchChecks])
def test_each_lane_has_its_own_variables(on_each: Kernels, size: int, checks: type[LaunchChecks] | None) -> None:
    threads = 2 * 40
    out = on_each.zeros(threads)
    on_each.launch(f"bytes_{size}", 2, 40, out, threads, 3, observer=checks and checks())
    numbers = np.arange(threads)
    np.testing.assert_array_equal(on_each.get(out, threads), (numbers + 1) * numbers + numbers * (numbers + 1) // 2)
