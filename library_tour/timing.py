"""Times of work on the device, and the rates that they correspond to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import cudart_py as cuda
from cudart_py.benchmark import MeasureOptions, measure, measure_host

from .stop import Limit, Value

# Slow variants are repeated less often, because the total time is limited: one that takes a second is measured once.
OPTIONS = MeasureOptions(min_samples=1, min_seconds=0.05, max_seconds=0.3, warm_up_seconds=0.02)
# A curve has many points, which need not be as exact as a table's rows.
QUICK = MeasureOptions(precision=0.01, min_samples=1, min_seconds=0.01, max_seconds=0.1, warm_up_seconds=0.005)
# Repetitions of work that needs to be prepared each time.
FRESH_TIMES = 5
# The factors of the SI prefixes, which are the first letter of a rate's unit.
PREFIXES = {"M": 1e6, "G": 1e9, "T": 1e12}


_wanted = True


def available() -> bool:
    """Check whether event times come from a GPU, and timing has not been turned off."""
    return _wanted and "gpu_timing" in cuda.capabilities()


def turn_off() -> None:
    """Turn timing off in this process, for example because a tool slows everything down."""
    global _wanted
    _wanted = False


def median_ms(work: Callable[[], object], stream: cuda.Stream | None = None, *, quick: bool = False) -> float:
    """Return the device's median time in ms of the work that a call queues on `stream`, or on the default stream."""
    seconds = measure(work, stream=stream, options=QUICK if quick else OPTIONS).median
    assert seconds is not None  # callers check `available` first
    return 1e3 * seconds


def fresh_ms(before: Callable[[], object], work: Callable[[], object]) -> float:
    """Return the current device's median time in ms of `work`, from a state that `before` restores each time, untimed.

    The host time of `work`, until it returns, is included.
    """
    times = []
    for _ in range(FRESH_TIMES):
        before()
        cuda.current_device().synchronize()
        with cuda.timed() as timer:
            work()
        times.append(timer.milliseconds)
    return statistics.median(times)


def call_ms(work: Callable[[], object]) -> float:
    """Return the host's median time in ms of a repeated call, without its work on the device."""
    seconds = measure_host(work, options=QUICK).median
    assert seconds is not None  # callers check `available` first
    return 1e3 * seconds


def host_ms(work: Callable[[], object], *, wait: bool) -> float:
    """Return the host's time in ms to queue `work`, including its completion if `wait` is set."""
    cuda.legacy_default.synchronize()
    start = time.perf_counter()
    work()
    if wait:
        cuda.legacy_default.synchronize()
    seconds = time.perf_counter() - start
    cuda.legacy_default.synchronize()
    return 1e3 * seconds


def waiting_ms(work: Callable[[], object]) -> float:
    """Return the host's median time in ms of `work` that itself waits for the device, for a point of a curve."""
    times: list[float] = []
    begin = time.perf_counter()
    while not times or time.perf_counter() - begin < QUICK.min_seconds:
        times.append(host_ms(work, wait=False))
    return statistics.median(times)


def per_second(amount: float, ms: float, unit: str) -> float:
    """Return the rate in `unit` ("GB/s", "Gsteps/s") of `amount` bytes or steps in `ms` milliseconds."""
    return 1e3 * amount / ms / PREFIXES[unit[0]]


def rates(ms: float, amount: float = 0, limit: Limit | None = None) -> dict[str, Value]:
    """Return the columns of a timed row: the time, the rate in the limit's unit, and the fraction of the limit."""
    columns: dict[str, Value] = {"ms": ms}
    if amount:
        unit = limit.unit if limit else "GB/s"
        columns[unit] = rate = per_second(amount, ms, unit)
        if limit and limit.rate:
            columns["of limit"] = rate / limit.rate
    return columns


class Phases:
    """Named phases of a program, timed if the driver can: `with phases("copy in"): ...`."""

    def __init__(self) -> None:
        self._ms: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run the block as the phase of this name."""
        with cuda.timed() as timer:
            yield
        if available():
            self._ms[name] = timer.milliseconds

    def rates(self, name: str, amount: float = 0, limit: Limit | None = None) -> dict[str, Value]:
        """Return the columns of a phase's row, or none if it was not timed."""
        return rates(self._ms[name], amount, limit) if name in self._ms else {}
