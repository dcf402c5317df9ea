"""Measure the time of code on the device, or its overhead on the host."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypedDict

from ..base import arguments
from ..context.current import activated
from ..profiling.profiles import profile
from ..streams.stream import Stream, stream_of
from .clocks import ClockGuard
from .device.ceilings import KINDS, Kind, measured_ceiling
from .device.fast_streams import MOST
from .device.peak_memory import PeakMemory
from .device.samples import Plan, StreamWork, has_capability, take, take_in_each
from .device.timing import QUEUED_LAUNCHES, Work
from .host_samples import HostBatch, no_garbage_collection
from .record import Counters, Measurement
from .sampling import MeasureOptions, collect

_DEFAULTS = MeasureOptions()
# The measured work: a function without arguments, a function of its stream, or several functions that take turns.
Works = Work | StreamWork | Sequence[Work]
# The duration of a batch of calls for host time: long compared with the resolution of the clock.
_HOST_BATCH_SECONDS = 200e-6


class HostArguments(TypedDict, total=False):
    """The keyword arguments of `measure_host`."""

    stream: Stream | None
    batch: int | None
    options: MeasureOptions


class DeviceArguments(HostArguments, total=False):
    """The keyword arguments of `measure`."""

    streams: int | None
    bytes: float
    flops: float
    ceiling: Kind | float | None
    flush_l2: bool
    graph: bool


def measure(
    fn: Works,
    *,
    stream: Stream | None = None,
    streams: int | None = None,
    bytes: float = 0,
    flops: float = 0,
    ceiling: Kind | float | None = None,
    flush_l2: bool = True,
    batch: int | None = None,
    graph: bool = False,
    options: MeasureOptions = _DEFAULTS,
) -> Measurement:
    """Measure the device time of the work that one call of `fn` queues in `stream`.

    - `fn`: a function without arguments, which is called many times, or a sequence of such functions. The functions in
      a sequence are called alternately, so that inputs are not in the L2 cache if each function has its own.
    - `bytes`, `flops`: the bytes that one call moves, and the operations that it performs.
    - `ceiling`: the peak rate to compare with. This is either a name ("copy", "read", "write", "fp32", "fp64"; see
      `ceilings`), for a rate that is measured once per process, or a number: bytes per second if `bytes` is given,
      otherwise operations per second.
    - `flush_l2`: overwrite the L2 cache before each sample.
    - `batch`: the number of calls per sample. The default is one call or, for work that takes less than 50 us, the
      number of calls that take about a millisecond. Within a batch, the cache stays warm.
    - `streams`: the number of new streams to measure in, for example 48. Fewer are used if there are not enough streams
      with fast launches. `fn(stream)` is called with each stream, and each sample is the median time in one stream. Use
      this for kernels that take a few microseconds, because their times vary with the stream and the process.
    - `graph`: launch each batch of more than one call as a graph. The times are then shorter, because there is less
      time between kernels, and they vary even less. This needs a stream other than the default stream, and work that
      can be captured. Otherwise the calls are launched separately, and `captured` is False in the result.
    - `options`: the conditions for ending the measurement. With `streams`, the limits on time apply to all streams
      together, and the other options apply to each stream.

    The work is queued after a blocking kernel, so the time does not include launch latency. Work that itself waits for
    the device is measured without this kernel. Samples taken at reduced clocks are discarded.

    If the driver lacks the capability `gpu_timing`, `fn` runs once. The result then has no times, but it has the
    counters of the launches if the driver provides them.

    Raises TypeError or ValueError, naming the argument, and any exception that `fn` raises.
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
        name = ceiling if isinstance(ceiling, str) else None
        limit = measured_ceiling(device, ceiling) if isinstance(ceiling, str) else ceiling
        plan, guard = Plan(flush_l2, batch, graph), ClockGuard()
        if streams is None:
            taken = take(works, where, plan, options, guard)
        else:
            taken = take_in_each(works[0], streams, device, plan, options, guard)
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
        memory=taken.memory,
        rejected=taken.samples.rejected,
        clock_mhz=taken.samples.clock,
        ceiling=limit,
        ceiling_name=name,
        device=device.name,
    )


