import numpy as np
import pytest

from library_tour.course import histogram
from tests.tour.outcomes import counted


@counted
def test_shared_memory_and_wide_loads_save_requests(rows):
    names = ("shared memory", "global atomics", "four loads in flight")
    shared, global_memory, wide = (rows[name].values for name in names)
    assert shared["atomic sectors"] < global_memory["atomic sectors"]
    assert wide["loads"] < shared["loads"] / 3


@pytest.mark.parametrize("size", [2, 3, 400])
def test_values_are_removed_and_empty_bins_are_found(device, rng, size):
    values = rng.random(size, np.float32)
    values[0] = 2.0  # outside
    assert all(row.check.holds for row in histogram.other_operations(values))
