"""Allocation of device memory: from pools in stream order, with padded rows, or borrowed from other owners."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import errors
from ..context.capture import LEGACY, captures, defer, refuse
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import Handle, close_unfinished, unfinished
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from ..streams.stream import Stream, legacy_default, per_thread_default

if TYPE_CHECKING:
    from .array import DeviceArray
    from .pools import MemoryPool, PoolMemory

# The largest size that can be requested from the driver.
MOST_BYTES = 2**64 - 1
_PER_THREAD = per_thread_default.handle


class Origin(NamedTuple):
    """The origin of stream-ordered memory, as far as it matters when the memory is freed.

    `thread` is the thread that allocated the memory in its per-thread default stream, because the handle of that stream
    means a different stream in every other thread. It is None for other streams. The pools are the device's pools
    before and after the allocation. Both are kept alive as long as the memory, because another thread may set the pool
    in between and the driver does not say which one it used.
    """

    thread: int | None
    pool_before: PoolMemory | None
    pool_after: PoolMemory | None


def allocate(array: DeviceArray, pool: MemoryPool | None = None) -> None:
    """Allocate the memory of a new array in the order of its stream, and record the memory's origin.

    The memory comes from `pool` (cuMemAllocFromPoolAsync), by default from the device's current pool (cuMemAllocAsync).
    An array of 0 bytes gets none. Raises OutOfMemoryError with the sizes, and CaptureError if the stream is being
    captured.
    """
    device, stream = array.device, array.stream
    before = _memory_of(device._pool if pool is None else pool)
    thread = threading.get_ident() if stream.handle == _PER_THREAD else None
    # Set before the allocation, so that the array has these attributes even if an interrupt follows.
    array._origin = Origin(thread, before, None)
    with activated(device):
        if array.nbytes:
            address = _allocate(array.nbytes, device, stream, pool)
            array._value = address
            array._address = int(address)
    array._origin = Origin(thread, before, _memory_of(device._pool))


def _memory_of(pool: MemoryPool | None) -> PoolMemory | None:
    return None if pool is None else pool._memory


def _allocate(nbytes: int, device: Device, stream: Stream, pool: MemoryPool | None) -> Any:
    call = "cuMemAllocAsync" if pool is None else "cuMemAllocFromPoolAsync"
    if captures:
        refuse(
            stream.handle,
            "an allocation",
            "allocate before the capture begins, or use graphs.empty",
        )
    if nbytes > MOST_BYTES:
        raise too_many_bytes(call, nbytes)
    if pool is None:
        status, address = with_room(lambda: raw.cuMemAllocAsync(nbytes, stream.native))
    else:
        source = pool.handle
        status, address = with_room(lambda: raw.cuMemAllocFromPoolAsync(nbytes, source, stream.native))
    if status:
        # The pool may have grown before the allocation failed, and would keep that memory from all other users. The
        # status of the trim is ignored, because the allocation's error is raised in any case.
        raw.cuMemPoolTrimTo(api.cuDeviceGetMemPool(device.handle) if pool is None else pool.handle, 0)
        raise allocation_error(status, call, nbytes, pool=device._pool if pool is None else pool)
    return address


def free(address: Any, origin: Origin | None, device: Device, stream: Stream) -> None:
    """Free memory in the order of a stream, which may already be closed (cuMemFreeAsync).

    Works whatever device is current. If a capture would record the free or forbid waiting, the free is deferred until
    the capture has ended.
    """
    thread = None if origin is None else origin.thread
    # The stream that would order this free is closed, or is the per-thread default stream of another thread.
    if stream.closed or (stream.handle == _PER_THREAD and thread not in (None, threading.get_ident())):
        free_when_idle(address, device)
        return
    # A captured free would run again at every launch of the graph.
    if captures and defer(stream.handle, lambda: free(address, origin, device, stream)):
        return
    with activated(device):
        api.cuMemFreeAsync(address, stream.native)


def free_when_idle(address: Any, device: Device) -> None:
    """Wait for all work on a device, and free memory that no known stream orders (cuCtxSynchronize, cuMemFreeAsync).

    During a capture, which forbids waiting, this is deferred until the capture has ended.
    """
    if captures and defer(LEGACY, lambda: free_when_idle(address, device)):
        return
    with activated(device):
        api.cuCtxSynchronize()
        api.cuMemFreeAsync(address, legacy_default.native)


class Allocation(Handle):
    """Device memory that arrays use without owning it. The handle is the address; `device` is the memory's device."""

    __slots__ = ("device",)

    device: Device

    def end_in(self, stream: Stream) -> None:
        """Set the stream in whose order the memory is freed; do nothing for memory that is not stream-ordered."""