def measure_host(
    fn: Work,
    *,
    stream: Stream | None = None,
    batch: int | None = None,
    options: MeasureOptions = _DEFAULTS,
) -> Measurement:
    """Measure the host time of one call of `fn`, which must queue work without waiting for it.

    Calls are timed in batches. `stream` is empty at the beginning of each batch, since a full queue would make the host
    wait for the device. `batch` is the number of calls per sample, by default the number that takes about 0.2 ms.

    If the driver lacks the capability `gpu_timing`, `fn` runs once, as in `measure`.
    """
    call = "measure_host"
    works = _as_works(call, fn)
    if len(works) != 1:
        raise TypeError(
            f"{call}: argument 'fn' must be a single function; host time does not depend on the device's caches"
        )
    batch = _as_batch(call, batch)
    arguments.instance(call, "options", options, MeasureOptions)
    where = _as_stream(call, stream)
    if not has_capability("gpu_timing"):
        return _run_once(works, where, None, 0, 0)
    (work,) = works
    with activated(where.device):
        where.synchronize()
        warm, first = HostBatch(work, where, 1), time.perf_counter()
        calls = [warm().seconds]
        while time.perf_counter() - first < options.warm_up_seconds:
            calls.append(warm().seconds)
        if batch is None:
            batch = max(1, min(QUEUED_LAUNCHES // 2, round(_HOST_BATCH_SECONDS / max(min(calls), 1e-9))))
        with no_garbage_collection():
            found = collect(HostBatch(work, where, batch), options)
    return Measurement(found.seconds, batch=batch, cache="", device=where.device.name)


def run_once(fn: Works, stream: Stream | None = None, streams: int | None = None) -> Measurement:
    """Run `fn()` once, as a test: the record has no times, but has counters if the driver provides any."""
    works = _as_works("measure", fn)
    _check_streams("measure", streams, stream, works)
    return _run_once(works, _as_stream("measure", stream), streams, 0, 0)


def _run_once(works: Sequence[Any], stream: Stream, streams: int | None, bytes: float, flops: float) -> Measurement:
    """Run the first function once, with counters for its launches if the driver provides them."""
    device = stream.device
    if streams is not None:
        with activated(device), Stream(non_blocking=True) as one:
            device.synchronize()
            return _run_once((functools.partial(works[0], one),), one, None, bytes, flops)
    counters: Counters = ()
    with activated(device):
        with profile() if has_capability("profile") else nullcontext() as profiled, PeakMemory(device) as memory:
            works[0]()
            stream.synchronize()
        if profiled is not None:
            counters = tuple(
                {"kernel": launch.kernel, "grid": launch.grid, "block": launch.block, **launch.metrics}
                for launch in profiled.launches
            )
    return Measurement((), bytes=bytes, flops=flops, device=device.name, counters=counters, memory=memory.nbytes)


def _as_works(call: str, fn: Any) -> tuple[Callable[..., object], ...]:
    if callable(fn):
        return (fn,)
    if not isinstance(fn, Sequence) or isinstance(fn, str | bytes) or not fn:
        raise arguments.wrong_type(call, "fn", "a function without arguments or a sequence of them", fn)
    return tuple(arguments.function(call, f"fn[{place}]", work) for place, work in enumerate(fn))


def _check_ceiling(value: Any) -> None:
    if isinstance(value, str):
        arguments.choice("measure", "ceiling", value, KINDS)
    elif value is not None and not arguments.number("measure", "ceiling", value, 0):
        raise arguments.wrong_value("measure", "ceiling", "bytes or operations per second", value)


def _as_batch(call: str, value: Any) -> int | None:
    # A batch larger than the stream's queue would make the host wait for the device.
    return None if value is None else arguments.integer(call, "batch", value, 1, QUEUED_LAUNCHES)


def _check_streams(call: str, count: Any, stream: Stream | None, works: Sequence[Any]) -> None:
    if count is None:
        return
    arguments.integer(call, "streams", count, 2, MOST)
    if stream is not None:
        raise TypeError(f"{call}: pass 'stream' or the number of 'streams', not both")
    if len(works) != 1:
        raise TypeError(
            f"{call}: argument 'fn' must be a single function with 'streams', called with each stream, not {len(works)}"
        )


def _as_stream(call: str, stream: Stream | None) -> Stream:
    return stream_of(call, stream)
