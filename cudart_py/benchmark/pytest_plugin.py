"""The pytest plugin: fixtures that measure on the GPU and report to pytest-benchmark, and one for tests of faults.

`gpu_benchmark` measures the device time of a call, and `host_benchmark` its host time. They take the arguments of
`measure` and `measure_host`, obey pytest-benchmark's options and marker (`max_time`, `min_rounds`), and pass their
samples to its `benchmark` fixture, so its storage, comparison and JSON work as usual. Rates and clocks are in
`extra_info`, and the GPU and its driver are in the machine info. The run ends with a table of these measurements. If a
driver counts instead of timing, its counters are in the table, and in the JSON under "counted".

`gpu_benchmark(fn, beside={"CuPy": other})` measures another package's code for the same work alternately with it. The
ratios are in the table, and in `extra_info` under "beside".

`--benchmark-save`, `--benchmark-autosave` and `--benchmark-compare` store and compare counts in the same way as times.
`--counters-compare-fail=sectors:5%` fails the run if this figure of `counter_gate` has become worse by more than 5 %.
`--benchmark-compare-fail` limits times, and is a usage error if the driver does not measure times.

Without pytest-benchmark, or with benchmarks disabled, the code runs once, as a test.

At the end of each test, the plugin waits for the simulator's work, so that a mistake in a kernel fails the test that
launched it. If a fault has lost the context, it calls `cuda.reset()`. `fresh_driver` is for tests that provoke faults:
it skips them on a driver that cannot be reset.

The traceback of an error about a kernel ends at the test's line.
`--sanitize-report=FILE` writes all that they find as SARIF or as GitHub annotations.

PYTEST_DONT_REWRITE: there is nothing to rewrite here, and pytest would warn if this module is imported already.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Unpack

import pytest

from ..driver.capabilities import capabilities
from ..errors import KernelFaultError, SimulatorWarning
from ..findings.options import add_report_options, report_format
from ..host.callers import end_at_caller
from ..profiling.profiler import profiler_range
from .device.timing import Work
from .gates import counter_gate
from .gates.collected_tests import CollectedTests
from .gates.machine import gpu_info, nvrtc_version
from .gates.time_limits import why_not_limited
from .measuring import DeviceArguments, HostArguments, Works, measure, measure_host, run_once
from .peers import measure_beside
from .plugin.axes import Axes
from .plugin.counter_comparison import Comparison, report_comparisons
from .plugin.counter_refusals import refuse_without_comparison, refuse_without_counters
from .plugin.options import add_benchmark_options
from .plugin.replay import Replay
from .plugin.sanitize_report import SanitizeReport
from .plugin.session_clocks import SessionClocks
from .plugin.unfinished_work import UnfinishedWork
from .plugin.written_results import histogram_lines, write_results
from .record import Measurement
from .sampling import MeasureOptions
from .stopping import Stop
from .table import lines

__all__ = ["GpuBenchmark", "HostBenchmark"]


class _Result(NamedTuple):
    """One call of a fixture in a test; `group` is pytest-benchmark's group, or None."""

    name: str
    fullname: str
    group: str | None
    found: Measurement


