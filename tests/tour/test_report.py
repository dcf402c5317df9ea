import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from library_tour import report
from library_tour.runner import Outcome
from library_tour.stop import Check, Limit, Result, Row


def text(*things: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    for thing in things:
        console.print(thing)
    return console.file.getvalue()


def outcome(result: Result, state: str = "passed", message: str = "") -> Outcome:
    return Outcome("idea", "What it shows", 1000, "grains", 0.1, state, result, message)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (3160.4, "3,160"),
        (0.0123456, "0.0123"),
        (1.7e-5, "1.7e-05"),
        (0.0, "0.00"),
        (-2.5, "-2.50"),
        (99.98, "100"),
    ],
)
def test_numbers_have_about_four_digits(value, shown):
    assert report.number(value) == shown


def test_fractions_are_in_per_cent_and_a_bar_is_full_at_the_limit_and_beyond():
    assert report.cell("of limit", 0.9537).plain == " 95.4 % ██████▋"
    assert report.cell("load efficiency", 0.125).plain == "12.5 %"
    assert [report.bar(fraction).count("█") for fraction in (0.0, 3 / 7, 1.0, 1.3)] == [0, 3, 7, 7]


def test_brackets_in_names_are_no_markup():
    assert "[bold]" in text(report.table([Row("[bold]")]))


def test_further_tables_follow_the_first_under_their_headings_and_their_checks_count():
    tables = {"Another table": [Row("b", {"blocks": 4}, Check("it holds", False), note="a fact")]}
    result = Result([Row("a", note="as it must be")], tables=tables, notes=["That is all."])
    assert [check.fact for check in result.all_checks] == ["it holds"]
    shown = " ".join(text(report.outcome(outcome(result))).split())
    places = [shown.index(part) for part in ("a: as it must be", "Another table", "b 4", "b: a fact", "That is all.")]
    assert places == sorted(places)


def test_figures_leave_out_what_was_printed_before_and_say_so():
    rows = [Row("a", {"ms": 1.0}, note="Why a."), Row("wrong", note="Why wrong.")]
    printed = Result(
        rows, notes=["A remark."], tables={"Same": [Row("c", {"share": 0.25})], "Other": [Row("d", {"n": 2})]}
    )
    recorded = replace(
        printed, rows=[replace(rows[0], values={"ms": 2.0}, note="Why a, in other words."), rows[1]],
        notes=["A remark.", "Another one."], tables={"Same": [Row("c", {"share": 0.25001}), Row("e")],
                                                     "Other": [Row("d", {"n": 3})]},
    )  # fmt: skip  # grouped by meaning
    shown = text(report.figures(outcome(recorded), printed=printed))
    for word in ("2.00", "Another one.", "Other", "The other results are the same as on this machine."):
        assert word in shown
    for word in ("Same", "wrong", "Why", "A remark."):
        assert word not in shown
    assert "All results are the same as on this machine." in text(report.figures(outcome(printed), printed=printed))


def test_the_size_of_the_counters_is_named_where_there_are_counters():
    result = Result([Row("a", {"loads": 4})], counted="128 elements")
    assert "size 1,000: grains\ncounters: measured over 128 elements\n" in text(report.outcome(outcome(result)))
    assert "counters" not in text(report.outcome(outcome(replace(result, rows=[Row("a", {"ms": 4})]))))


def test_the_limit_is_named_with_its_rate():
    rows = [Row("a", {"of limit": 0.5})]
    shown = text(report.outcome(outcome(Result(rows, Limit("copy bandwidth", rate=4250.0)))))
    assert "size 1,000: grains\nlimit 4,250 GB/s: copy bandwidth\n" in shown
    assert Limit("copy bandwidth", rate=4250.0).heading("Sums") == "Sums (limit: copy bandwidth)"
    assert Limit("copy bandwidth").heading("Sums") == "Sums"


def test_a_limit_that_no_row_uses_is_not_named():
    for rate in (None, 4250.0):
        assert "copy bandwidth" not in text(
            report.outcome(outcome(Result([Row("a")], Limit("copy bandwidth", rate=rate))))
        )


@pytest.mark.parametrize("width", [24, 40, 60])
def test_a_narrow_terminal_cuts_nothing_and_has_the_names_beside_each_part(width):
    values = {"ms": 12.3456, "GB/s": 1234.5, "of limit": 0.995, "course GB/s": 165, "says": "some words"}
    rows = [Row("tile, padded by one", values, Check("fact", True)), Row("other", {"conflicts": 1_023_744})]
    shown = text(report.table(rows), width=width)
    assert shown.count("tile,") > 1
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "…" not in shown
    words = " ".join(shown.split())
    for part in ("padded", "12.3", "1,234", "99.5 %", "course GB/s", "165", "some", "words", "1,023,744", "right"):
        assert part in words, shown


def test_a_narrow_terminal_has_whole_names_in_the_list_and_in_the_summary():
    done = replace(outcome(Result([Row("a", check=Check("fact", True))])), name="nested_monte_carlo")
    shown = text(
        report.listing({"All": [("nested_monte_carlo", "What it shows")]}), report.summary([done, done]), width=26
    )
    assert "…" not in shown
    assert shown.count("nested_monte_carlo") >= 3
    assert shown.count("1/1") == shown.count("passed") - 1 == 2
