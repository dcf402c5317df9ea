"""Counters compared with a stored run's: figures, limits, the table."""

from __future__ import annotations

import pytest

from cudart_py.benchmark.counter_gate import Change, changes, figures, read_limit, table, verdict

LOAD = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
STORE = "l1tex__t_{}_pipe_lsu_mem_global_op_st.sum"


def launch(sectors=40, instructions=100, threads=3200, **more):
    return {
        "kernel": "k",
        "grid": (1, 1, 1),
        LOAD.format("sectors"): sectors,
        STORE.format("sectors"): 4,
        LOAD.format("requests"): 10,
        "smsp__inst_executed.sum": instructions,
        "smsp__thread_inst_executed.sum": threads,
        **more,
    }


def test_a_figure_is_the_sum_over_launches_or_the_worst_ratio():
    used = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
    launches = [
        launch() | {"a__b.ratio": 3.5, "a__c.sum": 5, used: 32},
        launch(sectors=60, threads=1600) | {"a__b.ratio": 1.5, "a__c.sum": 5, used: 4},
    ]
    assert figures(launches) == {"instructions": 200, "requests": 20, "sectors": 108, "lanes": 24}
    found = figures(launches, ["a__b.ratio", "a__c.sum", "a__missing.sum", used])
    assert (found["a__b.ratio"], found["a__c.sum"], found[used]) == (3.5, 10, 4)
    assert "a__missing.sum" not in found


@pytest.mark.parametrize(
    ("text", "before", "now", "expected"),
    [
        ("sectors:5%", 100, 105, False),
        ("sectors:5%", 100, 106, True),
        ("sectors:5%", 100, 10, False),
        ("conflicts:0", 0, 1, True),
        ("conflicts:0%", 0, 1, True),
        ("conflicts:2.5", 0, 2, False),
        ("lanes:5%", 32, 31, False),
        ("lanes:5%", 32, 16, True),
        ("lanes:5%", 16, 32, False),
        ("smsp__inst_executed.sum:1%", 100, 102, True),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio:1%", 32, 16, True),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio:1%", 16, 32, False),
        ("smsp__thread_inst_executed_per_inst_executed.ratio:1%", 32, 16, True),
    ],
)
def test_a_limit_says_how_much_worse_a_figure_may_become(text, before, now, expected):
    assert read_limit(text).exceeded(before, now) is expected


@pytest.mark.parametrize("text", ["sectors", "sectors:", "sectors:-5%", "sectors:5%%", ":5%", "", "sector:5%"])
def test_what_is_no_limit_is_refused_with_the_known_ones(text):
    words = "it is one of instructions, requests" if text == "sector:5%" else "is not FIGURE:PERCENT% or FIGURE:NUMBER"
    with pytest.raises(ValueError, match=words):
        read_limit(text)


def test_what_differs_is_listed_and_only_what_a_limit_names_fails():
    before = {"t::a": [launch()], "t::b": [launch()], "t::gone": [launch()]}
    now = {"t::a": [launch(sectors=80, instructions=110)], "t::b": [launch()], "t::new": [launch()]}
    found = changes(before, now, [read_limit("sectors:5%")])
    assert found == [
        Change("t::a", "instructions", 100, 110, failed=False),
        Change("t::a", "sectors", 44, 84, failed=True),
        Change("t::a", "lanes", 32, 3200 / 110, failed=False),
        Change("t::gone", only="not run"),
        Change("t::new", only="new"),
    ]


def test_a_benchmark_that_is_gone_fails_where_there_are_limits():
    before, limits = {"t::a": [launch()], "t::old": [launch()]}, [read_limit("sectors:5%")]
    found = changes(before, {"t::a": [launch()]}, limits, gone=["t::old"])
    assert found == [Change("t::old", failed=True, only="gone")]
    assert table(found)[1].split() == ["t::old", "gone", "GONE"]
    assert verdict(found, limits) == [
        "the run fails: the stored run has benchmarks that are no longer there: t::old",
        "If the change is intended, store the run again to accept it.",
    ]
    assert not changes(before, {"t::a": [launch()]}, gone=["t::old"])[0].failed


def test_a_figure_that_only_one_run_has_counts_from_zero():
    more = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 7}
    (found,) = changes({"t": [launch()]}, {"t": [launch(**more)]}, [read_limit("conflicts:0")])
    assert found == Change("t", "conflicts", 0, 7, failed=True)


def test_the_table_marks_what_became_worse():
    lines = table(
        [
            Change("t::a", "sectors", 44, 84, failed=True),
            Change("t::b", "conflicts", 0, 3465, failed=True),
            Change("t::new", only="new"),
        ]
    )
    assert [line.split() for line in lines] == [
        ["benchmark", "figure", "before", "now", "change"],
        ["t::a", "sectors", "44", "84", "+90.9", "%", "WORSE"],
        ["t::b", "conflicts", "0", "3,465", "+3,465", "WORSE"],
        ["t::new", "new"],
    ]


def test_the_verdict_names_the_limits_that_are_exceeded_and_how_to_accept():
    limits = [read_limit(text) for text in ("lanes:5%", "sectors:5%", "sectors:100", "conflicts:0")]
    found = [
        Change("t::a", "sectors", 44, 84, failed=True),
        Change("t::b", "conflicts", 0, 7, failed=True),
        Change("t::b", "lanes", 32, 31.9),
    ]
    assert verdict(found, limits) == [
        "the run fails: 2 of the figures became worse by more than the limits: sectors:5%, conflicts:0",
        "If the change is intended, store the run again to accept it.",
    ]
    assert verdict(found[2:], limits) == []
