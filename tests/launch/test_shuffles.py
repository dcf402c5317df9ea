"""The result of a shuffle that reads from an inactive lane, which PTX leaves undefined."""

import numpy as np
import pytest

import cudart_py as cuda

SOURCE = """
extern "C" __global__ void read(int* out, const int* values, int active, int distance) {
    int lane = threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffff, lane < active);
    int value = values[lane];
    if (lane < active)
        out[lane] = __shfl_down_sync(mask, value, distance);
}
"""


@pytest.mark.parametrize(("active", "distance"), [(1, 1), (8, 4), (8, 16), (17, 16), (31, 3)])
def test_an_inactive_lane_gives_0_and_a_lane_outside_the_warp_the_own_value(active, distance):
    values = np.random.default_rng().integers(1, 1 << 30, 32, np.int32)
    out = cuda.full(32, -1, np.int32)
    with cuda.sanitizer("off"):
        cuda.compile(SOURCE)["read"][1, 32](out, cuda.to_device(values), active, distance)
        found = out.to_host()
    lanes = np.arange(active)
    source = lanes + distance
    given = np.where(source < active, values[np.minimum(source, 31)], 0)
    expected = np.where(source < 32, given, values[lanes])
    assert found.tolist() == [*expected, *[-1] * (32 - active)]
