"""Run one stop and report how it ended, even if it raised."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass

import cudart_py as cuda

from . import stops, timing
from .stop import Check, Result, Stop


@dataclass(frozen=True)
class Outcome:
    """The outcome of a stop.

    `state` is "passed", "failed" (a check does not hold), "error" (it raised) or "unsupported" (the
    driver cannot do it, which is not a failure); `message` says why in the last two. `counts` is what the
    size counts.
    """

    name: str
    title: str
    size: int | None
    counts: str
    seconds: float
    state: str
    result: Result
    message: str = ""
    traceback: str = ""

    @property
    def bad(self) -> bool:
        """Whether this outcome makes the tour fail."""
        return self.state in ("failed", "error")

    @property
    def failed_checks(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.result.all_checks if not check.holds]


def size_for(stop: Stop, requested: int | None) -> int | None:
    """Return the size to run a stop with: the requested one, or its default on this driver.

    Raises ValueError for a size that is too small for the stop to show its idea.
    """
    if stop.SIZE is None:
        return None
    if requested is None:
        return stop.SIZE.full if timing.available() else stop.SIZE.small
    if requested < stop.SIZE.least:
        raise ValueError(f"size {requested} is too small: it counts {stop.SIZE.counts}, at least {stop.SIZE.least}")
    return requested


def run_stop(name: str, device: cuda.Device, requested: int | None = None) -> Outcome:
    """Run a stop on a device and catch every exception except KeyboardInterrupt, SystemExit and the like."""
    start = time.perf_counter()
    title, size, counts, result, message, trace = "", None, "", Result(rows=()), "", ""
    try:
        stop = stops.load(name)
        title = stop.TITLE
        counts = stop.SIZE.counts if stop.SIZE else ""
        size = size_for(stop, requested)
        with device:
            result = stop.run(device, size or 0)
        state = "passed" if all(check.holds for check in result.all_checks) else "failed"
    except cuda.errors.NotSupportedError as error:
        state, message = "unsupported", f"This driver cannot run the stop: {error}"
    except Exception as error:  # the other stops still run
        state, message, trace = "error", f"{type(error).__name__}: {error}", traceback.format_exc()
        if isinstance(error, MemoryError):
            message += "\nA smaller --size needs less memory."
    return Outcome(name, title, size, counts, time.perf_counter() - start, state, result, message, trace)
