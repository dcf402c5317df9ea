import pytest

from tests.tour.outcomes import counted

SECTORS = {
    "neighbours": 4,
    "neighbours in any order": 4,
    "2 lanes read a number": 2,
    "32 lanes read a number": 1,
    "8 a thread, contiguous": 32,
    "8 a thread, block-strided": 4,
    "8 a thread, 16 bytes a load": 16,
    "a thread for each column": 4,
    "a thread for each row": 32,
}


@counted
def test_a_load_touches_so_many_sectors(rows):
    found = {name: rows[name].values["sectors/load"] for name in SECTORS}
    assert found == pytest.approx(SECTORS, rel=0.03)  # the last warp has fewer lanes
    assert rows["a warp for each row"].values["sectors/load"] <= 4


@counted
def test_the_curve_rises_to_a_sector_for_each_lane(result):
    [curve] = result.pictures
    contiguous = [sectors for _, sectors in curve.lines["contiguous"]]
    assert contiguous == pytest.approx([4, 8, 16, 32, 32, 32], rel=0.1)
    assert max(sectors for _, sectors in curve.lines["block-strided"]) <= 4
