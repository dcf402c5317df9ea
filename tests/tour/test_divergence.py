import pytest

from library_tour.course import divergence
from tests.tour.outcomes import counted


@counted
def test_a_warp_executes_what_any_of_its_lanes_takes(rows):
    instructions = {name: row.values["instructions"] for name, row in rows.items()}
    lanes = {name: row.values["active lanes"] for name, row in rows.items()}
    one = instructions["one function"]
    assert 7.5 < instructions["8 functions, by lane"] / one < 8
    assert instructions["8 functions, by warp"] / one < 1.05
    then = instructions["all then"]
    assert instructions["x % 2"] == pytest.approx(then + instructions["all else"], rel=0.03)
    for name in ("x % 2", "16 x 16: x % 2", "16 x 16: x < 8", "16 x 16: y % 2"):
        assert 16 < lanes[name] < 17
    for name in ("x < 128", "16 x 16: y < 8", "32 x 8: y % 2"):
        assert lanes[name] == 32
        assert instructions[name] == pytest.approx(then, rel=0.03)
    # The bound 100 is inside one of the eight warps of a block.
    assert instructions["x < 100"] / then == pytest.approx(9 / 8, rel=0.03)
    assert lanes[divergence.SELECTED] == 32 > lanes[divergence.IN_LOOPS]


@counted
def test_divergence_costs_more_the_longer_the_functions_are(result):
    [picture] = result.pictures
    one, by_lane = ([count for _, count in picture.lines[name]] for name in ("one function", "8 functions, by lane"))
    assert by_lane[0] / one[0] < 5
    assert by_lane[-1] / one[-1] > 7.5
