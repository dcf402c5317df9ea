"""Samples of device time, in one stream or in many."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...context.device import Device
from ...driver.capabilities import capabilities
from ...streams.stream import Stream
from ..clocks import ClockGuard, clock_reader
from ..sampling import MeasureOptions, Samples, collect
from .blocking import Blocker
from .fast_streams import fast_streams
from .timing import DeviceTimer, Work

# Work that is called with the stream in which it is measured.
StreamWork = Callable[[Stream], object]

# A hundred launches of an empty kernel are enough to distinguish fast streams from slow ones.
_EMPTY_BATCH = 100
_EMPTY_KERNEL = MeasureOptions(min_samples=3, min_seconds=0, max_seconds=0, warm_up_seconds=0)


@functools.cache
def _capabilities() -> frozenset[str]:
    """Return the driver's capabilities, cached because finding them includes a search for the libraries."""
    return capabilities()


def has_capability(capability: str) -> bool:
    """Return whether the driver has a capability, from the cache."""
    return capability in _capabilities()


class Plan(NamedTuple):
    """The plan for each sample: whether to overwrite L2 first, the number of calls, and whether to use a graph."""

    flush_l2: bool
    batch: int | None
    graph: bool


class Taken(NamedTuple):
    """The samples, and the conditions under which they were taken, as in `Measurement`."""

    samples: Samples
    batch: int
    cache: str
    blocked: bool
    captured: bool
    overhead: float
    memory: int


def take(works: Sequence[Work], stream: Stream, plan: Plan, options: MeasureOptions, guard: ClockGuard) -> Taken:
    """Take the samples in one stream, whose device must be current."""
    timer = DeviceTimer(
        works,
        stream,
        flush=plan.flush_l2 and len(works) == 1 and (plan.batch is None or plan.batch == 1),
        clock=clock_reader(stream.device),
        blocker=Blocker(stream) if has_capability("concurrent_host") else None,
    )
    try:
        timer.warm_up(options)
        if plan.batch is None:
            timer.plan_batch()
        else:
            timer.batch = plan.batch
        if plan.graph:
            timer.capture_batch()
        samples = collect(timer.sample, options, guard=guard)
        cache = "flushed" if timer.flushes else "warm"
        return Taken(samples, timer.batch, cache, timer.blocked, timer.captured, timer.overhead, timer.memory)
    finally:
        timer.close()


def take_in_each(
    work: StreamWork, count: int, device: Device, plan: Plan, options: MeasureOptions, guard: ClockGuard
) -> Taken:
    """Take a sample in each of up to `count` fast streams.

    `guard` compares all samples with the same highest clock.
    """
    device.synchronize()  # the work may depend on work queued in any stream
    with Stream(non_blocking=True) as one:
        # This exposes mistakes in the work before many streams are created, and warms up the device.
        first = take((functools.partial(work, one),), one, plan, replace(options, min_seconds=0, max_seconds=0), guard)

    def seconds(launch: Work, stream: Stream) -> float:
        empty = take((launch,), stream, Plan(False, _EMPTY_BATCH, False), _EMPTY_KERNEL, guard)
        return statistics.median(empty.samples.seconds)

    with fast_streams(device, count, seconds) as streams:
        share = replace(
            options,
            min_seconds=options.min_seconds / len(streams),
            max_seconds=options.max_seconds / len(streams),
            warm_up_seconds=0,
        )
        plan = plan._replace(batch=first.batch)
        taken = [take((functools.partial(work, stream),), stream, plan, share, guard) for stream in streams]
    clocks = [one.samples.clock for one in taken if one.samples.clock is not None]
    return Taken(
        Samples(
            tuple(statistics.median(one.samples.seconds) for one in taken),
            sum(one.samples.rejected for one in taken),
            statistics.median(clocks) if clocks else None,
        ),
        batch=min(one.batch for one in taken),
        cache=taken[0].cache,
        blocked=all(one.blocked for one in taken),
        captured=all(one.captured for one in taken),
        overhead=statistics.median(one.overhead for one in taken),
        memory=first.memory,
    )