_collected: pytest.StashKey[CollectedTests] = pytest.StashKey()
_results: pytest.StashKey[list[_Result]] = pytest.StashKey()
_comparisons: pytest.StashKey[list[Comparison]] = pytest.StashKey()
# The reasons why workers of pytest-xdist have refused to run tests.
_refusals: pytest.StashKey[list[str]] = pytest.StashKey()
# The key of a worker's refusal in its output to the process that started it.
_REFUSAL = "cudart_py_refusal"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that report findings, fail a run because of its counters, and select benchmarks by name."""
    add_report_options(parser.getgroup("cudart_py"))
    group = parser.getgroup("benchmark")
    add_benchmark_options(group)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Record the collected tests, and keep only those that `--benchmark-select` names."""
    config.stash[_collected].add(items)
    file = config.getoption("benchmark_select")
    if file is not None:
        names = set(file.read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
        items[:] = [item for item in items if item.nodeid in names]


@pytest.hookimpl(tryfirst=True)  # before a worker of pytest-xdist reports its collection
def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse `--benchmark-compare-fail` before anything runs, if the driver does not time."""
    refusal = None if session.testsfailed else why_not_limited(session.config, session.items)
    if refusal is None:
        return
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is None:
        raise pytest.UsageError(refusal)
    # An error here would show a traceback of the worker, and the run would continue with another worker.
    output[_REFUSAL] = refusal
    session.items.clear()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Record the refusal of a pytest-xdist worker, if there is one."""
    refusal = getattr(node, "workeroutput", {}).get(_REFUSAL)
    if refusal is not None:
        node.config.stash[_refusals].append(refusal)


def pytest_configure(config: pytest.Config) -> None:
    """Register the fixtures that use pytest-benchmark if it is installed, and otherwise the plain fixtures."""
    config.stash[_collected] = CollectedTests(config)
    config.pluginmanager.register(Axes(config), "cudart_py axes")
    config.pluginmanager.register(UnfinishedWork(), "cudart_py work")
    if (clock := config.getoption("lock_clocks")) is not None:
        config.pluginmanager.register(SessionClocks(clock), "cudart_py clocks")
    config.stash[_results] = []
    config.stash[_comparisons] = []
    config.stash[_refusals] = []
    path = config.getoption("sanitize_report")
    try:
        format = report_format(path, config.getoption("sanitize_format"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    if path is not None:
        config.pluginmanager.register(SanitizeReport(path, format), "cudart_py findings")
    # This option of pytest-benchmark shows that it is loaded, whatever name it was loaded under.
    present = config.getoption("benchmark_disable", None) is not None
    config.pluginmanager.register(_Fixtures() if present else _PlainFixtures(), "cudart_py fixtures")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist starts its workers
def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a comparison of counters that has nothing to compare."""
    refuse_without_comparison(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """End the traceback of a kernel's error at the line that waited for the kernel."""
    if call.excinfo is not None and call.excinfo.errisinstance((KernelFaultError, SimulatorWarning)):
        end_at_caller(call.excinfo.value)


class _Fixtures:
    """The fixtures with pytest-benchmark; they request `benchmark`, so its options apply to these tests too."""

    @pytest.fixture
    def gpu_benchmark(self, benchmark: Any, request: pytest.FixtureRequest) -> GpuBenchmark:
        """Measure the device time of the work that a call queues: `gpu_benchmark(fn, stream=, bytes=, flops=, ...)`."""
        return GpuBenchmark(benchmark, request)

    @pytest.fixture
    def host_benchmark(self, benchmark: Any, request: pytest.FixtureRequest) -> HostBenchmark:
        """Measure the host time of a call: `host_benchmark(fn, stream=, ...)`."""
        return HostBenchmark(benchmark, request)


class _PlainFixtures:
    """The fixtures without pytest-benchmark: the code runs once."""

    @pytest.fixture
    def gpu_benchmark(self, request: pytest.FixtureRequest) -> GpuBenchmark:
        """Run the code once, without times, because pytest-benchmark is not installed."""
        return GpuBenchmark(None, request)

    @pytest.fixture
    def host_benchmark(self, request: pytest.FixtureRequest) -> HostBenchmark:
        """Run the code once, without times, because pytest-benchmark is not installed."""
        return HostBenchmark(None, request)


@pytest.fixture
def fresh_driver() -> None:
    """Skip the test if the driver lacks the capability `reset`, because its fault would also end the tests after it.

    With the capability, the plugin calls `cuda.reset()` after each test that has lost a context.
    """
    if "reset" not in capabilities():
        pytest.skip("this driver lacks the capability 'reset': a fault would end the tests after this one too")


class _Benchmark:
    """The base of both fixtures, which passes a measurement to pytest-benchmark as if pytest-benchmark had timed it."""

    def __init__(self, benchmark: Any, request: pytest.FixtureRequest) -> None:
        self._benchmark = benchmark
        self._node = request.node
        self._results = request.config.stash[_results]
        self._profiled = bool(request.config.getoption("benchmark_profile"))
        self._stop: Stop = request.config.getoption("benchmark_stop")

    @property
    def enabled(self) -> bool:
        """Whether times are measured: pytest-benchmark is installed and not disabled, and no profiler records."""
        return self._benchmark is not None and bool(self._benchmark.enabled) and not self._profiled

    @property
    def extra_info(self) -> dict[str, Any]:
        """The additional data stored with this benchmark's times; the fixture and the test may both add to it."""
        return {} if self._benchmark is None else self._benchmark.extra_info

    def _measure(
        self, method: Callable[..., Measurement], fn: Any, beside: Mapping[str, Any] | None, options: dict[str, Any]
    ) -> Measurement:
        measured = self.enabled
        peers = {name: peer for name, peer in (beside or {}).items() if peer is not None}
        try:
            found = self._take(method, fn, peers, options)
        except BaseException:
            if self._benchmark is not None:
                # The `benchmark` fixture does the same after an error: it counts as used, without a result.
                self._benchmark._mode, self._benchmark.has_error = method.__name__, True
            raise
        self._report(found, method.__name__)
        if measured:
            group = getattr(self._benchmark, "group", None)
            self._results.append(_Result(self._node.name, self._node.nodeid, group, found))
        return found

    def _take(
        self, method: Callable[..., Measurement], fn: Any, peers: Mapping[str, Any], options: dict[str, Any]
    ) -> Measurement:
        if not self.enabled:
            # This exposes a misspelt argument even without a GPU.
            inspect.signature(method).bind(fn, **options)
            if self._profiled:
                with profiler_range():
                    return run_once(fn, options.get("stream"), options.get("streams"))
            for peer in peers.values():
                run_once(peer, options.get("stream"), options.get("streams"))
            return run_once(fn, options.get("stream"), options.get("streams"))
        options.setdefault("options", self._options())
        return measure_beside(method, fn, peers, **options) if peers else method(fn, **options)

    def _options(self) -> MeasureOptions:
        rounds = int(self._benchmark._min_rounds)
        seconds = float(self._benchmark._max_time)
        usual = MeasureOptions()
        return MeasureOptions(
            min_samples=rounds,
            max_samples=max(rounds, usual.max_samples),
            min_seconds=min(seconds, usual.min_seconds),
            max_seconds=seconds,
            warm_up_seconds=min(seconds, usual.warm_up_seconds),
            stop=self._stop,
        )

    def _report(self, found: Measurement, name: str) -> None:
        """Make pytest-benchmark run empty rounds, for which the timer returns the samples."""
        benchmark = self._benchmark
        if benchmark is None:
            return
        benchmark.extra_info.update(found.as_dict())
        if not found.timed:
            # Without times there are no statistics, but the fixture has still been used.
            benchmark.disabled = True
        benchmark._timer = Replay(name, found.samples, found.batch)
        benchmark.pedantic(_nothing, rounds=max(1, len(found.samples)), iterations=found.batch)


class GpuBenchmark(_Benchmark):
    """The fixture `gpu_benchmark`; calling it measures device time."""

    def __call__(
        self, fn: Works, *, beside: Mapping[str, Works | None] | None = None, **options: Unpack[DeviceArguments]
    ) -> Measurement:
        """Measure like `cudart_py.benchmark.measure`, with the same keyword arguments and the same result.

        `beside` maps names to functions that do the same work; they are measured alternately with `fn`. A value of None
        is skipped: use it, for example, if a library is not installed.
        """
        return self._measure(measure, fn, beside, dict(options))


class HostBenchmark(_Benchmark):
    """The fixture `host_benchmark`; calling it measures host time."""

    def __call__(
        self, fn: Work, *, beside: Mapping[str, Work | None] | None = None, **options: Unpack[HostArguments]
    ) -> Measurement:
        """Measure like `cudart_py.benchmark.measure_host`, with the same keyword arguments and the same result.

        `beside` maps names to functions that do the same work; they are measured alternately with `fn`. A value of None
        is skipped: use it, for example, if a library is not installed.
        """
        return self._measure(measure_host, fn, beside, dict(options))


def _nothing() -> None:
    """Do nothing, because the code has already been measured."""


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Add the GPUs, the driver and the CUDA versions if NVML reports them; this creates no context."""
    found = gpu_info()
    if found:
        machine_info["gpu"] = found


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add the benchmarks that were not timed, which pytest-benchmark's list does not include, and their counters."""
    untimed = [one.fullname for one in config.stash.get(_results, []) if not one.found.timed]
    if untimed:
        output_json["untimed"] = untimed
    counted = _counted(config)
    if counted:
        output_json["counted"] = counted
        output_json["nvrtc"] = nvrtc_version()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Compare and store counts, before pytest-benchmark does the same with times."""
    config = session.config
    benchmarks: Any = getattr(config, "_benchmarksession", None)
    failed = False
    # After a usage error, no test has run, and another error would replace the usage error.
    if benchmarks is not None and session.exitstatus != pytest.ExitCode.USAGE_ERROR:
        failed = _compare(session, benchmarks)
        if not benchmarks.benchmarks and _counted(config):
            _store(config, benchmarks)
    result = yield
    if failed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    refusals = config.stash[_refusals]
    if refusals and not session.testsfailed:
        raise pytest.UsageError(refusals[0])
    return result


def _compare(session: pytest.Session, benchmarks: Any) -> bool:
    """Compare with the stored runs that were requested; return whether a counter exceeds its limit.

    Raises UsageError if a comparison is requested and nothing was compared. It is not raised if tests have failed: the
    run fails anyway, and pytest would not show the failures after such an error.
    """
    config = session.config
    limits: list[counter_gate.Limit] = config.getoption("counters_compare_fail")
    counted = counter_gate.launches(_counted(config))
    stored: list[tuple[Any, dict[str, Any]]] = []
    if benchmarks.compare:
        every = list(benchmarks.storage.load(*(() if benchmarks.compare is True else (benchmarks.compare,))))
        stored = every[-1:] if benchmarks.compare is True else every
    comparisons = config.stash[_comparisons]
    for path, run in stored:
        before = counter_gate.launches(run.get("counted", ()))
        if before and counted:
            common = not before.keys().isdisjoint(counted)
            gone = [name for name in before if config.stash[_collected].lacks(name)]
            found = counter_gate.changes(before, counted, limits, gone)
            comparisons.append(Comparison(str(path), found, run.get("nvrtc", ""), common))
    failed = any(change.failed for comparison in comparisons for change in comparison.changes)
    if not any(one.common for one in comparisons) and not failed and not session.testsfailed:
        refuse_without_counters(config, measured=bool(config.stash[_results]), counted=bool(counted))
    return failed


def _store(config: pytest.Config, benchmarks: Any) -> None:
    """Write the JSON and the stored run of a session without times, for which pytest-benchmark writes nothing."""
    save = benchmarks.save or benchmarks.autosave
    if not benchmarks.json and not save:
        return
    hook = config.hook
    commit = hook.pytest_benchmark_generate_commit_info(config=config)
    hook.pytest_benchmark_update_commit_info(config=config, commit_info=commit)
    output_json = hook.pytest_benchmark_generate_json(
        config=config,
        benchmarks=[],
        include_data=True,
        machine_info=benchmarks.get_machine_info(),
        commit_info=commit,
    )
    hook.pytest_benchmark_update_json(config=config, benchmarks=[], output_json=output_json)
    if benchmarks.json:
        benchmarks.save_json(output_json)
    if save:
        benchmarks.storage.save(output_json, save)
    # pytest-benchmark's own saving would warn that there is nothing to save.
    benchmarks.json = benchmarks.save = benchmarks.autosave = None


def _counted(config: pytest.Config) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "fullname": one.fullname, "group": one.group, **one.found.as_dict()}
        for one in config.stash.get(_results, [])
        if one.found.counters and not one.found.timed
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the rates, which pytest-benchmark's table does not have, and the changes of counts."""
    results = config.stash.get(_results, [])
    shown = [(one.name, one.found) for one in results if one.found.timed or one.found.counters]
    if shown and not config.getoption("benchmark_quiet", False):
        terminalreporter.section("GPU benchmarks", sep="-")
        for line in lines(shown):
            terminalreporter.write_line(line)
    if config.getoption("measurements_histogram"):
        for line in histogram_lines(shown):
            terminalreporter.write_line(line)
    write_results(config, [(one.fullname, one.found) for one in results])
    report_comparisons(terminalreporter, config, config.stash[_comparisons], config.stash[_collected])
