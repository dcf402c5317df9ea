"""Allocation of device memory: from pools in the order of a stream, in padded rows, and borrowed from others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import errors
from ..context.capture import captures, defer, refuse
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

# More the driver cannot be asked for.
MOST_BYTES = 2**64 - 1
_PER_THREAD = per_thread_default.handle


class Origin(NamedTuple):
    """Where stream-ordered memory came from, as far as it matters to its end.

    `thread` allocated it in its per-thread default stream, whose handle is another stream to every other thread; None
    for other streams. The pools have to live as long as the memory: that of the device before and after the allocation,
    since another thread may change it meanwhile and the driver does not say which one it took.
    """

    thread: int | None
    pool_before: PoolMemory | None
    pool_after: PoolMemory | None


def allocate(array: DeviceArray, pool: MemoryPool | None = None) -> None:
    """Give a new array its memory, in the order of its stream, and note where the memory came from.

    The memory is the `pool`'s (cuMemAllocFromPoolAsync), or without one the device's pool's (cuMemAllocAsync). An array
    of no bytes needs none. Raises OutOfMemoryError with the sizes, and CaptureError where the stream is captured.
    """
    device, stream = array.device, array.stream
    before = _memory_of(device._pool if pool is None else pool)
    thread = threading.get_ident() if stream.handle == _PER_THREAD else None
    # An interrupt behind the allocation leaves an array that knows so much.
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
        # The pool may have grown before it failed, and would keep that from everybody else. What this call answers is
        # of no interest beside that.
        raw.cuMemPoolTrimTo(api.cuDeviceGetMemPool(device.handle) if pool is None else pool.handle, 0)
        raise allocation_error(status, call, nbytes, pool=device._pool if pool is None else pool)
    return address


def free(address: Any, origin: Origin | None, device: Device, stream: Stream) -> None:
    """Free memory in the order of a stream (cuMemFreeAsync), which may be closed, whatever is current or captured."""
    thread = None if origin is None else origin.thread
    # Whether the stream that would order this free is gone or out of reach. Then it waits for everything instead.
    unordered = stream.closed or (stream.handle == _PER_THREAD and thread not in (None, threading.get_ident()))
    # A captured free would free again at every launch of the graph, and nothing can wait for everything in a capture.
    if captures and defer(0 if unordered else stream.handle, lambda: free(address, origin, device, stream)):
        return
    with activated(device):
        if unordered:
            api.cuCtxSynchronize()
            stream = legacy_default
        api.cuMemFreeAsync(address, stream.native)


class Allocation(Handle):
    """Device memory that arrays share without owning it. Its handle is the address; `device` is where it lies."""

    __slots__ = ("device",)

    device: Device

    def end_in(self, stream: Stream) -> None:
        """Let the memory be freed in the order of a stream, where streams order its end at all."""


class PitchedAllocation(Allocation):
    """Rows padded to the pitch that the device prefers (cuMemAllocPitch, cuMemFree)."""

    __slots__ = ("pitch",)

    pitch: int

    def __init__(self, width: int, height: int, itemsize: int) -> None:
        self.device = current_device()
        # The driver takes 4, 8 and 16 only: the widest access of a kernel that the rows must suit.
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
    """Memory of somebody else, never freed here; `owner` is kept alive with it."""

    __slots__ = ("owner",)

    def __init__(self, pointer: int, device: Device, owner: Any) -> None:
        self._value = pointer
        self._owned = False
        self.device = device
        self.owner = owner


def with_room(allocate: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the status and the values of an allocation by the driver, a second one's where closed pools had the room.

    They keep it until the host has waited for the last frees, which only a lack of memory makes it do here. During a
    capture it cannot wait.
    """
    result = allocate()
    if result[0] == enums.CUresult.CUDA_ERROR_OUT_OF_MEMORY and unfinished and not captures:
        api.cuCtxSynchronize()
        close_unfinished()
        result = allocate()
    return result


def too_many_bytes(call: str, nbytes: int, kind: str = "device memory") -> errors.CudaError:
    """Return the exception for more bytes than the driver can be asked for."""
    return allocation_error(enums.CUresult.CUDA_ERROR_OUT_OF_MEMORY, call, nbytes, kind)


def allocation_error(
    status: Any, call: str, nbytes: int, kind: str = "device memory", pool: MemoryPool | None = None
) -> errors.CudaError:
    """Return the exception for a failed allocation, which names the sizes where no memory was left.

    It names the requested bytes, the free device memory and the maximum size of the `pool`.
    """
    if status.name != "CUDA_ERROR_OUT_OF_MEMORY":
        return failure(status, call)
    message = f"{call}: {nbytes:,} bytes of {kind} were requested"
    free_bytes = total = None
    if kind == "device memory":
        free_bytes, total = api.cuMemGetInfo()
        message += f"; {free_bytes:,} of {total:,} are free"
    if pool is not None and pool.max_size:
        message += f"; the pool holds at most {pool.max_size:,}"
        if pool.used + nbytes <= pool.max_size:
            message += ", and each allocation is rounded up"
    return errors.OutOfMemoryError(
        f"{message} ({status.name})", status=status, call=call, requested=nbytes, free=free_bytes, total=total
    )
