"""The pytest plugin: fixtures that measure on the GPU and feed pytest-benchmark.

`gpu_benchmark` measures the device's time of a call, `host_benchmark` what it costs the host. Both take what
`measure` and `measure_host` take, obey pytest-benchmark's options and marker (`max_time`, `min_rounds`), and
hand their samples to its `benchmark` fixture: its storage, its comparison and its JSON work as ever. Rates
and clocks are in `extra_info`, the GPU and its driver in the machine info, and a table of their own comes at
the end of the run. What a driver counts instead of timing it is in the table, and in the JSON under "counted".

Without pytest-benchmark, or with benchmarks disabled, the code runs once, as a test.

PYTEST_DONT_REWRITE: there is nothing to rewrite here, and pytest would warn where this is imported already.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

from ..context.nvml import nvml
from ..errors import NotSupportedError
from .measuring import measure, measure_host, run_once
from .record import Measurement
from .sampling import MeasureOptions
from .table import lines

__all__ = ["GpuBenchmark", "HostBenchmark"]

_results: pytest.StashKey[list[tuple[str, Measurement]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Offer the fixtures, those with pytest-benchmark where it is."""
    config.stash[_results] = []
    # An option of pytest-benchmark's tells that it is there, under whatever name it was loaded.
    present = config.getoption("benchmark_disable", None) is not None
    config.pluginmanager.register(_Fixtures() if present else _PlainFixtures(), "cudart_py fixtures")


class _Fixtures:
    """The fixtures where pytest-benchmark is; they name `benchmark`, so that its options see these tests too."""

    @pytest.fixture
    def gpu_benchmark(self, benchmark: Any, request: pytest.FixtureRequest) -> GpuBenchmark:
        """Measure the device's time of what a call queues: `gpu_benchmark(fn, stream=, bytes=, flops=, ...)`."""
        return GpuBenchmark(benchmark, request)

    @pytest.fixture
    def host_benchmark(self, benchmark: Any, request: pytest.FixtureRequest) -> HostBenchmark:
        """Measure what a call costs the host: `host_benchmark(fn, stream=, ...)`."""
        return HostBenchmark(benchmark, request)


class _PlainFixtures:
    """The fixtures without pytest-benchmark: the code runs once."""

    @pytest.fixture
    def gpu_benchmark(self, request: pytest.FixtureRequest) -> GpuBenchmark:
        """Run the code once; pytest-benchmark, which would keep times, is not there."""
        return GpuBenchmark(None, request)

    @pytest.fixture
    def host_benchmark(self, request: pytest.FixtureRequest) -> HostBenchmark:
        """Run the code once; pytest-benchmark, which would keep times, is not there."""
        return HostBenchmark(None, request)