class PitchedAllocation(Allocation):
    """Rows padded to the pitch that the device prefers (cuMemAllocPitch, cuMemFree)."""

    __slots__ = ("pitch",)

    pitch: int

    def __init__(self, width: int, height: int, itemsize: int) -> None:
        self.device = current_device()
        # The size in bytes of the widest access that a kernel may make to a row; the driver accepts only 4, 8 and 16.
        access = max(size for size in (4, 8, 16) if size == 4 or itemsize % size == 0)
        if width * height > MOST_BYTES:
            raise too_many_bytes("cuMemAllocPitch", width * height)
        status, value, pitch = with_room(lambda: raw.cuMemAllocPitch(width, height, access))
        if status:
            raise allocation_error(status, "cuMemAllocPitch", width * height)
        self._value, self._owned, self.pitch = int(value), True, int(pitch)

    def _release(self, value: Any) -> None:
        with activated(self.device):
            api.cuMemFree(value)


class BorrowedAllocation(Allocation):
    """Memory that is owned elsewhere and never freed here; `owner` is kept alive with it."""

    __slots__ = ("owner",)

    def __init__(self, pointer: int, device: Device, owner: Any) -> None:
        self._value = pointer
        self._owned = False
        self.device = device
        self.owner = owner


def with_room(allocate: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Call a driver allocation, and return its status and values; try once more if closed pools may hold the memory.

    Closed pools keep their memory until the host has waited for their last frees. The host waits here only if the
    allocation failed for lack of memory, and not during a capture, which forbids it.
    """
    result = allocate()
    if result[0] == enums.CUresult.CUDA_ERROR_OUT_OF_MEMORY and unfinished and not captures:
        api.cuCtxSynchronize()
        close_unfinished()
        result = allocate()
    return result


def too_many_bytes(call: str, nbytes: int, kind: str = "device memory") -> errors.CudaError:
    """Return the exception for a size that is too large to be requested from the driver."""
    return allocation_error(enums.CUresult.CUDA_ERROR_OUT_OF_MEMORY, call, nbytes, kind)


def allocation_error(
    status: Any, call: str, nbytes: int, kind: str = "device memory", pool: MemoryPool | None = None
) -> errors.CudaError:
    """Return the exception for a failed allocation; if memory was lacking, it names the sizes.

    These are the requested bytes, the free and total device memory, and the maximum size of `pool`.
    """
    plain = failure(status, call)
    if status.name != "CUDA_ERROR_OUT_OF_MEMORY":
        return plain
    message = f"{call}: {nbytes:,} bytes of {kind} were requested"
    free_bytes = total = None
    if kind == "device memory":
        free_bytes, total = api.cuMemGetInfo()
        message += f"; {free_bytes:,} of {total:,} are free"
    if pool is not None and pool.max_size:
        message += f"; the pool holds at most {pool.max_size:,}, of which {pool.used:,} are in use"
        if pool.used + nbytes <= pool.max_size:
            message += ", and each allocation is rounded up"
    message += f" ({status.name})"
    if plain.explanation:
        message += f"\n{plain.explanation}"
    return errors.OutOfMemoryError(
        message,
        status=status,
        call=call,
        explanation=plain.explanation,
        requested=nbytes,
        free=free_bytes,
        total=total,
    )
