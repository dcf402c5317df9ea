from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters
from library_tour.course import logical_and
from library_tour.runner import run_stop

counted = pytest.mark.skipif(not counters.available(), reason="this driver does not count")


@pytest.fixture(scope="module")
def result():
    return run_stop("logical_and", cuda.Device(0), 2**17 + 3).result


@pytest.fixture(scope="module")
def rows(result):
    return {row.name: row for row in result.rows}


def test_every_way_is_right(rows):
    right = {name for name, row in rows.items() if row.check.holds and row.check.word == "right"}
    assert right == set(logical_and.KERNELS)


def test_the_numbers_are_true_and_most_pairs_have_no_bit_in_common(rng):
    x = logical_and.true_numbers(rng, 1000)
    assert (x != 0).all()
    assert ((x[1:] & x[:-1]) == 0).mean() > 0.9


def test_a_shuffle_behind_a_logical_and_is_reported_with_the_lane_that_takes_no_part(rows):
    row = rows["shuffle behind &&"]
    assert row.check.word == "caught"
    assert "the result is true, although lane 5 has a zero" in row.note
    assert "a shuffle at kernels/logical_and.cu" in row.note
    assert "read it from lane 5 of the warp, which takes no part" in row.note


@counted
def test_a_vote_writes_only_where_a_block_has_a_zero(rows):
    atomics = {name: row.values["atomics"] for name, row in rows.items() if "atomics" in row.values}
    assert atomics["an atomic a thread"] > 7 * atomics["tree, an atomic a block"]
    assert atomics["a block's vote"] == 3  # the arrays with a zero


@counted
def test_early_exit_reads_less_the_earlier_the_zero_is(result):
    [curve] = result.pictures
    early = [loads for _, loads in curve.lines["loads, early exit"]]
    assert early == sorted(early)
    assert early[0] < 0.5 * curve.lines["loads, to the end"][0][1] < early[-1]


@pytest.mark.parametrize("name", logical_and.KERNELS)
@pytest.mark.parametrize("size", [1, 3, 4, 4097])
def test_a_zero_is_found_wherever_it_is(name, size, device):
    found = cuda.empty(1, np.int32)
    for place in {0, size // 2, size - 1}:
        x = cuda.to_device(logical_and.with_zero(np.ones(size, np.int32), place))
        logical_and.joining(device, name, x, found)()
        assert found.to_host()[0] == 0


def test_a_kernel_that_joins_bits_and_not_truths_is_noticed(changed_kernels, device):
    changed_kernels("logical_and", {"(group.x != 0) & (group.y != 0) &": "(group.x & group.y) &"})
    outcome = run_stop("logical_and", device, 2**14)
    assert "four loads in flight equals NumPy's result" in [check.fact for check in outcome.failed_checks]
