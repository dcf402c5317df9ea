import pytest

from library_tour.course.launch_shapes import WARP
from tests.tour.outcomes import counted


@counted
def test_one_thread_needs_32_times_the_instructions_of_a_warp_and_a_block_along_columns_more_sectors(rows):
    values = {name: row.values for name, row in rows.items()}
    assert values["1 thread"]["active lanes"] == 1
    assert values["1 thread"]["instructions"] / values["32 threads"]["instructions"] == pytest.approx(32, rel=0.1)
    assert values["matrix, 1 x 256"]["sectors/load"] > 4 * values["matrix, 32 x 8"]["sectors/load"]


@counted
def test_the_curve_falls_after_each_multiple_of_a_warp(result):
    [curve] = result.pictures
    lanes = dict(curve.lines["one thread per cell"])
    for threads in (WARP, 2 * WARP, 3 * WARP):
        assert lanes[threads] == pytest.approx(WARP, rel=0.01)
        assert lanes[threads + 1] < 0.8 * lanes[threads]
