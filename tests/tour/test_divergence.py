from __future__ import annotations

import pytest

import cudart_py as cuda
from library_tour import counters
from library_tour.course import divergence
from library_tour.runner import run_stop

counted = pytest.mark.skipif(not counters.available(), reason="this driver does not count")


@pytest.fixture(scope="module")
def result():
    return run_stop("divergence", cuda.Device(0), 2**12).result  # whole blocks


@pytest.fixture(scope="module")
def instructions(result):
    return {row.name: row.values["instructions"] for row in result.all_rows}


@pytest.fixture(scope="module")
def lanes(result):
    return {row.name: row.values["active lanes"] for row in result.all_rows}


@counted
def test_eight_functions_by_lane_cost_almost_eight_times_as_much_and_by_warp_no_more(instructions):
    one = instructions["one function"]
    assert 7.5 < instructions["8 functions, by lane"] / one < 8
    assert instructions["8 functions, by warp"] / one < 1.05


@counted
def test_a_divergent_warp_executes_both_sides(instructions):
    sides = instructions["all then"] + instructions["all else"]
    assert instructions["x % 2"] == pytest.approx(sides, rel=0.03)


@counted
@pytest.mark.parametrize("name", ["x < 128", "16 x 16: y < 8", "32 x 8: y % 2"])
def test_whole_warps_that_agree_execute_one_side(instructions, lanes, name):
    assert lanes[name] == 32
    assert instructions[name] == pytest.approx(instructions["all then"], rel=0.03)


@counted
@pytest.mark.parametrize("name", ["x % 2", "16 x 16: x % 2", "16 x 16: x < 8", "16 x 16: y % 2"])
def test_a_condition_that_differs_in_each_warp_halves_the_active_lanes(lanes, name):
    assert 16 < lanes[name] < 17


@counted
def test_a_bound_within_a_warp_makes_one_warp_of_eight_diverge(instructions):
    assert instructions["x < 100"] / instructions["all then"] == pytest.approx(9 / 8, rel=0.03)


@counted
def test_selected_factors_leave_all_lanes_active(lanes):
    assert lanes[divergence.SELECTED] == 32 > lanes[divergence.IN_LOOPS]


@counted
def test_the_longer_the_functions_the_more_of_the_instructions_are_theirs(result):
    [picture] = result.pictures
    one, by_lane = ([count for _, count in picture.lines[name]] for name in ("one function", "8 functions, by lane"))
    assert by_lane[0] / one[0] < 5
    assert by_lane[-1] / one[-1] > 7.5


def test_another_function_or_another_pass_changes_numbers_by_more_than_the_tolerance(rng):
    x = rng.random(256, "f4")
    one = divergence.reference(x, divergence.LINE * 0, divergence.PASSES)
    assert abs(one - divergence.reference(x, divergence.LINE * 0 + 1, divergence.PASSES)).min() > divergence.TOLERANCE
    assert abs(one - divergence.reference(x, divergence.LINE * 0, divergence.PASSES - 1)).min() > divergence.TOLERANCE


def test_a_warp_that_applies_another_function_is_noticed(changed_kernels, device):
    changed_kernels("divergence", {"return threadIdx.x / 32 % 8;": "return threadIdx.x / 64 % 8;"})
    outcome = run_stop("divergence", device, 500)
    assert {check.fact for check in outcome.failed_checks} == {"8 functions, by warp equals NumPy's result"}
