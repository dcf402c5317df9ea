"""Batches of operations, `cuda.batches`: one call queues many, which takes less host time than a call per operation.

The work of a batch runs in stream order as a whole. Within a batch, copies, prefetches and discards run in no
particular order, and memory operations run one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from .base import arguments
from .context.capture import captures, refuse
from .context.current import activated
from .driver import enums
from .driver.calls import api
from .memory.array import DeviceArray, region_of
from .memory.host_memory import is_pinned
from .memory.managed import Location, location_of, managed_range
from .memory.transfers import StridedRegion, check_same
from .streams.memory_operations import MemoryOperation, WaitValue, WriteValue, queue_batch
from .streams.stream import Stream, legacy_default, stream_of

__all__ = ["WaitValue", "WriteValue", "discard", "memcpy", "memory_operations", "prefetch"]
__dir__ = __all__.copy  # without private names and imports

Copyable = DeviceArray | NDArray[Any]


def memcpy(pairs: Iterable[tuple[Copyable, Copyable]], *, stream: Stream) -> None:
    """Copy between many pairs of arrays in a stream (cuMemcpyBatchAsync).

        cuda.batches.memcpy([(x, host_x), (y, host_y)], stream=stream)

    Each pair is a destination and a source, as in `memcpy`: contiguous DeviceArrays or NumPy arrays with the same
    number of elements and the same dtype. A pageable source may be reused when the call returns. A pinned one must not
    change until the stream is synchronised, and a destination on the host must be pinned or managed. The copies run in
    no particular order, so none of them may depend on another.

    `stream` must not be `legacy_default`, which the driver refuses. Raises TypeError for other objects or if the dtypes
    differ, ValueError if the sizes differ or an array is not contiguous, and CaptureError if the stream is being
    captured.
    """
    call = "batches.memcpy"
    queue = _stream_of(call, stream)
    copies = [
        _checked_pair(call, pair)
        for pair in arguments.items(call, "pairs", pairs, "a list of pairs of a destination and a source")
    ]
    copies = [pair for pair in copies if pair[0].array.size]
    if not copies:
        return
    destinations = [enums.CUdeviceptr(to.address) for to, _ in copies]
    sources = [enums.CUdeviceptr(source.address) for _, source in copies]
    sizes = [int(to.array.nbytes) for to, _ in copies]
    orders = [_order(source) for _, source in copies]
    # The attributes of an entry apply from its index up to that of the next entry.
    starts = [index for index, order in enumerate(orders) if not index or order != orders[index - 1]]
    attributes = []
    for start in starts:
        entry = enums.CUmemcpyAttributes()
        entry.srcAccessOrder = orders[start]
        attributes.append(entry)
    with activated(queue.device):
        api.cuMemcpyBatchAsync(
            destinations, sources, sizes, len(copies), attributes, starts, len(attributes), queue.handle
        )


def _order(source: StridedRegion) -> Any:
    """Return when the driver reads a source: pageable memory during the call, and all other memory in stream order."""
    orders = enums.CUmemcpySrcAccessOrder
    if source.on_device or is_pinned(source.array):
        return orders.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    return orders.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL


def _checked_pair(call: str, pair: Any) -> tuple[StridedRegion, StridedRegion]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise arguments.wrong_type(call, "pairs", "a list of pairs of a destination and a source", pair)
    to, source = region_of(call, "dst", pair[0], writes=True), region_of(call, "src", pair[1])
    check_same(call, to, source)
    for name, region in (("dst", to), ("src", source)):
        if not region.is_contiguous:
            strides = f"of shape {region.shape} with strides {region.strides}"
            raise arguments.unusable(call, name, "be contiguous", strides, "copy it with cuda.memcpy")
    if not to.on_device and to.array.size and not is_pinned(to.array):
        raise arguments.unusable(call, "dst", "be pinned", "pageable", "make it with pinned_empty")
    return to, source


def memory_operations(operations: Iterable[MemoryOperation], *, stream: Stream | None = None) -> None:
    """Write integers to memory, and wait for integers there, in a stream (cuStreamBatchMemOp).

        ready = cuda.batches.WaitValue(flags[:1], 1, "eq")
        cuda.batches.memory_operations([ready, cuda.batches.WriteValue(flags[1:2], 1)], stream=stream)

    The operations are WaitValue and WriteValue objects, at most 255, which run in order. In a stream that is being
    captured, they become one node of the graph. Raises TypeError for other objects, and ValueError for closed arrays.
    """
    queue_batch("batches.memory_operations", operations, stream_of("batches.memory_operations", stream))


def prefetch(
    arrays: Iterable[NDArray[Any]], location: Location | Sequence[Location] | None = None, *, stream: Stream
) -> None:
    """Migrate the pages of many managed arrays in stream order, before they are used (cuMemPrefetchBatchAsync).

    `location` is a Device, by default the stream's, or "host", for all arrays, or a list with one location per array.
    `stream` must not be `legacy_default`, which the driver refuses. Raises ValueError for an array that is not managed,
    and CaptureError if the stream is being captured.
    """
    call = "batches.prefetch"
    queue = _stream_of(call, stream)
    ranges = _ranges(call, arrays)
    places = _locations(call, location, len(ranges), queue)
    if ranges:
        with activated(queue.device):
            api.cuMemPrefetchBatchAsync(*_parts(ranges), *_one_each(places), 0, queue.handle)


def discard(
    arrays: Iterable[NDArray[Any]],
    *,
    prefetch_to: Location | Sequence[Location] | None = None,
    stream: Stream,
) -> None:
    """Make the contents of many managed arrays indeterminate, in stream order (cuMemDiscardBatchAsync).

    The driver then need not migrate the old contents: a kernel that overwrites an array starts sooner. With
    `prefetch_to`, one location or one per array as in `prefetch`, the pages move there without their contents
    (cuMemDiscardAndPrefetchBatchAsync). Write an array before reading it again.

    Raises the same errors as `prefetch`.
    """
    call = "batches.discard"
    queue = _stream_of(call, stream)
    ranges = _ranges(call, arrays)
    places = None if prefetch_to is None else _locations(call, prefetch_to, len(ranges), queue, "prefetch_to")
    if not ranges:
        return
    with activated(queue.device):
        if places is None:
            api.cuMemDiscardBatchAsync(*_parts(ranges), 0, queue.handle)
        else:
            api.cuMemDiscardAndPrefetchBatchAsync(*_parts(ranges), *_one_each(places), 0, queue.handle)


def _stream_of(call: str, stream: Stream) -> Stream:
    queue = stream_of(call, stream)
    if queue is legacy_default:
        remedy = "use a Stream or per_thread_default"
        raise arguments.unusable(call, "stream", "not be the legacy default stream", None, remedy)
    if captures:
        refuse(queue.handle, "a batch", "make its copies one by one")
    return queue


def _ranges(call: str, arrays: Any) -> list[tuple[int, int]]:
    return [
        managed_range(call, array, "arrays")
        for array in arguments.items(call, "arrays", arrays, "a list of NumPy arrays of managed_empty")
    ]


def _locations(call: str, location: Any, count: int, stream: Stream, name: str = "location") -> list[Any]:
    """Return the driver's locations, one for each array."""
    if location is None or isinstance(location, str) or not isinstance(location, Iterable):
        return [location_of(call, stream.device if location is None else location, name)] * count
    given = arguments.items(call, name, location, 'a Device, "host" or a list of them')
    if len(given) != count:
        raise arguments.unusable(call, name, f"have {count} locations, one per array", len(given))
    return [location_of(call, stream.device if place is None else place, name) for place in given]


def _parts(ranges: list[tuple[int, int]]) -> tuple[list[Any], list[int], int]:
    """Return the addresses, the sizes and the number of ranges."""
    return [enums.CUdeviceptr(address) for address, _ in ranges], [size for _, size in ranges], len(ranges)


def _one_each(places: list[Any]) -> tuple[list[Any], list[int], int]:
    """Return the locations, and the index of the first range to which each applies, given one location per range."""
    return places, list(range(len(places))), len(places)
