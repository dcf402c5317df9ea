"""Diagrams of lessons: each belongs to a step, and known patterns show the right sectors, banks, lanes and cells."""

import re
from xml.etree import ElementTree

import pytest

from library_tour import lesson
from library_tour.__main__ import main
from library_tour.diagrams import drawn, table
from library_tour.diagrams.drawn import diagrams_of
from library_tour.diagrams.timelines import timeline_diagram
from library_tour.stop import Timeline
from tests.tour.outcomes import outcome


def captions(stop: str) -> list[tuple[str, str]]:
    return [(diagram.step, diagram.described.rpartition("). ")[2]) for diagram in diagrams_of(stop)]


@pytest.fixture
def run_before(name):
    """Run a stop, so that its diagrams are drawn from kernels that are compiled already."""
    outcome(name)


@pytest.mark.parametrize("name", table.DIAGRAMS)
def test_each_diagram_belongs_to_a_step_and_fits_a_terminal_and_a_page(run_before, device, name):
    found = diagrams_of(name)
    assert found
    order = [step.name for step in lesson.load(name).steps]
    assert {diagram.step for diagram in found} <= set(order)
    for diagram in found:
        assert diagram.says.endswith(".")
        assert diagram.described.endswith(".")
        root = ElementTree.fromstring(diagram.svg)
        width = float(root.attrib["viewBox"].split()[2])
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert 0 <= float(text.attrib["x"]) <= width
        assert all(len(line) <= 80 for line in diagram.text.splitlines())
    assert sorted(found, key=lambda diagram: order.index(diagram.step)) == found or name == "streams"


def test_strides_and_offsets_touch_their_sectors(device):
    sectors = {step: int(re.match(r"\d+", caption)[0]) for step, caption in captions("stride_and_offset")}
    assert sectors == {"stride 1": 4, "stride 2": 8, "stride 8": 32, "offset 1": 5, "offset 8": 4}


def test_the_shape_of_a_block_decides_how_many_rows_a_warp_loads_from(device):
    assert [int(re.match(r"\d+", caption)[0]) for _, caption in captions("launch_shapes")] == [4, 4, 32]


def test_a_padded_tile_has_its_column_in_all_banks(device):
    found = captions("transpose")
    tiles = [re.search(r"words that the warp loads lie in (\d+)", caption) for _, caption in found]
    assert [tile[1] for tile in tiles if tile] == ["1", "32"]
    wavefronts = {step: caption for step, caption in found if "wavefront" in caption}
    assert wavefronts["tile"].startswith("32 wavefronts")
    assert wavefronts["tile, padded by one"].startswith("1 wavefront ")


def test_conflicts_follow_the_stride(device):
    counts = [int(re.match(r"\d+", caption)[0]) for _, caption in captions("bank_conflicts")]
    assert counts == [1, 2, 1, 32, 1]  # strides 1, 2, 3, 32 and 0


@pytest.mark.parametrize("name", ["reduction", "dot_product"])
def test_a_tree_halves_the_lanes_in_each_step(run_before, device, name):
    for diagram in diagrams_of(name):
        if "tree" in diagram.text:
            marks = re.findall(r"\[([#.]{32})\]", diagram.text)
            assert marks == ["#" * count + "." * (32 - count) for count in (32, 16, 8, 4, 2, 1)]
            assert re.findall(r"adds lane i \+ (\d+)", diagram.text) == ["16", "8", "4", "2", "1"]


def test_a_shuffle_stays_within_its_width_and_prints_nothing(device, capfd):
    rows = [re.findall(r"read from (.*)", diagram.text) for diagram in diagrams_of("debug_print")]
    assert [of_width[1].split() for of_width in rows] == [
        ["10", "11", "12", "13", "14", "15", "16", "17"],
        ["10", "11", "12", "13", "14", "15", "14", "15"],
    ]
    assert capfd.readouterr().out == ""


def test_a_block_reads_a_rim_of_one_cell(device):
    diagram = diagrams_of("heat")[0]
    assert "computes 256 cells and reads 340: the other 84" in diagram.text
    rows = [line.strip() for line in diagram.text.splitlines() if set(line.strip()) <= set("#o") and line.strip()]
    assert rows == ["o" * 34, *["o" + "#" * 32 + "o"] * 8, "o" * 34]


def test_a_timeline_says_when_each_run_ends():
    lanes = {"one: a": [(0.0, 1.0), (1.0, 2.0)], "one: b": [(1.0, 4.0)], "two: a": [(0.0, 2.0)]}
    text = str(timeline_diagram(Timeline("t", lanes, "ms"), "A title"))
    assert text.endswith("The work ends: one after 4 ms, two after 2 ms.")
    assert "one: a [" + "#" * 13 + "=" * 13 + "." * 26 + "]" in text


def test_a_process_of_its_own_draws_the_same(device):
    assert drawn._elsewhere("bank_conflicts") == diagrams_of("bank_conflicts")


def test_show_draws_where_it_is_asked_to(capsys):
    assert main(["show", "stride_and_offset", "--size", "64"]) == 0
    assert "sector  0" not in capsys.readouterr().out
    assert main(["show", "stride_and_offset", "--size", "64", "--draw"]) == 0
    out = capsys.readouterr().out
    assert "  sector  0  [.#######]  byte 0       lanes 0-6" in out
    assert out.index("5 sectors, 128 of 160 bytes used (80 %).") < out.index("What to look at")
