import numpy as np

from library_tour.course import heat
from library_tour.device_code import load
from tests.tour.outcomes import counted


@counted
def test_a_tile_saves_loads_and_costs_instructions(rows):
    plain, tiled = rows["one thread per cell"].values, rows["shared-memory tile"].values
    assert tiled["loads"] < plain["loads"]
    assert tiled["instructions"] > plain["instructions"]


def test_an_unexpected_asymmetry_is_noticed_and_a_difference_of_a_tenth_is_allowed(device):
    module = load("heat", names=[heat.ROWS])
    plate = heat.make_plate(20, 300)
    for value, holds in ((plate[0, 270], True), (plate[0, 270] + np.float32(0.1), True), (0.5, False)):
        plate[0, 270] = value
        check = heat.asymmetry_row(module, plate).check
        assert check.holds == holds
    assert "column 270" in check.detail
