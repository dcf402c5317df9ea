"""The benchmark that compares measured times with other tools': how it reads, compares and fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.peers import measuring, measuring_cases
from tests.benchmarks.peers.report import Verdict

ROOT = Path(__file__).parents[2]
CSV = """==PROF== Connected to process 7
==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","saxpy","gpu__time_duration.sum","ns","1,024,000"
"1","7","saxpy","gpu__time_duration.sum","us","1,025.5"
"2","7","saxpy","sm__cycles_active.avg","cycle","17"
==PROF== Disconnected from process 7
"""


def test_durations_are_found_among_other_output():
    assert measuring.read_durations(CSV) == pytest.approx([1.024e-3, 1.0255e-3])


def test_output_without_a_table_has_no_durations():
    assert measuring.read_durations("==ERROR== no right to use the counters") == []


def test_a_missing_profiler_is_said():
    (line,) = measuring.check_ncu({}, None)
    assert line.verdict is Verdict.NOT_JUDGED


def test_every_case_launches(device):
    for case in measuring_cases.CASES.values():
        measuring_cases.make_work(measuring_cases.Case(case.kernel, min(case.amount, 100), None))()
    device.synchronize()


def test_a_process_is_compared_with_itself_and_with_others():
    label = "chain 3 us, streams"
    processes = [{label: {"median": second}, f"{label}, again": {"median": 1.0}} for second in (1.0, 1.02)]
    lines = list(measuring.check_processes(processes))
    assert [line.verdict for line in lines] == ["MISSED", "ok"]


@pytest.mark.parametrize(
    ("label", "verdict"),
    [("chain 3 us", ""), ("chain 3 us, streams", "MISSED"), ("chain 3 us, graph", "MISSED"), ("chain 1 ms", "MISSED"),
     ("nothing, streams", ""), ("nothing, graph", "")],
)  # fmt: skip  # rows of a table
def test_short_kernels_are_judged_in_many_streams_and_as_graphs(label, verdict):
    (line,) = measuring.check_processes([{label: {"median": second}} for second in (1.0, 1.02)])
    assert line.verdict == verdict


def test_with_the_profiler_a_short_kernel_is_judged_in_many_streams(monkeypatch):
    monkeypatch.setattr(measuring, "ncu_seconds", lambda ncu, name: 1.0)
    ways = {name: [name, f"{name}, streams", f"{name}, graph"] if case.short else [name]
            for name, case in measuring.CASES.items()}  # fmt: skip  # grouped by meaning
    measured = {label: {"median": 1.2} for labels in ways.values() for label in labels}
    found = {line.what: line.verdict for line in measuring.check_ncu(measured, "ncu")}
    assert found["saxpy 3 us"] == found["saxpy 3 us, graph"] == found["nothing, streams"] == ""
    assert found["saxpy 3 us, streams"] == found["saxpy 1 ms"] == "MISSED"


def test_without_a_gpu_it_fails_and_says_why():
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.peers", "measuring", "--only", "processes"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={"PATH": "", "CUDART_PY_DRIVER": "cuda", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 2
    assert "measuring failed" in done.stderr
