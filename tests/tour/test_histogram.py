from __future__ import annotations

import numpy as np
import pytest

from library_tour.course import histogram
from tests.tour.outcomes import counted


def test_counts_without_atomics_or_barriers_are_reported_as_races(rows):
    assert "histogram_racy" in rows["no atomics"].note
    assert "race" in rows["no atomics"].note
    assert "histogram_unordered" in rows["no barriers"].note
    assert "race" in rows["no barriers"].note


@counted
def test_shared_memory_and_wide_loads_save_requests(rows):
    sectors, loads = (
        {name: row.values[column] for name, row in rows.items() if column in row.values}
        for column in ("atomic sectors", "loads")
    )
    assert sectors["shared memory"] < sectors["global atomics"]
    assert loads["four loads in flight"] < loads["shared memory"] / 3


@pytest.mark.parametrize("size", [2, 3, 400])
def test_values_are_taken_out_and_empty_bins_are_found(device, rng, size):
    values = rng.random(size, np.float32)
    values[0] = 2.0  # outside
    assert all(row.check.holds for row in histogram.other_operations(values))
