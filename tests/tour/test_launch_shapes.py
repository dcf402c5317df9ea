from __future__ import annotations

import numpy as np
import pytest

from library_tour.course import launch_shapes
from library_tour.course.launch_shapes import REFUSED, VALID, WARP, Shape, cooled, numbers
from library_tour.device_code import load
from library_tour.stop import Curve
from tests.tour.outcomes import counted


def test_a_shape_is_written_as_in_c():
    assert str(Shape((10,), (256,))) == "<<<10, 256>>>"
    assert str(Shape((3, 3, 3), (4, 2))) == "<<<(3, 3, 3), (4, 2)>>>"


def test_threads_are_numbered_block_after_block_with_x_fastest():
    assert numbers(Shape((2, 2), (2, 2))).tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]]


def test_the_lectures_temperatures_cool_as_there():
    assert cooled(np.array([42, 24, 50], np.float32)).tolist() == [31, 22, 35]


def test_the_valid_shapes_number_all_their_threads(result):
    rows = next(iter(result.tables.values()))
    assert [row.name for row in rows] == [str(shape) for shape in VALID]
    assert all(row.check.holds for row in rows)


def test_each_invalid_shape_is_refused_with_the_axis_or_the_number_of_threads(result):
    rows = list(result.tables.values())[1]
    words = ["block.x", "2000 threads", "block.z", "grid.y", "grid.z", "grid.x", "grid.x"]
    for row, shape, word in zip(rows[1:], REFUSED, words, strict=True):
        assert (row.name, row.check.word, row.check.holds) == (str(shape), "refused", True)
        assert word in row.note


def test_a_shape_that_is_allowed_fails_as_a_refused_one(device):
    row = launch_shapes.refused(load("launch_shapes")["nothing"], VALID[0])
    assert not row.check.holds


@counted
def test_one_thread_takes_32_times_the_instructions_of_a_warp_and_a_block_along_columns_a_sector_a_thread(rows):
    values = {name: row.values for name, row in rows.items()}
    assert values["1 thread"]["active lanes"] == 1
    assert values["1 thread"]["instructions"] / values["32 threads"]["instructions"] == pytest.approx(32, rel=0.1)
    assert values["matrix, 1 x 256"]["sectors/load"] > 4 * values["matrix, 32 x 8"]["sectors/load"]


@counted
def test_the_curve_falls_behind_each_multiple_of_a_warp(result):
    [curve] = [picture for picture in result.pictures if isinstance(picture, Curve)]
    lanes = dict(curve.lines["a thread a cell"])
    for threads in (WARP, 2 * WARP, 3 * WARP):
        assert lanes[threads] == pytest.approx(WARP, rel=0.01)
        assert lanes[threads + 1] < 0.8 * lanes[threads]
