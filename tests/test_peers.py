"""What the scripts that compare speeds share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import cudart_py as cuda

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import bars

    yield bars
    del sys.modules["bars"]


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [(["ok", ""], 0), ([], 0), (["ok", "not judged"], 2), (["not judged", "MISSED", "ok"], 1)],
)
def test_the_exit_status_is_that_of_the_worst_verdict(bars, verdicts, status):
    assert bars.exit_status(map(bars.Verdict, verdicts)) == status


def test_a_tables_columns_are_as_wide_as_their_widest_cell(bars):
    assert bars.table(("what", "us"), [("a launch", "3.25"), ("b", "12.25")], right=" r").splitlines() == [
        "| what     |    us |",
        "| -------- | ----: |",
        "| a launch |  3.25 |",
        "| b        | 12.25 |",
    ]


def test_a_page_keeps_what_stands_before_its_heading(bars, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\ntext\n\n## Measured\n\nold\n")
    bars.write_page(page, "new")
    assert page.read_text() == "# Title\n\ntext\n\n## Measured\n\nnew\n"


def test_a_page_without_the_heading_is_refused_and_stays_as_it_is(bars, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n")
    with pytest.raises(SystemExit, match="has no line '## Measured'"):
        bars.write_page(page, "new")
    assert page.read_text() == "# Title\n"


@pytest.mark.parametrize("page", ["host-cost.md", "libraries.md", "measuring.md"])
def test_the_pages_that_the_scripts_write_have_the_heading(bars, page):
    assert f"\n{bars.HEADING}\n" in (SCRIPTS.parent / "docs" / page).read_text()


def test_what_was_found_is_read_as_it_was_written(bars, tmp_path):
    record = {"where": "a card", "rows": [1.5, "ok"]}
    bars.keep(tmp_path / "found.json", record)
    assert bars.recall(tmp_path / "found.json") == record


def test_the_conditions_name_the_card_and_the_packages_that_are_installed(bars, device):
    text = bars.conditions(device, "numpy", "no-such-package")
    assert text.startswith(device.name)
    assert ", numpy " in text
    assert "no-such-package" not in text


@pytest.mark.parametrize("count", [1, 2])
def test_bars_between_two_devices_are_judged_only_where_there_are_two(bars, monkeypatch, device, count):
    import course_bars

    monkeypatch.setattr(cuda, "devices", lambda: (device,) * count)
    assert [bar.of for bar in course_bars.bars_of("peer")] == [396.0, 372.0][: 2 * (count - 1)]


def test_without_a_c_compiler_the_graph_in_c_is_said_to_be_missing(bars, monkeypatch):
    import course_bars

    monkeypatch.setattr(course_bars, "compile_c", lambda: None)
    [rival] = course_bars.steps_in_c()
    assert (rival.name, rival.rate) == (course_bars.C_GRAPH, None)
    assert rival.trouble
