import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import halo
from tests.tour.outcomes import counted


@pytest.mark.skipif(len(cuda.devices()) > 1, reason="this machine has several devices")
def test_a_process_with_one_device_says_what_several_need(result):
    assert "mpiexec -n 4 library-tour run halo" in result.notes[-1]


@counted
def test_edges_of_their_own_cost_loads(rows):
    overlapped, sequential, one = (rows[name].values["loads"] for name in ("overlapped", "sequential", "one strip"))
    assert overlapped > sequential > one


@pytest.mark.parametrize("kernels", [halo.SEQUENTIAL, halo.OVERLAPPED])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_strips_of_a_few_rows_and_of_one(device, kernels, count):
    plate = np.random.default_rng(count).random((9, 12), np.float32)
    cut = halo.Strips([device] * count, *plate.shape)
    cut.fill(plate)
    halo.take_steps(cut, halo.STEPS, kernels)
    device.synchronize()
    np.testing.assert_allclose(cut.collect(plate), halo.reference(plate, halo.STEPS), atol=1e-6)


def test_strips_divide_the_inner_rows_evenly():
    for rows, count in ((9, 7), (100, 3), (18, 16)):
        cuts = halo.cuts(rows, count)
        assert (cuts[0], cuts[-1], len(cuts)) == (1, rows - 1, count + 1)
        heights = np.diff(cuts)
        assert 1 <= heights.min() <= heights.max() <= heights.min() + 1
