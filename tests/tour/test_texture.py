from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters
from library_tour.course import texture
from library_tour.runner import run_stop

counted = pytest.mark.skipif(not counters.available(), reason="this driver does not count")
SIZE = 100


@pytest.fixture(scope="module")
def rows():
    return {row.name: row.values for row in run_stop("texture", cuda.Device(0), SIZE).result.rows}


@counted
def test_a_warp_along_a_turned_row_touches_a_sector_for_each_lane(rows):
    assert rows["plain loads"]["sectors 90°"] > 6 * rows["plain loads"]["sectors 0°"]


@counted
def test_a_warp_of_a_patch_touches_few_sectors_at_any_angle(rows):
    for angle in texture.ANGLES:
        assert rows["plain, 8 x 4 warps"][f"sectors {angle}°"] < 3 * rows["plain, 8 x 4 warps"]["sectors 0°"]


@counted
def test_a_texture_fetch_touches_what_a_plain_load_does(rows):
    for angle in texture.ANGLES:
        fetched, loaded = (rows[name][f"sectors {angle}°"] for name in ("texture", "plain loads"))
        assert fetched == loaded


@counted
def test_ldg_loads_what_a_plain_load_does(rows):
    """The other instructions are the compiler's choice: those of NVRTC 13.0 differ."""
    ldg, plain = ({**rows[name], "instructions": None} for name in ("__ldg", "plain loads"))
    assert ldg == plain


@counted
def test_the_texture_unit_saves_the_instructions_of_a_filter(rows):
    assert rows["filter: plain loads"]["instructions"] > 2 * rows["filter: texture"]["instructions"]


def test_each_wrong_kernel_is_noticed(changed_kernels):
    changes = {
        "plain loads": (
            "? in[shape.place(column, row)] : 0.0f;\n    });",
            "? in[shape.place(column, row)] : 1.0f;\n    });",
        ),
        "texture": ("(y >> PLACE_BITS) + 0.5f", "(y >> PLACE_BITS) + 1.0f"),
        "shared memory": ("box[y][x] =", "box[y ^ 1][x] ="),
        "filter: plain loads": ("texel(column + 1, row + 1)", "texel(column + 1, row)"),
        "filter: texture": ("rounded(x) / unit, rounded(y)", "rounded(y) / unit, rounded(x)"),
    }
    changed_kernels("texture", dict(changes.values()))
    rows = run_stop("texture", cuda.Device(0), SIZE).result.rows
    wrong = {row.name for row in rows if not row.check.holds}
    assert wrong == {*changes, "plain, 8 x 4 warps", "texture, 8 x 4 warps"}


def test_a_rotation_by_nothing_keeps_the_image_and_by_90_degrees_turns_it():
    image = np.random.default_rng(1).random((6, 6), np.float32)
    assert (texture.nearest(image, texture.rotation(0, 6, 6)) == image).all()
    assert (texture.nearest(image, texture.rotation(90, 6, 6)) == np.rot90(image)).all()


def test_outside_of_the_image_is_zero():
    image = np.ones((4, 8), np.float32)
    turned = texture.nearest(image, texture.rotation(90, 4, 8))
    assert turned.sum() == 16
    assert (turned[:, 2:6] == 1).all()


def test_the_filter_weights_by_distance():
    image = np.array([[0, 4], [8, 12]], np.float32)
    quarter = 2**texture.PLACE_BITS // 4
    turn = np.array((0, 0, 3 * quarter, 4 * quarter), texture.ROTATION)[()]
    # A quarter from the first column's middle to the second's, and half-way between the rows.
    assert (texture.filtered(image, turn) == ((0 + 0.25 * 4) + (8 + 0.25 * 4)) / 2).all()
