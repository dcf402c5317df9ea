"""`--benchmark-compare-fail` where the driver does not time."""

from __future__ import annotations

import pytest

from cudart_py.benchmark import time_limits

pytest_plugins = ["pytester"]

TEST = """
def test_work(gpu_benchmark):
    gpu_benchmark(list)

def test_without_a_gpu(benchmark):
    benchmark(list)

def test_without_a_benchmark():
    pass
"""


@pytest.fixture
def untimed(monkeypatch):
    """A driver that does not time, whichever it is."""
    monkeypatch.setattr(time_limits, "capabilities", frozenset)


@pytest.mark.parametrize("arguments", [(), ("--benchmark-disable",), ("--benchmark-compare",)])
def test_a_limit_of_times_is_refused_before_anything_runs_where_there_are_none(run, untimed, arguments):
    result = run(TEST, "--benchmark-compare-fail=mean:5%", "-k", "not gpu", "-W", "ignore", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.parseoutcomes().keys() <= {"deselected"}
    result.stderr.fnmatch_lines(["*--benchmark-compare-fail limits times*--counters-compare-fail=sectors:5%*"])


@pytest.mark.parametrize("arguments", [("-k", "without"), ("--benchmark-skip",), ("--benchmark-disable",)])
def test_a_limit_of_times_is_left_to_pytest_benchmark_where_it_has_something_to_compare(run, untimed, arguments):
    result = run(TEST, "--benchmark-compare-fail=mean:1%", "-v", "-W", "ignore", *arguments)
    assert "limits times" not in result.stderr.str()
    result.stdout.fnmatch_lines(["*::test_without_a_benchmark PASSED*"])


def test_a_limit_of_times_hides_no_error_of_a_file(run, untimed):
    result = run(TEST + "raise RuntimeError('out of paper')", "--benchmark-compare-fail=mean:5%")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*RuntimeError: out of paper"])
