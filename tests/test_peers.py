"""The benchmarks that compare with other programs: their reports, and small runs of those that need no GPU."""

import json
from pathlib import Path

import pytest

import cudart_py as cuda
from tests.benchmarks.peers import __main__ as command
from tests.benchmarks.peers import course, report
from tests.benchmarks.peers.report import Bar, Comparison, Report, Table

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(
    ("bar", "ours", "verdict"),
    [
        (Bar.at_least(0.9), 9.0, "ok"),
        (Bar.at_least(0.9), 8.9, "MISSED"),
        (Bar.at_most(1.1), 11.1, "MISSED"),
        (Bar.within(0.1), 11.5, "MISSED"),
        (Bar.above(2.0), 12.0, "ok"),
        (Bar.above(2.0), 12.5, "MISSED"),
        (Bar.above(2.0), None, "not judged"),
        (None, 1.0, ""),
    ],
)
def test_a_figure_is_held_against_its_bar(bar, ours, verdict):
    assert Comparison("x", "us", ours, "rival", 10.0, bar).verdict == verdict


@pytest.mark.parametrize(("verdicts", "status"), [("o", 0), ("", 0), ("on", 2), ("nmo", 1)])
def test_the_exit_status_is_that_of_the_worst_verdict(verdicts, status):
    ours = {"o": 1.0, "n": None, "m": 2.0}
    found = (Comparison("x", "us", ours[one], "rival", 1.0, Bar.at_most(1)) for one in verdicts)
    assert Report.of("host", "a card", found).status == status


def test_a_recorded_report_is_printed_and_put_into_the_page(tmp_path, capsys):
    found = [Comparison("launch", "us", 1.5, "bare", 1.0, Bar.above(1)), Table("All", ["what", "us"], [["x", 2.5]])]
    made = Report.of("host", "a card, today", found)
    made.write(tmp_path / "found.json")
    assert set(json.loads((tmp_path / "found.json").read_text())) == {"benchmark", "where", "tables"}
    page = tmp_path / "page.md"
    page.write_text("# Title\n\ntext\n\n## Measured\n\nold\n")
    assert command.main(["host", "--recorded", str(tmp_path / "found.json"), "--markdown", str(page)]) == 0
    assert capsys.readouterr().out == f"{made}\n"
    assert page.read_text() == f"# Title\n\ntext\n\n## Measured\n\n{made}\n"
    page.write_text("# Title\n")
    with pytest.raises(SystemExit, match="no line '## Measured'"):
        report.write_page(page, "new")
    assert page.read_text() == "# Title\n"


@pytest.mark.parametrize("page", ["estimates-accuracy", "host-cost", "libraries-speed", "measuring-accuracy"])
def test_the_pages_with_measured_figures_have_the_heading(page):
    assert f"\n{report.HEADING}\n" in (DOCS / f"{page}.md").read_text()


def test_the_conditions_name_the_card_and_the_packages_that_are_installed(device):
    text = report.conditions("numpy", "no-such-package")
    assert text.startswith(device.name)
    assert ", numpy " in text
    assert "no-such-package" not in text


@pytest.mark.parametrize("count", [1, 2])
def test_bars_between_two_devices_are_judged_only_where_there_are_two(monkeypatch, device, count):
    monkeypatch.setattr(cuda, "devices", lambda: (device,) * count)
    assert [bar.of for bar in course.bars_of("peer")] == [396.0, 372.0][: 2 * (count - 1)]


def test_without_a_c_compiler_the_graph_in_c_is_said_to_be_missing(monkeypatch):
    monkeypatch.setattr(course, "compile_c", lambda: None)
    [rival] = course.steps_in_c()
    assert (rival.name, rival.rate) == (course.C_GRAPH, None)
    assert rival.trouble


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["simulator", "--scale", "16"], {"saxpy", "collatz", "bodies", "transpose", "matmul"}),
        (["programs", "--small", "--seconds", "0", "--only", "FFT"], {"FFT"}),
    ],
)
def test_what_needs_no_gpu_runs_at_a_small_size(python, tmp_path, arguments, names):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    arguments = [*arguments, "--json", str(tmp_path / "found.json")]
    python(f"from tests.benchmarks.peers.__main__ import main; main({arguments!r})")
    compared = Report.read(tmp_path / "found.json").tables[0]
    assert {row[0] for row in compared.rows} == names
    assert all(row[2] > 0 for row in compared.rows)
