"""Counters compared with those of a stored run: figures and limits. test_limits.py tests whole runs of pytest."""

import json

import pytest

from cudart_py.benchmark.gates.counter_gate import (
    Change,
    changes,
    figures,
    json_report,
    launches,
    markdown_report,
    read_limit,
    table,
    verdict,
)

LOAD = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
COMMANDS = {"store": "the command that stores", "profile": "the command that profiles"}
USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"


def launch(sectors=40, instructions=100, threads=3200, **more):
    return {
        "kernel": "k",
        "grid": (1, 1, 1),
        LOAD.format("sectors"): sectors,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 4,
        LOAD.format("requests"): 10,
        "smsp__inst_executed.sum": instructions,
        "smsp__thread_inst_executed.sum": threads,
        **more,
    }


def test_a_figure_is_the_sum_over_launches_or_the_worst_ratio():
    launches = [
        launch(**{"a__b.ratio": 3.5, "a__c.sum": 5, USED: 32}),
        launch(60, threads=1600, **{"a__b.ratio": 1.5, "a__c.sum": 5, USED: 4}),
    ]
    sums = {"instructions": 200, "requests": 20, "sectors": 108, "lanes": 24}
    assert figures(launches) == sums
    found = figures(launches, ["a__b.ratio", "a__c.sum", "a__missing.sum", USED])
    assert found == sums | {"a__b.ratio": 3.5, "a__c.sum": 10, USED: 4}


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
        (f"{USED}:1%", 32, 16, True),
        (f"{USED}:1%", 16, 32, False),
        ("smsp__thread_inst_executed_per_inst_executed.ratio:1%", 32, 16, True),
    ],
)
def test_a_limit_says_how_much_worse_a_figure_may_become(text, before, now, expected):
    assert read_limit(text).exceeded(before, now) is expected


@pytest.mark.parametrize("text", ["sectors", "sectors:", "sectors:-5%", "sectors:5%%", ":5%", "", "sector:5%"])
def test_what_is_no_limit_is_refused_with_the_known_ones(text):
    words = "choose one of instructions, requests" if text == "sector:5%" else "is not FIGURE:PERCENT% or FIGURE:NUMBER"
    with pytest.raises(ValueError, match=words):
        read_limit(text)


def test_what_differs_is_listed_and_only_the_limits_that_are_exceeded_fail_and_are_named():
    before = {"t::a": [launch()], "t::b": [launch()], "t::gone": [launch()]}
    now = {"t::a": [launch(84, 110)], "t::b": [launch(**{CONFLICTS: 3465})], "t::new": [launch()]}
    limits = [read_limit(text) for text in ("lanes:50%", "sectors:5%", "sectors:100", "conflicts:0")]
    found = changes(before, now, limits)
    assert found == [
        Change("t::a", "instructions", 100, 110),
        Change("t::a", "sectors", 44, 88, failed=True),
        Change("t::a", "lanes", 32, 3200 / 110),
        Change("t::b", "conflicts", 0, 3465, failed=True),
        Change("t::gone", only="not run"),
        Change("t::new", only="new"),
    ]
    assert [line.split()[-2:] for line in table(found)[2:5:2]] == [["%", "WORSE"], ["+3,465", "WORSE"]]
    assert verdict(found, limits, **COMMANDS)[0].endswith("(sectors:5%, conflicts:0).")
    assert verdict([change for change in found if not change.failed], limits, **COMMANDS) == []
    written = json.loads(json_report(found, limits))
    assert written["outcome"] == "failed"
    assert written["changes"][1] == {
        "benchmark": "t::a",
        "figure": "sectors",
        "before": 44,
        "now": 88,
        "verdict": "worse",
    }
    assert [change["verdict"] for change in written["changes"]] == ["", "worse", "", "worse", "not run", "new"]


def test_a_comment_has_the_changes_as_a_table_in_which_names_are_no_markup():
    found = changes({"b.py::test[a|b_c]": [launch()]}, {"b.py::test[a|b_c]": [launch(50)]}, [read_limit("sectors:5%")])
    text = markdown_report(found, verdict(found, [read_limit("sectors:5%")], **COMMANDS))
    assert text.startswith("### Counters of kernels: 1 of 1 change exceeds its limit\n\n| benchmark | figure |")
    assert "| b.py::test\\[a\\|b\\_c\\] | sectors | 44 | 54 | +22.7 % | WORSE |\n" in text
    assert markdown_report([], []) == "### Counters of kernels: nothing has changed\n"


def test_a_benchmark_that_another_folder_renamed_says_where_to_run():
    before, gone, limits = {"bench_a.py::t": [launch()]}, ["bench_a.py::t"], [read_limit("sectors:5%")]
    moved = verdict(changes(before, {"project/bench_a.py::t": [launch()]}, limits, gone), limits, **COMMANDS)
    assert any("project/bench_a.py::t" in line and "in which the run was stored" in line for line in moved)
    renamed = verdict(changes(before, {"project/bench_b.py::t": [launch()]}, limits, gone), limits, **COMMANDS)
    assert renamed
    assert not any("in which the run was stored" in line for line in renamed)


def test_memory_is_a_figure_if_both_runs_have_it():
    def run(**memory):
        return launches([{"name": "a", "fullname": "t::a", "counters": [launch()], **memory}])

    limits = [read_limit("memory:10%")]
    assert changes(run(memory=100), run(memory=111), limits) == [Change("t::a", "memory", 100, 111, failed=True)]
    assert changes(run(memory=100), run(memory=109), limits) == [Change("t::a", "memory", 100, 109)]
    assert changes(run(), run(memory=109), limits) == changes(run(memory=109), run(), limits) == []
