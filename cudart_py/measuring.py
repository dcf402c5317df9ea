"""Measure a piece of code: its time on the device, or what it costs the host."""

from __future__ import annotations

import functools
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from . import _driver, arguments
from .blocking import Blocker
from .clocks import ClockGuard, clock_reader
from .device import Device, activated
from .device_timing import QUEUED_LAUNCHES, DeviceTimer, Work
from .fast_streams import MOST, fast_streams
from .measurement import Counters, Measurement
from .sampling import MeasureOptions, Sample, Samples, collect
from .stream import Stream, legacy_default, stream_handle

__all__ = ["has_capability", "measure", "measure_host", "run_once"]

# Work for each stream that it is measured in.
StreamWork = Callable[[Stream], object]

_DEFAULTS = MeasureOptions()
# So much of an empty kernel tells the fast streams from the slow ones.
_EMPTY_BATCH = 100
_EMPTY_KERNEL = MeasureOptions(min_samples=3, min_seconds=0, max_seconds=0, warm_up_seconds=0)
# A batch of calls whose host time is measured: long beside the clock's resolution.
_HOST_BATCH_SECONDS = 200e-6


def measure(
    fn: Work | StreamWork | Sequence[Work],
    *,
    stream: Stream | None = None,
    streams: int | None = None,
    bytes: float = 0,
    flops: float = 0,
    ceiling: str | float | None = None,
    flush_l2: bool = True,
    batch: int | None = None,
    graph: bool = False,
    options: MeasureOptions = _DEFAULTS,
) -> Measurement:
    """Measure the device's time of the work that a call of `fn()` queues on `stream`.

    `fn` is called without arguments, many times; several functions in a sequence take turns, which keeps
    L2 from holding one's input when each has another. `bytes` and `flops` are what one call moves and
    computes. `ceiling` names what to compare with, measured once a process ("copy", "read", "write",
    "fp32", "fp64"; see `ceilings`), or gives it as a number: bytes a second where `bytes` is given, else
    operations a second. `flush_l2`: overwrite the L2 cache before each sample. `batch`: calls a sample, by
    default one, and for work below 50 us so many that a sample lasts about a millisecond; within a batch the
    cache stays warm.

    Kernels of a few microseconds seem longer or shorter by the stream and the process. `streams`: measure in so many
    new streams, 48 or so, or in fewer where too few are found whose launches are fast; `fn(stream)` is called with
    each, and a sample is the median of one stream. `graph`: launch a batch as one graph, whose times agree even
    better and are shorter, since less lies between its kernels. It needs streams that can be captured, thus not the
    default one, and work that can; otherwise the batch is launched call by call, and the record says so.

    The work is queued behind a blocking kernel, so that launch latency is not in the time; work that waits
    for the device itself is measured without. Samples at dropped clocks are thrown away. It ends when
    `options` says; with `streams` its times are shared by all of them, and the rest is for each.

    On a driver whose event times are not a device's (no `gpu_timing`), `fn` runs once; the record then has
    no times, and the counters of what ran where the driver has any.

    Raises TypeError and ValueError naming the argument, and what `fn` raises.
    """
    call = "measure"
    works = _as_works(call, fn)
    arguments.number(call, "bytes", bytes, 0)
    arguments.number(call, "flops", flops, 0)
    _check_ceiling(ceiling)
    flush_l2 = arguments.flag(call, "flush_l2", flush_l2)
    batch = _as_batch(call, batch)
    graph = arguments.flag(call, "graph", graph)
    arguments.instance(call, "options", options, MeasureOptions)
    where = _as_stream(call, stream)
    _check_streams(call, streams, stream, works)
    if not has_capability("gpu_timing"):
        return _run_once(works, where, streams, bytes, flops)
    device = where.device
    with activated(device):
        name, limit = _find_ceiling(ceiling, device)
        how, guard = _How(flush_l2, batch, graph), ClockGuard()
        if streams is None:
            taken = _take(works, where, how, options, guard)
        else:
            taken = _take_in_each(works[0], streams, device, how, options, guard)
    return Measurement(
        taken.samples.seconds,
        bytes=bytes,
        flops=flops,
        batch=taken.batch,
        cache="rotated" if len(works) > 1 else taken.cache,
        blocked=taken.blocked,
        captured=taken.captured,
        streams=None if streams is None else len(taken.samples.seconds),
        overhead=taken.overhead,
        rejected=taken.samples.rejected,
        clock_mhz=taken.samples.clock,
        ceiling=limit,
        ceiling_name=name,
        device=device.name,
    )


