"""Sampling: when there are enough samples, and which samples count."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

from ..base import arguments
from .clocks import ClockGuard
from .stopping import STOPS, Stop, stopping_rule

# Sorting the samples for the quartiles after each sample would take longer than measuring. The rule is therefore
# applied again only after the number of samples has grown by this factor.
_NEXT_LOOK = 1.2


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """The conditions for ending a measurement. Times are in seconds of the host's clock.

    - `precision`: stop when the standard error of the median is at most this fraction of the median.
    - `stop`: "precision", or "entropy" to stop when further samples no longer change the distribution of the times,
      which are distinguished to within `precision`. Use it for a distribution with several modes, to sample all of
      them.
    - `min_samples`: take at least this many samples, however long that takes.
    - `max_samples`: never take more samples than this.
    - `min_seconds`: take samples for at least this long, since clocks and the load of the machine vary.
    - `max_seconds`: stop after this long, unless there are fewer than `min_samples`.
    - `warm_up_seconds`: first run the code for this long, and at least once, to raise the clocks.
    """

    precision: float = 0.001
    min_samples: int = 5
    max_samples: int = 10_000
    min_seconds: float = 0.1
    max_seconds: float = 1.0
    warm_up_seconds: float = 0.05
    stop: Stop = "precision"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "stop":
                arguments.choice("MeasureOptions", "stop", value, STOPS)
            elif field.name.endswith("_samples"):
                arguments.integer("MeasureOptions", field.name, value, 1)
            else:
                arguments.number("MeasureOptions", field.name, value, 0, math.inf)
        if self.min_samples > self.max_samples:
            least, most = arguments.describe(self.min_samples), arguments.describe(self.max_samples)
            raise ValueError(f"MeasureOptions: argument 'min_samples' is {least}, but 'max_samples' is {most}")


class Sample(NamedTuple):
    """One sample: the seconds of a call, and the clock in MHz if it is known."""

    seconds: float
    clock: float | None = None


class Samples(NamedTuple):
    """The kept samples, the number of rejected samples, and the median clock of the kept ones."""

    seconds: tuple[float, ...]
    rejected: int
    clock: float | None


def collect(
    take: Callable[[], Sample],
    options: MeasureOptions,
    *,
    guard: ClockGuard | None = None,
    now: Callable[[], float] = time.perf_counter,
    pause: Callable[[float], object] = time.sleep,
) -> Samples:
    """Take samples until they are enough by the rule of the options, or the time is up.

    Samples at reduced clocks are rejected, and the device gets a pause to recover after each. `guard` decides which
    samples to reject, and may have seen samples of other calls before.
    """
    guard = ClockGuard() if guard is None else guard
    rule = stopping_rule(options.stop, options.precision)
    kept: list[float] = []
    clocks: list[float] = []
    rejected, next_look = 0, options.min_samples
    begin = now()
    while True:
        count, elapsed = len(kept), now() - begin
        if count >= options.min_samples and (count >= options.max_samples or elapsed >= options.max_seconds):
            break
        if count >= next_look and elapsed >= options.min_seconds:
            if rule.finished():
                break
            next_look = max(count + 1, int(_NEXT_LOOK * count))
        seconds, clock = take()
        if not guard.accepts(clock):
            rejected += 1
            pause(guard.pause)
            continue
        kept.append(seconds)
        rule.add(seconds)
        if clock is not None:
            clocks.append(clock)
    return Samples(tuple(kept), rejected, statistics.median(clocks) if clocks else None)
