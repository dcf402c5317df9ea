from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import synchronization
from library_tour.runner import run_stop


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for row in run_stop("synchronization", cuda.Device(0), 3001).result.all_rows}


@pytest.mark.parametrize("name", ["no __syncthreads()", "no __syncwarp()", "block's barrier for a grid"])
def test_a_missing_wait_is_reported_as_a_race(rows, name):
    assert rows[name].check.word == "caught"
    assert "race: it reads" in rows[name].note


def test_the_barrier_of_a_block_does_not_wait_for_what_another_block_writes(rows):
    assert "block (1, 0, 0), thread (0, 0, 0) wrote" in " ".join(rows["block's barrier for a grid"].note.split())


def test_the_grids_barrier_in_an_ordinary_launch_ends_the_kernel(rows):
    assert rows["grid.sync(), plain launch"].check.word == "caught"
    assert "trap executed" in rows["grid.sync(), plain launch"].note


def test_more_blocks_than_the_device_holds_are_refused(rows):
    assert rows["more blocks than fit"].check.word == "refused"
    assert "can be resident at once" in rows["more blocks than fit"].note


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


def test_a_kernel_that_leaves_out_the_ring_is_noticed(changed_kernels, device):
    changed_kernels("synchronization", {"in[i == 0 ? n - 1 : i - 1]": "in[i == 0 ? 0 : i - 1]"})
    outcome = run_stop("synchronization", device, 500)
    assert {check.fact for check in outcome.failed_checks} == {
        f"{name} equals NumPy's result" for name in (synchronization.STEPWISE, synchronization.AT_ONCE)
    }
