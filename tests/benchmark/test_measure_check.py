"""The benchmark that compares measured times with other tools': how it reads, compares and fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.peers import measuring, measuring_cases

ROOT = Path(__file__).parents[2]
CSV = """==PROF== Connected to process 7
==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","saxpy","gpu__time_duration.sum","ns","1,024,000"
"1","7","saxpy","gpu__time_duration.sum","ns","1,025,500"
"2","7","saxpy","sm__cycles_active.avg","cycle","17"
==PROF== Disconnected from process 7
"""


@pytest.mark.parametrize(
    ("output", "seconds"), [(CSV, [1.024e-3, 1.0255e-3]), ("==ERROR== no right to use the counters", [])]
)
def test_durations_are_found_among_other_output(output, seconds):
    assert measuring.read_durations(output) == pytest.approx(seconds)


def test_every_case_launches(device):
    for case in measuring_cases.CASES.values():
        measuring_cases.make_work(case._replace(amount=min(case.amount, 100)))()
    device.synchronize()


def test_of_a_short_kernel_many_streams_and_graphs_are_judged():
    labels = ["chain 1 ms", "chain 3 us", "chain 3 us, streams", "chain 3 us, graph", "nothing, streams"]
    again = {"chain 3 us, streams, again": {"median": 1.0}}
    processes = [{label: {"median": second} for label in labels} | again for second in (1.0, 1.02)]
    found = [line.verdict for line in measuring.check_processes(processes)]
    assert found == ["MISSED", "", "MISSED", "MISSED", "", "ok"]


def test_with_the_profiler_a_short_kernel_is_judged_in_many_streams(monkeypatch):
    def seconds(name):
        if name == "nothing":
            raise measuring.ChildError("no right to use the counters")
        return 1.0

    monkeypatch.setattr(measuring, "ncu_seconds", seconds)
    labels = ["saxpy 1 ms", "saxpy 3 us", "saxpy 3 us, streams", "saxpy 3 us, graph", "nothing, streams"]
    found = {line.what: line.verdict for line in measuring.check_ncu([{label: {"median": 1.2} for label in labels}])}
    judged = {"saxpy 1 ms": "MISSED", "saxpy 3 us": "", "saxpy 3 us, streams": "MISSED", "saxpy 3 us, graph": ""}
    assert found == judged | {"nothing": "not judged"}


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
