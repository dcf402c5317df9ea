"""The store of runs: reading it, grouping comparable runs, and finding steps."""

import json

import pytest

from cudart_py.benchmark.gates import time_gate
from cudart_py.benchmark.history import StoreError, read_store, setups

SECTORS, WARPS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "smsp__inst_executed.sum"


def launch(sectors, instructions=10):
    return {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], SECTORS: sectors, WARPS: instructions}


def trend_of(found, benchmark, figure):
    """Return the trend of a figure, which must exist in exactly one of the setups."""
    (trend,) = [trend for setup in found for trend in setup.trends.get(benchmark, ()) if trend.figure.name == figure]
    return trend


def test_every_change_of_a_count_is_a_step_and_the_latest_comes_first(store):
    for sectors in (100, 100, 101, 101, 100):
        store.add(counted={"t.py::a": [launch(sectors)]})
    (setup,) = setups(read_store(store.folder))
    steps = [step for trend, step in setup.steps if trend.figure.name == "sectors"]
    assert [(step.first.name, step.before, step.after, step.worse) for step in steps] == [
        ("0005_run", 101, 100, False),
        ("0003_run", 100, 101, True),
    ]


def test_fewer_active_lanes_are_worse_and_ratios_to_others_have_trends_of_their_own(store):
    for number in range(12):
        beside = {"CuPy": {"median": 1e-3, "ratio": 0.9 if number < 6 else 1.2, "spread": 0.01}}
        lanes = launch(1) | {"smsp__thread_inst_executed.sum": 320 if number < 6 else 160}
        store.add({"t.py::a": (1e-3, {"beside": beside})}, counted={"t.py::a": [lanes]})
    found = setups(read_store(store.folder))
    for figure, before, after in (("lanes", 32, 16), ("ratio to CuPy", 0.9, 1.2)):
        (step,) = trend_of(found, "t.py::a", figure).steps
        assert (step.first.name, step.before, step.after, step.worse) == ("0007_run", before, after, True)


@pytest.mark.parametrize(
    "other",
    [
        {"gpu": {"devices": ["NVIDIA H200"], "driver": "570.1"}},
        {"cpu": {"brand_raw": "Another processor"}},
        {"python_version": "3.13.1"},
        {"python_implementation": "PyPy"},
        {},
    ],
    ids=["driver", "processor", "Python", "implementation", "device"],
)
def test_times_under_other_conditions_are_no_part_of_a_trend(store, other):
    for _ in range(6):
        store.add({"t.py::a": 1e-3})
    for _ in range(6):
        extra = {} if other else {"device": "a simulator"}
        store.add({"t.py::a": (2e-3, extra)}, machine=store.machine | other)
    latest, before = setups(read_store(store.folder))
    for setup, seconds in ((latest, 2e-3), (before, 1e-3)):
        (trend,) = setup.trends["t.py::a"]
        assert [point.value for point in trend.points] == [seconds] * 6
        assert not trend.steps


def test_a_baseline_of_the_gate_is_a_run_like_others(store):
    contents = [json.loads(store.add({"t.py::a": seconds}).read_text()) for seconds in (1e-3, 2e-3, 4e-3)]
    path = store.add({"t.py::a": 1e-3})
    path.write_text(time_gate.baseline_text(time_gate.merge(contents)))
    (setup,) = setups(read_store(store.folder))
    assert [point.value for point in setup.trends["t.py::a"][0].points] == [1e-3, 2e-3, 4e-3, 2e-3]


def test_the_same_counts_from_two_machines_are_one_trend_and_all_launches_of_a_test_count_together(store):
    """A simulated device counts the same on every machine, so a laptop's run may be compared with a server's."""
    store.add(counted=[("t.py::a", [launch(1), launch(2)])] * 2)
    store.add(counted={"t.py::a": [launch(1)]}, machine={"python_version": "3.11.1"}, folder="another machine")
    points = trend_of(setups(read_store(store.folder)), "t.py::a", "sectors").points
    assert [point.value for point in points] == [6, 1]


@pytest.mark.parametrize(("name", "short"), [(None, ""), ("unversioned", ""), ("8" * 40, "88888888+")])
def test_a_run_has_a_commit_in_a_repository_and_a_dirty_work_tree_is_marked(store, name, short):
    store.add({"t.py::a": 1e-3}, commit_info={"id": name, "dirty": True})
    (run,) = read_store(store.folder)
    assert (run.dirty, run.short_commit, run.commit is None) == (True, short, not short)


def test_runs_are_in_the_order_of_their_dates_and_other_files_are_left_alone(store):
    first, second, *named = (store.add({"t.py::a": 1e-3}) for _ in range(4))
    first.rename(first.with_name("0009_run.json"))
    for path, ending in zip(named, ("", "_uncommitted-changes"), strict=True):  # pytest-benchmark's names of runs
        path.rename(path.with_name(f"{path.name[:4]}_{'0a' * 20}_20261122_173111{ending}.json"))
    first.with_name("notes.json").write_text("[]")
    first.with_name("0002_notes.txt").write_text("")
    for folder in (store.folder, second.parent):  # the folder of one machine is a store too
        assert [run.name for run in read_store(folder)] == ["0009_run", "0002_run", "0003", "0004"]


def test_the_folder_that_all_tests_lie_in_is_not_in_their_names(store):
    store.add({"tests/slow/test_a.py::one[x/y]": 1e-3}, counted={"tests/test_b.py::two": [launch(1)]})
    (run,) = read_store(store.folder)
    assert [*run.timed, *run.counted] == ["slow/test_a.py::one[x/y]", "test_b.py::two"]


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[]", "7", "{}", "\xff", '{"datetime": "soon"}', '{"datetime": 5}', '{"datetime": "2026-03-01T12:00"}'],
)
def test_a_broken_file_is_named_in_one_line(store, broken):
    path = store.add({"t.py::a": 1e-3}).with_name("0002_broken.json")
    path.write_bytes(broken.encode("latin1"))
    with pytest.raises(StoreError, match=r"0002_broken\.json is not a run") as caught:
        read_store(store.folder)
    assert "\n" not in str(caught.value)
