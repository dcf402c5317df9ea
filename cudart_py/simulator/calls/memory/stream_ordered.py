"""Stream-ordered memory: allocations that are made and freed in stream order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUdeviceptr, CUresult

from ...checks.findings import mode, site_to_report
from ...checks.races import concurrency
from ...state import memory
from ...state.arguments import number
from ...state.contexts import all_active
from ...state.errors import StatusError
from ...state.memory import Allocation
from ...state.memory.pools import Pool, current_pool, pools
from ...state.queue import captures
from ...state.queue.operations import AccountingOperation
from ...state.queue.stream import Stream
from ...state.streams import find_stream, submit
from ..entry import entry
from .graph_memory import allocate_in_capture, free_in_capture

if TYPE_CHECKING:
    from ...state.contexts import Context


class BeginOperation(AccountingOperation):
    """The start of a stream-ordered allocation for the device."""

    __slots__ = ("allocation",)

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation

    def run(self, context: Context) -> None:
        """Make the allocation live for later work."""
        memory.begin_life(self.allocation)


class FreeOperation(AccountingOperation):
    """The end of a stream-ordered allocation for the device."""

    __slots__ = ("allocation", "stream")

    def __init__(self, allocation: Allocation, stream: Stream) -> None:
        self.allocation = allocation
        self.stream = stream

    def run(self, context: Context) -> None:
        """Make the allocation no longer live for later work."""
        concurrency.check_free(self.allocation)
        memory.end_life(self.allocation, self.stream)


class DirectFree(AccountingOperation):
    """The end, in stream order, of an allocation that does not belong to a pool."""

    __slots__ = ("allocation",)

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation

    def run(self, context: Context) -> None:
        """Drop the allocation's bytes."""
        concurrency.check_free(self.allocation)
        memory.free(self.allocation, counted=True)


def _allocate(pool: Pool, size: int, stream: Stream) -> Any:
    """Allocate in a stream, or in the graph into which it is captured.

    While the checks are on, memory is not allocated again at the same addresses, so that a pointer to freed memory is a
    fault and does not access another array.
    """
    if size < 0 or (stream.capture is not None and not size):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if not size:
        return CUdeviceptr(0)
    if stream.capture is not None:
        return CUdeviceptr(allocate_in_capture(stream, size))
    captures.refuse_implicit(stream)
    captures.refuse_unsafe()
    allocation, at_once = pool.allocate(size, stream, moves=mode() != "off" and not _others_are_busy(stream))
    try:
        if at_once:
            memory.begin_life(allocation)
        else:
            allocation.begin = submit(stream, BeginOperation(allocation))
    except MemoryError:
        pool.give_back(allocation, stream, stream.tail)
        memory.known.remove(allocation)
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    return CUdeviceptr(allocation.address)


def _others_are_busy(stream: Stream) -> bool:
    """Return whether work waits in other streams: if it uses freed memory, it races with what reuses the memory."""
    busy = (other for context in all_active() for other in context.busy if other is not stream)
    return any(other.tail is not None and not other.tail.done for other in busy)


@entry(values=1)
def cuMemAllocAsync(bytesize: Any, hStream: Any) -> Any:
    """Allocate from the current pool of the stream's device (cuMemAllocAsync)."""
    stream = find_stream(hStream)
    return _allocate(current_pool(stream.context.device), number(bytesize), stream)


@entry(values=1)
def cuMemAllocFromPoolAsync(bytesize: Any, pool: Any, hStream: Any) -> Any:
    """Allocate from a pool (cuMemAllocFromPoolAsync)."""
    return _allocate(pools.find(pool), number(bytesize), find_stream(hStream))


@entry(frees=True)
def cuMemFreeAsync(dptr: Any, hStream: Any) -> None:
    """Free an allocation in a stream; do nothing for a null pointer (cuMemFreeAsync)."""
    stream, address = find_stream(hStream), number(dptr)
    if not address:
        return
    allocation = memory.known.by_start.get(address)
    pooled = allocation is not None and allocation.pool is not None
    if allocation is None or not (pooled or allocation.kind == memory.DEVICE) or allocation.access is not None:
        is_managed = allocation is not None and allocation.kind == memory.MANAGED
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED if is_managed else CUresult.CUDA_ERROR_INVALID_VALUE)
    if stream.capture is not None:
        free_in_capture(stream, allocation)
        return
    captures.refuse_implicit(stream)
    captures.refuse_unsafe()
    pool = allocation.pool
    if pool is not None and not pool.outstanding:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    allocation.freed_at = site_to_report()
    if pool is None:
        submit(stream, DirectFree(allocation))
        memory.known.remove(allocation)
        return
    freed = submit(stream, FreeOperation(allocation, stream))
    pool.give_back(allocation, stream, freed)
    memory.known.remove(allocation)
