"""The script that checks the measuring on a GPU: how it reads, compares and fails."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_check.py"

CSV = """==PROF== Connected to process 7
==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","saxpy","gpu__time_duration.sum","ns","1,024,000"
"1","7","saxpy","gpu__time_duration.sum","us","1,025.5"
"2","7","saxpy","sm__cycles_active.avg","cycle","17"
==PROF== Disconnected from process 7
"""


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    specification = importlib.util.spec_from_file_location("measure_check", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    # dataclasses look their module up there.
    sys.modules["measure_check"] = module
    specification.loader.exec_module(module)
    yield module
    for name in ("measure_check", "measure_cases", "bars"):
        del sys.modules[name]


def test_durations_are_found_among_other_output(script):
    assert script.read_durations(CSV) == pytest.approx([1.024e-3, 1.0255e-3])


def test_output_without_a_table_has_no_durations(script):
    assert script.read_durations("==ERROR== no right to use the counters") == []


@pytest.mark.parametrize(("ours", "verdict"), [(1.009, "ok"), (0.991, "ok"), (1.011, "MISSED")])
def test_a_difference_is_held_against_the_bar(script, ours, verdict):
    assert script.compare("x", ours, 1.0, 0.01).verdict == verdict


def test_a_check_without_a_bar_is_not_judged(script):
    assert script.compare("x", 2.0, 1.0, None).verdict is script.Verdict.NO_BAR


def test_a_missing_profiler_is_said(script):
    (line,) = script.check_ncu({}, None)
    assert line.verdict is script.Verdict.NOT_JUDGED


def test_every_case_launches(script, device, monkeypatch):
    cases = sys.modules["measure_cases"]
    for case in cases.CASES.values():
        cases.make_work(cases.Case(case.kernel, min(case.amount, 100), None))()
    device.synchronize()


def test_a_process_is_compared_with_itself_and_with_others(script):
    label = "chain 3 us, streams"
    processes = [{label: {"median": second}, f"{label}, again": {"median": 1.0}} for second in (1.0, 1.02)]
    lines = list(script.check_processes(processes))
    assert [line.verdict for line in lines] == ["MISSED", "ok"]


@pytest.mark.parametrize(
    ("label", "verdict"),
    [("chain 3 us", ""), ("chain 3 us, streams", "MISSED"), ("chain 3 us, graph", "MISSED"), ("chain 1 ms", "MISSED"),
     ("nothing, streams", ""), ("nothing, graph", "")],
)  # fmt: skip  # rows of a table
def test_short_kernels_are_judged_in_many_streams_and_as_graphs(script, label, verdict):
    (line,) = script.check_processes([{label: {"median": second}} for second in (1.0, 1.02)])
    assert line.verdict == verdict


def test_with_the_profiler_a_short_kernel_is_judged_in_many_streams(script, monkeypatch):
    monkeypatch.setattr(script, "ncu_seconds", lambda ncu, name: 1.0)
    ways = {name: [name, f"{name}, streams", f"{name}, graph"] if case.short else [name]
            for name, case in script.CASES.items()}  # fmt: skip  # grouped by meaning
    measured = {label: {"median": 1.2} for labels in ways.values() for label in labels}
    found = {line.check: line.verdict for line in script.check_ncu(measured, "ncu")}
    assert found["ncu, saxpy 3 us"] == found["ncu, saxpy 3 us, graph"] == found["ncu, nothing, streams"] == ""
    assert found["ncu, saxpy 3 us, streams"] == found["ncu, saxpy 1 ms"] == "MISSED"


def test_saved_results_are_put_into_the_page(script, tmp_path, monkeypatch, capsys):
    line = script.compare("ncu, saxpy", 1.0, 1.005, 0.01)
    (tmp_path / "found.json").write_text(json.dumps({"where": "a card, today", "measured": {}, "checks": [vars(line)]}))
    page = tmp_path / "page.md"
    page.write_text("before\n\n## Measured\n\nold\n")
    options = ["--recorded", str(tmp_path / "found.json"), "--markdown", str(page)]
    monkeypatch.setattr(sys, "argv", ["measure_check", *options])
    assert script.main() == 0
    text = page.read_text()
    assert text.startswith("before\n\n## Measured\n\na card, today\n\n| compared with ")
    assert "| ok " in text
    assert "old" not in text


def test_without_a_gpu_it_fails_and_says_why():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", "processes"],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "", "PYTHONPATH": str(SCRIPT.parents[1]), "CUDART_PY_DRIVER": "cuda", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 2
    assert "measuring failed" in done.stderr
