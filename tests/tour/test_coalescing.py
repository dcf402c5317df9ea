import pytest

from tests.tour.outcomes import counted

SECTORS = {
    "neighbours": 4,
    "neighbours, any order": 4,
    "2 lanes per element": 2,
    "32 lanes per element": 1,
    "8 elements, contiguous": 32,
    "8 elements, block stride": 4,
    "8 elements, vector loads": 16,
    "one thread per column": 4,
    "one thread per row": 32,
}


@counted
def test_each_load_touches_the_expected_sectors(rows):
    sectors = {name: rows[name].values["sectors/load"] for name in SECTORS}
    assert sectors == pytest.approx(SECTORS, rel=0.03)  # the last warp has fewer lanes
    assert rows["one warp per row"].values["sectors/load"] <= 4


@counted
def test_the_curve_rises_to_one_sector_per_lane(result):
    [curve] = result.pictures
    contiguous = [sectors for _, sectors in curve.lines["contiguous"]]
    assert contiguous == pytest.approx([4, 8, 16, 32, 32, 32], rel=0.1)
    assert max(sectors for _, sectors in curve.lines["block stride"]) <= 4
