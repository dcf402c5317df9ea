"""Where the accesses to a surface lie."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.surfaces import Surface, located


def places(surface: Surface, coordinates: tuple[list[int], ...], size: int) -> tuple[list[int], list[bool]]:
    place, outside = located(surface, [np.array(axis, np.int32) for axis in coordinates], size)
    return place.tolist(), outside.tolist()


def test_rows_and_planes_follow_each_other() -> None:
    surface = Surface(0, 28, 5, 3, 32, 160, False)
    assert places(surface, ([4, 24], [0, 4], [0, 2]), 4) == ([4, 24 + 4 * 32 + 2 * 160], [False, False])


def test_the_layer_comes_first() -> None:
    assert places(Surface(0, 28, 0, 3, 32, 32, True), ([2], [8]), 4) == ([8 + 2 * 32], [False])
    assert places(Surface(0, 28, 5, 3, 32, 160, True), ([2], [8], [1]), 4) == ([8 + 32 + 2 * 160], [False])


@pytest.mark.parametrize(("x", "size", "place"), [(-1, 4, 0), (28, 4, 24), (24, 8, 16), (99, 16, 0), (0, 64, 0)])
def test_what_reaches_outside_has_the_nearest_place_inside(x: int, size: int, place: int) -> None:
    assert places(Surface(0, 28, 0, 0, 32, 32, False), ([x],), size) == ([place], [True])


def test_every_axis_has_its_end() -> None:
    surface = Surface(0, 28, 5, 3, 32, 160, False)
    assert places(surface, ([0, 0, 0], [5, -1, 0], [0, 0, 3]), 4) == ([4 * 32, 0, 2 * 160], [True, True, True])