class _Stamp:
    """What the benchmark's timer returns; the difference of two is the seconds of the round between them."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __sub__(self, start: _Stamp) -> float:
        return self._seconds


class _Replay:
    """A timer for pytest-benchmark that gives out the stamps of samples taken before, two for each round."""

    def __init__(self, name: str, samples: tuple[float, ...], iterations: int) -> None:
        # The JSON names the timer by this.
        self.__name__ = name
        self._stamps = _stamps(samples, iterations)

    def __call__(self) -> _Stamp:
        return next(self._stamps)


def _stamps(samples: tuple[float, ...], iterations: int) -> Iterator[_Stamp]:
    for seconds in samples:
        yield _Stamp(0.0)
        yield _Stamp(seconds * iterations)


class _Benchmark:
    """What both fixtures have in common: a measurement goes to pytest-benchmark as if it had been timed there."""

    def __init__(self, benchmark: Any, request: pytest.FixtureRequest) -> None:
        self._benchmark = benchmark
        self._node = request.node
        self._results = request.config.stash[_results]

    @property
    def enabled(self) -> bool:
        """Whether times are wanted: pytest-benchmark is there and not disabled."""
        return self._benchmark is not None and bool(self._benchmark.enabled)

    def _measure(self, method: Callable[..., Measurement], fn: Any, options: dict[str, Any]) -> Measurement:
        wanted = self.enabled
        try:
            found = self._take(method, fn, options)
        except BaseException:
            if self._benchmark is not None:
                # As the fixture does itself: it was used, and what came of it does not count.
                self._benchmark._mode, self._benchmark.has_error = method.__name__, True
            raise
        self._report(found, method.__name__)
        if wanted:
            self._results.append((self._node.name, found))
        return found

    def _take(self, method: Callable[..., Measurement], fn: Any, options: dict[str, Any]) -> Measurement:
        if not self.enabled:
            # A misspelt argument shows without a GPU too.
            inspect.signature(method).bind(fn, **options)
            return run_once(fn, options.get("stream"), options.get("streams"))
        options.setdefault("options", self._options())
        return method(fn, **options)

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
        )

    def _report(self, found: Measurement, name: str) -> None:
        """Let pytest-benchmark run rounds of nothing whose stamps differ by the samples."""
        benchmark = self._benchmark
        if benchmark is None:
            return
        benchmark.extra_info.update(found.as_dict())
        if not found.timed:
            # Without times there are no statistics to keep; the fixture has run all the same.
            benchmark.disabled = True
        benchmark._timer = _Replay(name, found.samples, found.batch)
        benchmark.pedantic(_nothing, rounds=max(1, len(found.samples)), iterations=found.batch)


class GpuBenchmark(_Benchmark):
    """The fixture `gpu_benchmark`; calling it measures on the device."""

    def __call__(self, fn: Any, **options: Any) -> Measurement:
        """Measure as `cudart_py.benchmark.measure` does, with its keyword arguments, and return its record."""
        return self._measure(measure, fn, options)


class HostBenchmark(_Benchmark):
    """The fixture `host_benchmark`; calling it measures the host's cost."""

    def __call__(self, fn: Any, **options: Any) -> Measurement:
        """Measure as `cudart_py.benchmark.measure_host` does, with its keyword arguments, and return its record."""
        return self._measure(measure_host, fn, options)


def _nothing() -> None:
    """Take the place of the code, which has been measured already."""


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Name the GPUs, the driver and the CUDA versions, where NVML knows them; no context is made for that."""
    found = gpu_info()
    if found:
        machine_info["gpu"] = found


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add what was counted and not timed: pytest-benchmark's own list has only what has times."""
    counted = _counted(config)
    if counted:
        output_json["counted"] = counted


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Write the JSON of a run in which nothing was timed: pytest-benchmark, which comes next, would write none."""
    config = session.config
    benchmarks: Any = getattr(config, "_benchmarksession", None)
    if benchmarks is not None and benchmarks.json and not benchmarks.benchmarks and _counted(config):
        hook = config.hook
        output_json = hook.pytest_benchmark_generate_json(
            config=config,
            benchmarks=[],
            include_data=True,
            machine_info=benchmarks.get_machine_info(),
            commit_info=hook.pytest_benchmark_generate_commit_info(config=config),
        )
        hook.pytest_benchmark_update_json(config=config, benchmarks=[], output_json=output_json)
        benchmarks.save_json(output_json)
        benchmarks.json = None
    return (yield)


def _counted(config: pytest.Config) -> list[dict[str, Any]]:
    results = config.stash.get(_results, [])
    return [{"name": name, **found.as_dict()} for name, found in results if found.counters and not found.timed]


def gpu_info() -> dict[str, Any]:
    """Return what a benchmark's times depend on beside the host; empty on a machine without NVML."""
    try:
        bindings = nvml()
    except NotSupportedError:
        return {}
    try:
        handles = [bindings.device_get_handle_by_index_v2(i) for i in range(bindings.device_get_count_v2())]
        cuda = bindings.system_get_cuda_driver_version_v2()
        return {
            "devices": [bindings.device_get_name(handle) for handle in handles],
            "driver": bindings.system_get_driver_version(),
            "cuda_driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
            **_versions(),
        }
    except bindings.NvmlError:  # no right to ask
        return {}


def _versions() -> dict[str, str]:
    found = {}
    for name in ("cuda-bindings", "nvidia-cuda-nvrtc"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a toolkit's NVRTC serves
            continue
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the rates, which have no column in pytest-benchmark's table."""
    results = config.stash.get(_results, [])
    shown = [(name, found) for name, found in results if found.timed or found.counters]
    if not shown or config.getoption("benchmark_quiet", False):
        return
    terminalreporter.section("GPU benchmarks", sep="-")
    for line in lines(shown):
        terminalreporter.write_line(line)
