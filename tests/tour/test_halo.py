from __future__ import annotations

import json

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters
from library_tour.course import halo
from library_tour.runner import run_stop

RUN = """
import json, sys
import cudart_py as cuda
from library_tour.course import halo
from library_tour.runner import run_stop
halo.all_shown_wrong = lambda programs, devices: []
outcome = run_stop("halo", cuda.Device(0), 61)
rows = {row.name: row.values["strips"] for row in outcome.result.rows}
json.dump({"state": outcome.state, "message": outcome.message, "rows": rows, "notes": outcome.result.notes}, sys.stdout)
"""


@pytest.fixture(scope="module")
def outcome():
    return run_stop("halo", cuda.Device(0), 61)


@pytest.mark.needs("profile")
@pytest.mark.parametrize("count", [2, 4])
def test_strips_of_several_devices_have_the_bits_of_one_and_no_race(python, count):
    environment = {"CUDART_PY_SIMULATOR_DEVICES": str(count), "CUDART_PY_SIMULATOR_CHECKS": "error"}
    found = json.loads(python(RUN, **environment).stdout)
    assert found["state"] == "passed", found
    assert found["rows"] == {"one strip": 1, "in turn": count, "overlapped": count}
    assert not any("one device" in note for note in found["notes"])


def test_a_process_with_one_device_says_what_several_need(outcome):
    if len(cuda.devices()) > 1:
        pytest.skip("this machine has several devices")
    assert outcome.state == "passed"
    assert "mpiexec -n 4 library-tour run halo" in outcome.result.notes[-1]


def test_a_halo_that_is_not_waited_for_is_caught(outcome):
    [row] = [row for row in outcome.result.rows if row.name == "halo not waited for"]
    assert "race" in row.note


@pytest.mark.skipif(not counters.available(), reason="this driver does not count")
def test_edges_of_their_own_cost_loads(outcome):
    rows = {row.name: row.values for row in outcome.result.rows}
    assert rows["overlapped"]["loads"] > rows["in turn"]["loads"] > rows["one strip"]["loads"]


@pytest.mark.parametrize("kernels", [halo.IN_TURN, halo.OVERLAPPED])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_strips_of_a_few_rows_and_of_one(device, kernels, count):
    plate = np.random.default_rng(count).random((9, 12), np.float32)
    cut = halo.Strips([device] * count, *plate.shape)
    cut.fill(plate)
    halo.take_steps(cut, halo.STEPS, kernels)
    device.synchronize()
    np.testing.assert_allclose(cut.collect(plate), halo.reference(plate, halo.STEPS), atol=1e-6)


@pytest.mark.parametrize(("rows", "count"), [(9, 7), (100, 3), (18, 16)])
def test_strips_divide_the_inner_rows_evenly(rows, count):
    cuts = halo.cuts(rows, count)
    assert (cuts[0], cuts[-1], len(cuts)) == (1, rows - 1, count + 1)
    heights = np.diff(cuts)
    assert 1 <= heights.min() <= heights.max() <= heights.min() + 1
