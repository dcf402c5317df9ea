"""Streams whose launches take the device the least time.

What lies between two launches in a stream depends on the stream. On an H200 the streams of a process are of two kinds,
in groups of sixteen or so as they were made: in one, a launch takes 0.13 us longer. Which groups are slow differs from
process to process; in all of forty some were fast. So what is measured in one stream is 4 % off for a kernel of 3 us
in about every third process, and a kernel that does nothing tells which streams to take.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .device import Device, activated
from .module import Module, compile
from .stream import Stream

__all__ = ["fast_streams", "slowest_of_the_fast"]

SOURCE = Path(__file__).parent / "device_code" / "nothing.cu"

# Between the kinds lie 4 to 6 % of an empty kernel's time, between two streams of a kind at most 1 %.
_STEP = 0.025
# So many of the streams, at least, are the fast ones: a single one may seem so by chance.
_LEAST_PART = 8


@functools.cache
def _module(device: Device) -> Module:
    with activated(device):
        return compile(SOURCE)


@contextlib.contextmanager
def fast_streams(
    device: Device, count: int, seconds: Callable[[Callable[[], object], Stream], float]
) -> Iterator[list[Stream]]:
    """Make so many streams on a device and give those whose launches are fast; the end of the block closes all.

    `seconds(launch, stream)` measures a launch in its stream.
    """
    with activated(device), contextlib.ExitStack() as stack:
        nothing = _module(device)["nothing"]
        streams = [stack.enter_context(Stream(non_blocking=True)) for _ in range(count)]
        times = [seconds(nothing[1, 1, 0, stream].bind(), stream) for stream in streams]
        limit = slowest_of_the_fast(times)
        yield [stream for stream, time in zip(streams, times, strict=True) if time <= limit]


def slowest_of_the_fast(times: Sequence[float]) -> float:
    """Return the longest time of the faster kind: of all, where there is one kind only."""
    ordered = sorted(times)
    for number in range(max(1, len(ordered) // _LEAST_PART), len(ordered)):
        if ordered[number] - ordered[number - 1] > _STEP * ordered[0]:
            return ordered[number - 1]
    return ordered[-1]
