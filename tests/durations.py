"""Keep the default level quick: fail long tests, and make `--durations` also list the slowest files."""

from __future__ import annotations  # the oldest supported pytest lacks some of the annotated names

import collections
import functools
import mmap
import resource
import time
from collections.abc import Generator

import pytest

import cudart_py as cuda

# The processor time that a test at the default level may take on a machine where the whole level takes five minutes.
# Longer tests are marked `exhaustive`.
LIMIT_S = 10
# On such a machine, the processor time of a loop, and that of the first access to as many pages of memory. Virtual
# machines whose host is busy can be several times as slow, especially at the latter.
LOOP_S, PAGES_S = 0.06, 0.011


def _processor_seconds() -> float:
    """Return the processor time of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def loop_seconds() -> float:
    """Return the processor time of a million iterations of a loop."""
    began = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number * number
    return time.process_time() - began


def pages_seconds() -> float:
    """Return the processor time in which 4,096 new pages of memory are written for the first time."""
    began = time.process_time()
    with mmap.mmap(-1, 4096 * mmap.PAGESIZE) as pages:
        pages[:: mmap.PAGESIZE] = bytes(4096)
    return time.process_time() - began


@functools.cache
def limit_here() -> float:
    """Return the limit on this machine."""
    loop, pages = (min(measure() for _ in range(3)) for measure in (loop_seconds, pages_seconds))
    return LIMIT_S * max(1, loop / LOOP_S, pages / PAGES_S)


_began = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record the processor time at the start of a test, before its fixtures are set up."""
    item.stash[_began] = _processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that takes more than the limit of processor time, or more than twice that including its fixtures.

    The limit with fixtures is higher because the first test that uses a shared fixture, such as the result of a stop,
    creates it. Processor time depends less than the clock on other work of the machine. The limit does not apply if a
    Hypothesis profile is chosen, which may ask for more cases, nor if kernels do not run in this process: the time of a
    test on a GPU, for example under compute-sanitizer, says nothing about the test.
    """
    began = _processor_seconds()
    result = yield
    ended = _processor_seconds()
    long = item.get_closest_marker("exhaustive") or item.config.getoption("hypothesis_profile", None)
    seconds = max(ended - began, (ended - item.stash[_began]) / 2)
    if long or seconds <= LIMIT_S or "in_process" not in cuda.capabilities():
        return result
    limit = limit_here()
    if seconds > limit:
        pytest.fail(f"{seconds:.1f} s of processor time; a test of the default level may take {limit:.1f} s here")
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the files whose tests take longest if `--durations` is given, which lists the slowest tests."""
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
