from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from library_tour import report
from library_tour.runner import Outcome
from library_tour.stop import Check, Limit, Result, Row


def text(thing: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(thing)
    return console.file.getvalue()


def outcome(result: Result, state: str = "passed", message: str = "") -> Outcome:
    return Outcome("idea", "What it shows", 1000, "grains", 0.1, state, result, message)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (3160.4, "3,160"),
        (501.96, "502"),
        (55.23, "55.2"),
        (0.0123456, "0.0123"),
        (1.7e-5, "1.7e-05"),
        (0.0, "0.00"),
        (-2.5, "-2.50"),
        (99.98, "100"),
    ],
)
def test_numbers_have_about_four_digits(value, shown):
    assert report.number(value) == shown


def test_fractions_and_what_is_used_of_the_bytes_moved_are_in_per_cent():
    assert report.cell("of limit", 0.9537).plain == " 95.4 % ██████▋"
    assert report.cell("used by loads", 0.125).plain == "12.5 %"


@pytest.mark.parametrize(("fraction", "filled"), [(0.0, 0), (3 / 7, 3), (1.0, 7), (1.3, 7)])
def test_a_bar_is_full_at_the_limit_and_beyond(fraction, filled):
    assert report.bar(fraction) == "█" * filled + " " * (7 - filled)


def test_columns_come_in_the_order_of_their_first_use():
    shown = text(report.table([Row("a", {"ms": 1.0}), Row("b", {"ms": 2.0, "GB/s": 3.0})]))
    header = shown.splitlines()[0]
    assert header.split() == ["ms", "GB/s"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("a name as long as they go", {"ms": 12.3456, "GB/s": 1234.5, "of limit": 0.995, "course GB/s": 165}),
        (
            "four loads in flight",
            {"10": 4388.0, "10 equal": 4388.0, "256": 4289.0, "256 equal": 4381.0, "of limit": 0.912},
        ),
    ],
)
def test_a_row_with_everything_fits_into_80_columns(name, values):
    shown = text(report.table([Row(name, values, Check("fact", True))])).rstrip().splitlines()
    assert len(shown) == 3
    assert name in shown[-1]
    assert all("…" not in line for line in shown)


def test_brackets_in_names_are_no_markup():
    assert "[bold]" in text(report.table([Row("[bold]")]))


def test_further_tables_follow_the_first_under_their_headings_and_their_checks_count():
    tables = {"Another table": [Row("b", {"blocks": 4}, Check("it holds", False), note="a fact")]}
    result = Result([Row("a", note="as it must be")], tables=tables, notes=["That is all."])
    assert [check.fact for check in result.all_checks] == ["it holds"]
    shown = text(report.outcome(outcome(result)))
    shown = " ".join(shown.split())
    places = [shown.index(part) for part in ("a: as it must be", "Another table", "b 4", "b: a fact", "That is all.")]
    assert places == sorted(places)


def test_the_limit_is_named_with_its_rate():
    rows = [Row("a", {"of limit": 0.5})]
    shown = text(report.outcome(outcome(Result(rows, Limit("copy bandwidth", rate=4250.0)))))
    assert "size 1,000: grains\nlimit 4,250 GB/s: copy bandwidth\n" in shown
    assert Limit("copy bandwidth", rate=4250.0).heading("Sums") == "Sums (limit: copy bandwidth)"
    assert Limit("copy bandwidth").heading("Sums") == "Sums"


@pytest.mark.parametrize("rate", [None, 4250.0])
def test_a_limit_that_no_row_uses_is_not_named(rate):
    shown = text(report.outcome(outcome(Result([Row("a")], Limit("copy bandwidth", rate=rate)))))
    assert "copy bandwidth" not in shown


def test_the_summary_names_what_went_wrong():
    failed = outcome(Result([Row("a", check=Check("fact", False))]), "failed")
    error = outcome(Result([]), "error", "ValueError: no")
    shown = text(report.summary([outcome(Result([])), failed, error]))
    assert "3 stops: 1 passed, 1 failed, 1 error" in shown
    assert "FAILED in idea: fact" in shown
    assert "ERROR in idea: ValueError: no" in shown


@pytest.mark.parametrize("width", [24, 40, 60])
def test_a_narrow_terminal_cuts_nothing(width):
    values = {"ms": 12.3456, "GB/s": 1234.5, "of limit": 0.995, "course GB/s": 165, "says": "some words"}
    rows = [Row("tile, padded by one", values, Check("fact", True)), Row("other", {"conflicts": 1_023_744})]
    console = Console(file=io.StringIO(), width=width)
    console.print(report.table(rows))
    shown = console.file.getvalue()
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "…" not in shown
    words = " ".join(shown.split())
    for text in ("padded", "12.3", "1,234", "99.5 %", "course GB/s", "165", "some", "words", "1,023,744", "right"):
        assert text in words, shown


def test_a_narrow_terminal_has_the_names_beside_each_part():
    row = Row("a name of many words", {"first": 1, "second": 2, "third": 3, "fourth": 4})
    console = Console(file=io.StringIO(), width=40)
    console.print(report.table([row]))
    assert console.file.getvalue().count("a name of many words") == 2


def test_a_narrow_terminal_has_whole_names_in_the_list_and_in_the_summary():
    console = Console(file=io.StringIO(), width=26)
    done = replace(outcome(Result([Row("a", check=Check("fact", True))])), name="nested_monte_carlo")
    console.print(report.listing({"nested_monte_carlo": "What it shows"}))
    console.print(report.summary([done, done]))
    shown = console.file.getvalue()
    assert "…" not in shown
    assert shown.count("nested_monte_carlo") >= 3
    assert shown.count("1/1") == shown.count("passed") - 1 == 2
