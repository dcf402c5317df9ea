from __future__ import annotations

import numpy as np
import pytest

from library_tour.course import synchronization


def test_a_missing_wait_is_reported_as_a_race(rows):
    for name in ("no __syncthreads()", "no __syncwarp()", "block's barrier for a grid"):
        assert rows[name].check.word == "caught"
        assert "race: it reads" in rows[name].note
    # The barrier of a block does not wait for what another block writes.
    assert "block (1, 0, 0), thread (0, 0, 0) wrote" in " ".join(rows["block's barrier for a grid"].note.split())


def test_the_grids_barrier_needs_a_cooperative_launch_of_blocks_that_fit(rows):
    assert rows["grid.sync(), plain launch"].check.word == "caught"
    assert "trap executed" in rows["grid.sync(), plain launch"].note
    assert rows["more blocks than fit"].check.word == "refused"
    assert "resident at once" in rows["more blocks than fit"].note


def test_votes_tell_bits_all_and_any():
    x = np.zeros(96, np.int32)
    x[:32] = 1
    x[33] = x[63] = 1
    assert synchronization.votes_of_warps(x).tolist() == [-1, 1, 1, 2 - 2**31, 0, 1, 0, 0, 0]


def test_votes_of_a_block_count():
    x = np.zeros(512, np.int32)
    x[:256] = 1
    x[300] = 1
    assert synchronization.votes_of_blocks(x).tolist() == [256, 1, 1, 1, 0, 1]


def test_smoothing_goes_round_a_ring():
    assert synchronization.smoothed(np.array([4, 0, 0, 0], np.float32), 1).tolist() == [0, 2, 0, 2]


@pytest.mark.parametrize("size", [1, 2, 257])
def test_both_ways_smooth_any_number_of_numbers(size, rng, device):
    for variant in synchronization.smoothing(device, synchronization.load_all(), rng, size):
        variant.prepare()
        variant.launch()
        assert np.allclose(variant.output.to_host(), variant.expected, atol=1e-6)