class _How(NamedTuple):
    """What `measure` was asked for of each sample."""

    flush_l2: bool
    batch: int | None
    graph: bool


class _Taken(NamedTuple):
    """Samples and how they were taken, as a Measurement says it."""

    samples: Samples
    batch: int
    cache: str
    blocked: bool
    captured: bool
    overhead: float


def _take(works: Sequence[Work], stream: Stream, how: _How, options: MeasureOptions, guard: ClockGuard) -> _Taken:
    """Take the samples of one stream."""
    timer = DeviceTimer(
        works,
        stream,
        flush=how.flush_l2 and len(works) == 1 and (how.batch is None or how.batch == 1),
        clock=clock_reader(stream.device),
        blocker=Blocker(stream) if has_capability("concurrent_host") else None,
    )
    try:
        timer.warm_up(options)
        if how.batch is None:
            timer.plan_batch()
        else:
            timer.batch = how.batch
        if how.graph:
            timer.capture_batch()
        samples = collect(timer.sample, options, guard=guard)
        cache = "flushed" if timer.flushes else "warm"
        return _Taken(samples, timer.batch, cache, timer.blocked, timer.captured, timer.overhead)
    finally:
        timer.close()


def _take_in_each(
    work: StreamWork, count: int, device: Device, how: _How, options: MeasureOptions, guard: ClockGuard
) -> _Taken:
    """Take a sample in each of the fast ones among many streams; one highest clock holds for all."""
    device.synchronize()  # what the work needs may have been queued in any stream
    with Stream(non_blocking=True) as one:
        # What is wrong with the work shows before so many streams are made, and the device is warm then.
        first = _take((functools.partial(work, one),), one, how, replace(options, min_seconds=0, max_seconds=0), guard)

    def seconds(launch: Work, stream: Stream) -> float:
        empty = _take((launch,), stream, _How(False, _EMPTY_BATCH, False), _EMPTY_KERNEL, guard)
        return statistics.median(empty.samples.seconds)

    with fast_streams(device, count, seconds) as streams:
        share = replace(
            options,
            min_seconds=options.min_seconds / len(streams),
            max_seconds=options.max_seconds / len(streams),
            warm_up_seconds=0,
        )
        how = how._replace(batch=first.batch)
        taken = [_take((functools.partial(work, stream),), stream, how, share, guard) for stream in streams]
    clocks = [one.samples.clock for one in taken if one.samples.clock is not None]
    return _Taken(
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
    )


