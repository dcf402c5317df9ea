from __future__ import annotations

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
