import numpy as np

import cudart_py as cuda
from library_tour.course import nan_check
from library_tour.course.nan_check import NANS, WAYS, load_all, ordinary_numbers
from library_tour.runner import run_stop
from tests.tour.outcomes import counted


def test_infinities_are_ordinary_numbers(rng):
    assert all(np.isinf(ordinary_numbers(rng, 1000, dtype)).any() for dtype in NANS)


def test_a_mask_of_twelve_digits_finds_a_nan_with_low_bits(device):
    first = cuda.full(1, 1, np.uint32)
    load_all()[nan_check.TOO_SHORT][1, 32](cuda.to_device(NANS[np.float64][1:2].view(np.float64)), first, 1)
    assert first.to_host()[0] == 0


def test_a_way_that_finds_no_nan_is_noticed(device, nothing_apart, monkeypatch):
    monkeypatch.setitem(WAYS, "doubles: 13-digit mask", nan_check.Way(nan_check.TOO_SHORT, np.float64))
    outcome = run_stop("nan_check", device, 1000)
    assert [check.fact for check in outcome.failed_checks] == ["doubles: 13-digit mask equals NumPy's result"]


@counted
def test_loads_of_16_bytes_are_a_quarter_as_many(rows):
    assert rows["fixed grid, 16-byte loads"].values["loads"] < 0.3 * rows["bits"].values["loads"]
