"""Keep the default level quick: a long test fails, and `--durations` also lists the files that take longest."""

from __future__ import annotations  # the oldest pytest has not all of these names

import collections
import resource
from collections.abc import Generator

import pytest

import cudart_py as cuda

# What a test of the default level may take. Longer ones are marked `exhaustive`.
LIMIT_S = 10


def _processor_seconds() -> float:
    """Return the processor time of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


_began = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when a test began, before its fixtures."""
    item.stash[_began] = _processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that takes more than LIMIT_S of processor time, or with its fixtures more than twice that.

    Several tests share a fixture, such as the outcome of a stop, and the first of them makes it. Other load of the
    machine does not change the time much. A profile of Hypothesis may ask for more cases. Where kernels run elsewhere,
    as on a GPU under compute-sanitizer, the time says nothing of the test.
    """
    began = _processor_seconds()
    result = yield
    ended = _processor_seconds()
    long = item.get_closest_marker("exhaustive") or item.config.getoption("hypothesis_profile", None)
    seconds = max(ended - began, (ended - item.stash[_began]) / 2)
    if seconds > LIMIT_S and "in_process" in cuda.capabilities() and not long:
        pytest.fail(f"{seconds:.1f} s of processor time; a test of the default level may take {LIMIT_S} s")
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the files whose tests take longest, where `--durations` lists the tests."""
    count: int | None = config.getoption("durations")
    if not count:
        return
    seconds: collections.Counter[str] = collections.Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section("slowest files")
    for name, taken in seconds.most_common(count):
        terminalreporter.write_line(f"{taken:.2f}s {name}")
