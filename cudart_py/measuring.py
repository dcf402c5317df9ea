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

from . import _driver
from .blocking import Blocker
from .clocks import clock_reader
from .device import Device, activated
from .device_timing import QUEUED_LAUNCHES, DeviceTimer, Work
from .fast_streams import fast_streams
from .measurement import Counters, Measurement
from .sampling import MeasureOptions, Sample, Samples, collect
from .stream import Stream, legacy_default

__all__ = ["has_capability", "measure", "measure_host", "run_once"]

# Work for each stream that it is measured in.
StreamWork = Callable[[Stream], object]

_DEFAULTS = MeasureOptions()
# An empty kernel tells the fast streams from the slow ones in a few milliseconds.
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
    new streams, 48 or so, which are chosen among more as those whose launches are fast; `fn(stream)` is called with
    each, and a sample is the median of one stream. `graph`: launch a batch as one graph, whose times agree even
    better and are shorter, since less lies between its kernels. It needs a `stream` that can be captured, thus not
    the default one, and work that can; otherwise the batch is launched call by call, and the record says so.

    The work is queued behind a blocking kernel, so that launch latency is not in the time; work that waits
    for the device itself is measured without. Samples at dropped clocks are thrown away. It ends when
    `options` says.

    On a driver whose event times are not a device's (no `gpu_timing`), `fn` runs once; the record then has
    no times, and the counters of what ran where the driver has any.

    Raises TypeError and ValueError naming the argument, and what `fn` raises.
    """
    works = _as_works(fn)
    _check_amount("bytes", bytes)
    _check_amount("flops", flops)
    _check_ceiling(ceiling)
    _check_batch(batch)
    where = _as_stream(stream)
    _check_streams(streams, stream, works)
    if not has_capability("gpu_timing"):
        return _run_once(works, where, streams, bytes, flops)
    device = where.device
    with activated(device):
        name, limit = _find_ceiling(ceiling, device)
        how = _How(flush_l2, batch, graph)
        if streams is None:
            found, timer = _take(works, where, how, options)
            used = 1
        else:
            found, timer = _take_in_each(works[0], streams, device, how, options)
            used = len(found.seconds)
    cache = "rotated" if len(works) > 1 else "flushed" if timer.flushes else "warm"
    return Measurement(
        found.seconds,
        bytes=bytes,
        flops=flops,
        batch=timer.batch,
        cache=cache,
        blocked=timer.blocked,
        captured=timer.captured,
        streams=used,
        overhead=timer.overhead,
        rejected=found.rejected,
        clock_mhz=found.clock,
        ceiling=limit,
        ceiling_name=name,
        device=device.name,
    )


class _How(NamedTuple):
    """What `measure` was asked for of each sample."""

    flush_l2: bool
    batch: int | None
    graph: bool


def _take(works: Sequence[Work], stream: Stream, how: _How, options: MeasureOptions) -> tuple[Samples, DeviceTimer]:
    """Take the samples of one stream; return them and the timer, closed, which knows how they were taken."""
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
        return collect(timer.sample, options), timer
    finally:
        timer.close()


def _take_in_each(
    work: StreamWork, count: int, device: Device, how: _How, options: MeasureOptions
) -> tuple[Samples, DeviceTimer]:
    """Take a sample in each of the fast ones among so many streams, and return the last one's timer with them."""
    taken: list[tuple[Samples, DeviceTimer]] = []
    device.synchronize()  # what the work needs may have been queued in any stream
    with fast_streams(device, count, _empty_seconds) as streams:
        # All together take the time that one stream would, and the device is warm after the first.
        share = replace(
            options, min_seconds=options.min_seconds / len(streams), max_seconds=options.max_seconds / len(streams)
        )
        for stream in streams:
            taken.append(_take((functools.partial(work, stream),), stream, how, share))
            share, how = replace(share, warm_up_seconds=0.0), how._replace(batch=taken[0][1].batch)
    clocks = [found.clock for found, _ in taken if found.clock is not None]
    samples = Samples(
        tuple(statistics.median(found.seconds) for found, _ in taken),
        sum(found.rejected for found, _ in taken),
        statistics.median(clocks) if clocks else None,
    )
    return samples, taken[-1][1]


def _empty_seconds(launch: Work, stream: Stream) -> float:
    found, _ = _take((launch,), stream, _How(False, _EMPTY_BATCH, False), _EMPTY_KERNEL)
    return statistics.median(found.seconds)


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
    works = _as_works(fn)
    if len(works) != 1:
        raise TypeError("measure_host takes one function; the host's cost does not depend on what is in a cache")
    _check_batch(batch)
    where = _as_stream(stream)
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
    works = _as_works(fn)
    _check_streams(streams, stream, works)
    return _run_once(works, _as_stream(stream), streams, 0, 0)


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


def _as_works(fn: Any) -> tuple[Callable[..., object], ...]:
    works = (fn,) if callable(fn) else tuple(fn) if isinstance(fn, Sequence) and not isinstance(fn, str) else ()
    if not works:
        raise TypeError(f"fn is a function without arguments or a sequence of such, not {fn!r}")
    for position, work in enumerate(works):
        if not callable(work):
            raise TypeError(f"fn[{position}] is {work!r} and cannot be called")
    return works


def _check_amount(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number, not {value!r}")
    if not value >= 0:
        raise ValueError(f"{name} is {value}, and cannot be negative")


def _check_ceiling(value: Any) -> None:
    from .ceilings import KINDS

    if value is None or (isinstance(value, str) and value in KINDS):
        return
    if isinstance(value, str):
        raise ValueError(f"ceiling {value!r} is none of {', '.join(KINDS)}")
    _check_amount("ceiling", value)
    if not value:
        raise ValueError("ceiling is 0; give bytes or operations a second")


def _check_batch(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"batch is an int or None, not {value!r}")
    if not 1 <= value <= QUEUED_LAUNCHES:
        raise ValueError(f"batch is {value}, outside 1 to {QUEUED_LAUNCHES}, what a queue holds")


def _check_streams(count: Any, stream: Stream | None, works: Sequence[Any]) -> None:
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"streams is an int or None, not {count!r}")
    if count < 1:
        raise ValueError(f"streams is {count}, and at least 1 is needed")
    if stream is not None:
        raise TypeError("give a stream or how many streams to make, not both")
    if len(works) != 1:
        raise TypeError(f"with streams fn is one function, which is called with each stream, not {len(works)}")


def _as_stream(stream: Any) -> Stream:
    if stream is None:
        return legacy_default
    if not isinstance(stream, Stream):
        raise TypeError(f"stream is a cudart_py Stream or None, not {type(stream).__name__}")
    stream.handle  # noqa: B018  # a closed stream is refused before anything runs
    return stream
