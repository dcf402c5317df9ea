"""Batches of prefetches and discards of managed memory, in stream order as a whole."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ...checks.findings import site_to_report
from ...checks.races import concurrency
from ...state import memory
from ...state.arguments import number
from ...state.errors import StatusError, invalid_value
from ...state.memory import Allocation
from ...state.queue import captures
from ...state.queue.operations import Operation
from ...state.queue.stream import Stream
from ...state.streams import find_stream, submit
from ..entry import entry
from ..memory.managed import Prefetch, find_managed, ordinal_of
from .batches import numbers, spread, stream_of_batch

if TYPE_CHECKING:
    from ...state.contexts import Context

# The value that discarded bytes get, so that a program that still reads them has a wrong result.
_DISCARDED = 0xD5


class Discard(Operation):
    """A discard of a range, whose values are indeterminate from then on."""

    __slots__ = ("address", "site", "size")

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        self.site = site_to_report()

    def describe(self) -> str:
        """Return how many bytes are discarded."""
        return f"{self.size} bytes"

    def run(self, context: Context) -> None:
        """Overwrite the bytes."""
        memory.require_live(self.address, self.size, "a discard")
        concurrency.touch([(self.address, self.size)], "a discard", writes=True, site=self.site)
        ctypes.memset(self.address, _DISCARDED, self.size)


def _ranges(dptrs: Any, sizes: Any, count: Any, flags: Any) -> list[tuple[int, int, Allocation]]:
    """Return the address, size and allocation of each range of managed memory, or raise CUDA_ERROR_INVALID_VALUE."""
    ranges = number(count)
    if ranges <= 0 or number(flags):
        raise invalid_value()
    pairs = zip(numbers(dptrs, ranges), numbers(sizes, ranges), strict=True)
    return [(address, size, find_managed(address, size)) for address, size in pairs]


def _stream(handle: Any) -> Stream:
    stream = find_stream(handle)
    if stream.capture is not None:
        stream.capture.invalidate()
    captures.refuse_implicit(stream)
    return stream_of_batch(handle)


@entry()
def cuMemPrefetchBatchAsync(
    dptrs: Any,
    sizes: Any,
    count: Any,
    prefetchLocs: Any,
    prefetchLocIdxs: Any,
    numPrefetchLocs: Any,
    flags: Any,
    hStream: Any,
) -> None:
    """Record, in stream order, where many ranges of managed memory are prefetched (cuMemPrefetchBatchAsync)."""
    stream, ranges = _stream(hStream), _ranges(dptrs, sizes, count, flags)
    locations = _locations(prefetchLocs, prefetchLocIdxs, numPrefetchLocs, len(ranges))
    for (_, _, allocation), location in zip(ranges, locations, strict=True):
        submit(stream, Prefetch(allocation, location))


def _locations(locations: Any, starts: Any, given: Any, count: int) -> list[int]:
    try:
        return [ordinal_of(location) for location in spread(locations, starts, number(given), count)]
    except StatusError:
        raise invalid_value() from None  # for a device that does not exist, too


@entry()
def cuMemDiscardBatchAsync(dptrs: Any, sizes: Any, count: Any, flags: Any, hStream: Any) -> None:
    """Make the contents of many ranges of managed memory indeterminate (cuMemDiscardBatchAsync)."""
    stream = _stream(hStream)
    for address, size, _ in _ranges(dptrs, sizes, count, flags):
        submit(stream, Discard(address, size))


@entry()
def cuMemDiscardAndPrefetchBatchAsync(
    dptrs: Any,
    sizes: Any,
    count: Any,
    prefetchLocs: Any,
    prefetchLocIdxs: Any,
    numPrefetchLocs: Any,
    flags: Any,
    hStream: Any,
) -> None:
    """Discard many ranges of managed memory, and prefetch them empty (cuMemDiscardAndPrefetchBatchAsync)."""
    stream, ranges = _stream(hStream), _ranges(dptrs, sizes, count, flags)
    locations = _locations(prefetchLocs, prefetchLocIdxs, numPrefetchLocs, len(ranges))
    for (address, size, allocation), location in zip(ranges, locations, strict=True):
        submit(stream, Discard(address, size))
        submit(stream, Prefetch(allocation, location))
