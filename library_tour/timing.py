"""Times of work on the device, and the rates that bound it."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

import cudart_py as cuda

from .stop import Limit, Value

__all__ = ["Phases", "available", "copy_limit", "host_ms", "link_limit", "median_ms", "rates"]

REPEATS = 20
# Slow variants are repeated less: until this many milliseconds are spent, but at least three times.
BUDGET_MS = 1000.0
LEAST_REPEATS = 3


@functools.cache
def available() -> bool:
    """Tell whether this driver's event times are a GPU's."""
    return "gpu_timing" in cuda.capabilities()


def median_ms(work: Callable[[], object]) -> float:
    """Return the median of `REPEATS` times of `work`, after one that is not counted."""
    work()
    times: list[float] = []
    while len(times) < REPEATS and (len(times) < LEAST_REPEATS or sum(times) < BUDGET_MS):
        with cuda.timed() as timer:
            work()
        times.append(timer.milliseconds)
    return statistics.median(times)


def host_ms(work: Callable[[], object], *, wait: bool) -> float:
    """Return the milliseconds of the host's clock for queueing `work`, with or without its completion."""
    cuda.legacy_default.synchronize()
    start = time.perf_counter()
    work()
    if wait:
        cuda.legacy_default.synchronize()
    seconds = time.perf_counter() - start
    cuda.legacy_default.synchronize()
    return 1e3 * seconds


def copy_limit(nbytes: int) -> Limit:
    """Return the bandwidth of a device-to-device copy of `nbytes`, read and written bytes together."""
    if not available():
        return Limit("copy bandwidth")
    source, target = cuda.zeros(nbytes, np.uint8), cuda.empty(nbytes, np.uint8)
    ms = median_ms(lambda: cuda.memcpy(target, source))
    return Limit("copy bandwidth", rate=1e-6 * 2 * nbytes / ms)


def link_limit(nbytes: int) -> Limit:
    """Return the bandwidth of a copy of `nbytes` from pinned memory to the device."""
    if not available():
        return Limit("the link to the host")
    source, target = cuda.pinned_empty(nbytes, np.uint8), cuda.empty(nbytes, np.uint8)
    ms = median_ms(lambda: cuda.memcpy(target, source))
    return Limit("the link to the host", rate=1e-6 * nbytes / ms)


def rates(ms: float, nbytes: int, limit: Limit | None = None) -> dict[str, Value]:
    """Return the columns of a timed row: time, and for `nbytes` moved their rate and fraction of the limit."""
    columns: dict[str, Value] = {"ms": ms}
    if nbytes:
        columns["GB/s"] = rate = 1e-6 * nbytes / ms
        if limit and limit.rate:
            columns["of limit"] = rate / limit.rate
    return columns


class Phases:
    """Name the phases of a program, and time them where a driver can: `with phases("copy in"): ...`."""

    def __init__(self) -> None:
        self._ms: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run the block as the phase of this name."""
        with cuda.timed() as timer:
            yield
        if available():
            self._ms[name] = timer.milliseconds

    def rates(self, name: str, nbytes: int, limit: Limit | None = None) -> dict[str, Value]:
        """Return the columns of a phase's row, none where it was not timed."""
        return rates(self._ms[name], nbytes, limit) if name in self._ms else {}
