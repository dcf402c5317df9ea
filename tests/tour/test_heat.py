from __future__ import annotations

import re

import numpy as np

from library_tour.course import heat
from library_tour.device_code import load
from tests.tour.outcomes import counted


def test_both_kernels_without_bounds_tests_are_caught_reading_outside(rows):
    assert "heat_unbounded" in rows["no bounds test"].note
    assert "asymmetry_unbounded" in rows["check, no bounds test"].note
    assert re.search(
        r" at (library_tour/)?kernels/heat\.cu:", rows["no bounds test"].note
    )  # without a reader's folders
    assert all("out of bounds" in rows[name].note for name in ("no bounds test", "check, no bounds test"))


@counted
def test_a_tile_saves_loads_and_costs_instructions(rows):
    plain, tiled = rows["a thread a cell"].values, rows["through a tile"].values
    assert tiled["loads"] < plain["loads"]
    assert tiled["instructions"] > plain["instructions"]


def test_an_asymmetry_that_the_kernel_does_not_expect_is_noticed(device):
    module = load("heat", names=[heat.ROWS])
    plate = heat.make_plate(20, 300)
    assert heat.asymmetry_row(module, plate).check.holds
    plate[0, 270] = 0.5
    check = heat.asymmetry_row(module, plate).check
    assert not check.holds
    assert "column 270" in check.detail


def test_a_difference_of_a_tenth_is_none(device):
    plate = np.zeros((8, 8), np.float32)
    plate[0, 3] = 0.1
    assert heat.asymmetry_row(load("heat", names=[heat.ROWS]), plate).check.holds