def measure_host(
    fn: Work,
    *,
    stream: Stream | None = None,
    batch: int | None = None,
    options: MeasureOptions = _DEFAULTS,
) -> Measurement:
    """Measure what a call of `fn()` costs the host: queueing its work, without waiting for it.

    Calls are timed in batches that begin with `stream` drained, since a full queue would make the host
    wait for the device. `batch`: calls a sample, by default so many that a sample lasts 0.2 ms.

    On a driver without `gpu_timing` `fn` runs once, as with `measure`.
    """
    call = "measure_host"
    works = _as_works(call, fn)
    if len(works) != 1:
        raise TypeError(
            f"{call}: argument 'fn' must be one function; the host's cost does not depend on what is in a cache"
        )
    batch = _as_batch(call, batch)
    arguments.instance(call, "options", options, MeasureOptions)
    where = _as_stream(call, stream)
    if not has_capability("gpu_timing"):
        return _run_once(works, where, None, 0, 0)
    (work,) = works
    with activated(where.device):
        where.synchronize()
        warm, first = _HostBatch(work, where, 1), time.perf_counter()
        calls = [warm().seconds]
        while time.perf_counter() - first < options.warm_up_seconds:
            calls.append(warm().seconds)
        if batch is None:
            batch = max(1, min(QUEUED_LAUNCHES // 2, round(_HOST_BATCH_SECONDS / max(min(calls), 1e-9))))
        with _no_garbage_collection():
            found = collect(_HostBatch(work, where, batch), options)
    return Measurement(found.seconds, batch=batch, cache="", device=where.device.name)


class _HostBatch:
    """Take a sample of the host's time: a batch of calls on a drained stream."""

    def __init__(self, work: Work, stream: Stream, calls: int) -> None:
        self._work, self._stream, self._calls = work, stream, calls

    def __call__(self) -> Sample:
        work, turns = self._work, range(self._calls)
        self._stream.synchronize()
        begin = time.perf_counter()
        for _ in turns:
            work()
        seconds = time.perf_counter() - begin
        self._stream.synchronize()
        return Sample(seconds / self._calls)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@functools.cache
def _capabilities() -> frozenset[str]:
    """Ask once: finding out what a driver can do looks for libraries too."""
    return _driver.capabilities()


def has_capability(capability: str) -> bool:
    """Tell whether the driver has a capability, without asking it again."""
    return capability in _capabilities()


def run_once(
    fn: Work | StreamWork | Sequence[Work], stream: Stream | None = None, streams: int | None = None
) -> Measurement:
    """Run `fn()` once, as a test of it: the record has no times, and counters where the driver has any."""
    works = _as_works("measure", fn)
    _check_streams("measure", streams, stream, works)
    return _run_once(works, _as_stream("measure", stream), streams, 0, 0)


def _run_once(works: Sequence[Any], stream: Stream, streams: int | None, bytes: float, flops: float) -> Measurement:
    """Run the first function once, counting what its launches do where the driver can."""
    import cudart_py

    device = stream.device
    if streams is not None:
        with activated(device), Stream(non_blocking=True) as one:
            device.synchronize()
            return _run_once((functools.partial(works[0], one),), one, None, bytes, flops)
    profile: Callable[[], Any] | None = getattr(cudart_py, "profile", None)
    counters: Counters = ()
    with activated(device):
        if profile is None or not has_capability("profile"):
            works[0]()
            stream.synchronize()
        else:
            with profile() as profiled:
                works[0]()
                stream.synchronize()
            counters = tuple(
                {"kernel": launch.kernel, "grid": launch.grid, "block": launch.block, **launch.metrics}
                for launch in profiled.launches
            )
    return Measurement((), bytes=bytes, flops=flops, device=device.name, counters=counters)


def _find_ceiling(ceiling: str | float | None, device: Device) -> tuple[str | None, float | None]:
    from .ceilings import measured_ceiling

    if isinstance(ceiling, str):
        return ceiling, measured_ceiling(device, ceiling)
    return None, ceiling


def _as_works(call: str, fn: Any) -> tuple[Callable[..., object], ...]:
    if callable(fn):
        return (fn,)
    if not isinstance(fn, Sequence) or isinstance(fn, str | bytes) or not fn:
        raise arguments.wrong_type(call, "fn", "a function without arguments or a sequence of such", fn)
    return tuple(arguments.function(call, f"fn[{place}]", work) for place, work in enumerate(fn))


def _check_ceiling(value: Any) -> None:
    from .ceilings import KINDS

    if isinstance(value, str):
        arguments.choice("measure", "ceiling", value, KINDS)
    elif value is not None and not arguments.number("measure", "ceiling", value, 0):
        raise arguments.wrong_value("measure", "ceiling", "bytes or operations a second", value)


def _as_batch(call: str, value: Any) -> int | None:
    # More than a queue holds would make the host wait for the device.
    return None if value is None else arguments.integer(call, "batch", value, 1, QUEUED_LAUNCHES)


def _check_streams(call: str, count: Any, stream: Stream | None, works: Sequence[Any]) -> None:
    if count is None:
        return
    arguments.integer(call, "streams", count, 2, MOST)
    if stream is not None:
        raise TypeError(f"{call}: give 'stream' or how many 'streams' to make, not both")
    if len(works) != 1:
        raise TypeError(
            f"{call}: with streams the argument 'fn' is one function, called with each stream, not {len(works)}"
        )


def _as_stream(call: str, stream: Stream | None) -> Stream:
    stream_handle(call, stream)
    return legacy_default if stream is None else stream
