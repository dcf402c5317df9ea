from __future__ import annotations

import numpy as np
import pytest

from library_tour.course import synchronization


def test_a_missing_wait_is_reported_as_a_race(rows):
    for name in ("no __syncthreads()", "no __syncwarp()", "block's barrier for a grid"):
        assert "race: it reads" in rows[name].note
    # The barrier of a block does not wait for what another block writes.
    assert "block (1, 0, 0), thread (0, 0, 0) wrote" in " ".join(rows["block's barrier for a grid"].note.split())
    # That of the grid needs a cooperative launch of blocks that fit.
    assert "trap executed" in rows["grid.sync(), plain launch"].note
    assert "resident at once" in rows["more blocks than fit"].note


@pytest.mark.parametrize("size", [1, 2, 257])
def test_both_ways_smooth_any_number_of_numbers(size, rng, device):
    for variant in synchronization.smoothing(device, synchronization.load_all(), rng, size):
        variant.prepare()
        variant.launch()
        assert np.allclose(variant.output.to_host(), variant.expected, atol=1e-6)
