from __future__ import annotations

import numpy as np

from library_tour.course import texture
from tests.tour.outcomes import counted


@counted
def test_a_warp_along_a_turned_row_touches_a_sector_for_each_lane_and_one_of_a_patch_few(rows):
    along, patch = rows["plain loads"].values, rows["plain, 8 x 4 warps"].values
    assert along["sectors 90°"] > 6 * along["sectors 0°"]
    assert all(patch[f"sectors {angle}°"] < 3 * patch["sectors 0°"] for angle in texture.ANGLES)


@counted
def test_a_texture_fetch_and_ldg_touch_what_a_plain_load_does(rows):
    fetched, ldg, plain = (rows[name].values for name in ("texture", "__ldg", "plain loads"))
    assert all(fetched[f"sectors {angle}°"] == plain[f"sectors {angle}°"] for angle in texture.ANGLES)
    # The other instructions are the compiler's choice: those of NVRTC 13.0 differ.
    assert {**ldg, "instructions": None} == {**plain, "instructions": None}


@counted
def test_the_texture_unit_saves_the_instructions_of_a_filter(rows):
    assert rows["filter: plain loads"].values["instructions"] > 2 * rows["filter: texture"].values["instructions"]


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
