"""Allocations of device memory: who gives the bytes back, and in which stream."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from . import errors
from ._driver import api, raw
from ._lifetime import Handle
from .capture import captures, defer, refuse
from .device import Device, activated, current_device
from .device import _thread as this_thread
from .stream import Stream, legacy_default, per_thread_default, stream_handle

if TYPE_CHECKING:
    from .pools import MemoryPool

__all__ = ["Allocation", "BorrowedAllocation", "PitchedAllocation", "PoolAllocation"]


class Allocation(Handle):
    """Bytes of device memory; arrays and their views share one."""

    __slots__ = ("device", "home", "nbytes", "stream")

    device: Device
    # The device while the memory may be used, False from its end on: what is done often asks both at once. Not None,
    # which is the device of a thread that has done nothing yet.
    home: Device | Literal[False]
    nbytes: int
    stream: Stream

    def check_access(self, device: Device, where: str) -> None:
        """Raise ValueError, beginning with `where`, if kernels of another device cannot reach the bytes."""
        if device is not self.device and not device.peer_enabled(self.device):
            raise ValueError(
                f"{where}: the array is on device {self.device.ordinal}, and device {device.ordinal} has no access; "
                f"call Device({device.ordinal}).enable_peer(Device({self.device.ordinal})), or copy the array"
            )


class PoolAllocation(Allocation):
    """Stream-ordered memory of the device's pool or of another.

    Made with cuMemAllocAsync or cuMemAllocFromPoolAsync, given back with cuMemFreeAsync.
    """

    __slots__ = ("_pool", "_thread")

    # Where the stream is the per-thread default one, whose: to every other thread its handle is another stream.
    _thread: int

    def __init__(self, nbytes: int, stream: Stream, pool: MemoryPool | None = None) -> None:
        self._value = None
        self._owned = True
        try:
            device = stream._device
        except AttributeError:
            stream_handle(stream)  # raises for what is no stream
            raise
        if device is None:
            device = current_device()
            if stream is per_thread_default:
                self._thread = threading.get_ident()
        self.device = self.home = device
        self.nbytes = nbytes
        self.stream = stream
        source = device._pool if pool is None else pool
        self._pool = source.memory if source is not None else None
        if not nbytes:
            self._value = 0
            return
        if captures:
            refuse(stream.handle, "an allocation", "allocate before the capture begins")
        native = stream._queue
        if native is None:
            native = stream.native
        try:
            if pool is None and this_thread.device is device:
                status, value = raw.cuMemAllocAsync(nbytes, native)
            else:
                with activated(device):
                    if pool is None:
                        status, value = raw.cuMemAllocAsync(nbytes, native)
                    else:
                        status, value = raw.cuMemAllocFromPoolAsync(nbytes, pool.handle, native)
        except OverflowError:  # no size_t holds so many bytes
            from cuda.bindings.driver import CUresult

            status, value = CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        if status:
            raise self._failure(status, pool)
        self._value = value

    def _failure(self, status: Any, pool: MemoryPool | None) -> errors.CudaError:
        with activated(self.device):
            # The pool may have grown before it failed, and would keep that from everybody else.
            api.cuMemPoolTrimTo(api.cuDeviceGetMemPool(self.device.handle) if pool is None else pool.handle, 0)
            call = "cuMemAllocAsync" if pool is None else "cuMemAllocFromPoolAsync"
            return out_of_memory(status, call, self.nbytes, pool)

    def _release(self, value: Any) -> None:
        self.home = False
        native = self.stream._queue
        if (
            native is None
            or captures
            or not self.nbytes
            or this_thread.device is not self.device
            or self.stream is per_thread_default
        ):
            self._release_carefully(value)
            return
        (status,) = raw.cuMemFreeAsync(value, native)
        if status:
            raise errors.failure(status, "cuMemFreeAsync")

    def _made_elsewhere(self) -> bool:
        """Tell whether another thread allocated the memory, in its per-thread default stream."""
        return getattr(self, "_thread", None) not in (None, threading.get_ident())

    def _release_carefully(self, value: Any) -> None:
        """Free the memory whatever is current, captured or closed."""
        if not self.nbytes:
            return
        stream = self.stream
        # A captured free would free again at every launch of the graph.
        if captures and defer(stream._value or 0, lambda: self._release_carefully(value)):
            return
        with activated(self.device):
            if stream.closed or (stream is per_thread_default and self._made_elsewhere()):
                # The stream that would order this free is gone or out of reach: wait for everything instead.
                api.cuCtxSynchronize()
                api.cuMemFreeAsync(value, legacy_default.handle)
            else:
                api.cuMemFreeAsync(value, stream.handle)


class PitchedAllocation(Allocation):
    """Rows padded to the pitch that the device prefers (cuMemAllocPitch, cuMemFree)."""

    __slots__ = ("pitch",)

    pitch: int

    def __init__(self, width: int, height: int, itemsize: int) -> None:
        self._value = None
        self._owned = True
        self.device = self.home = current_device()
        self.stream = legacy_default
        # The driver takes 4, 8 and 16 only: the widest access of a kernel that the rows must suit.
        access = max(size for size in (4, 8, 16) if size == 4 or itemsize % size == 0)
        result = raw.cuMemAllocPitch(width, height, access)
        if result[0]:
            raise out_of_memory(result[0], "cuMemAllocPitch", width * height)
        self._value, self.pitch = int(result[1]), int(result[2])
        self.nbytes = self.pitch * height

    def _release(self, value: Any) -> None:
        self.home = False
        with activated(self.device):
            api.cuMemFree(value)


class BorrowedAllocation(Allocation):
    """Memory of somebody else, never freed here; `owner` is kept alive with it."""

    __slots__ = ("owner",)

    def __init__(self, pointer: int, nbytes: int, device: Device, owner: Any) -> None:
        self._value = pointer
        self._owned = False
        self.device = self.home = device
        self.stream = legacy_default
        self.nbytes = nbytes
        self.owner = owner

    def close(self) -> None:
        """Let no array use the memory any more."""
        self.home = False
        super().close()


def out_of_memory(status: Any, call: str, requested: int, pool: MemoryPool | None = None) -> errors.CudaError:
    """Make the exception for a failed allocation, with the sizes where memory was the matter."""
    if status.name != "CUDA_ERROR_OUT_OF_MEMORY":
        return errors.failure(status, call)
    free, total = api.cuMemGetInfo()
    limit = f"; the pool holds {pool.max_size:,} at most" if pool is not None and pool.max_size else ""
    return errors.OutOfMemoryError(
        f"{call}: {requested:,} bytes were asked for and {free:,} of {total:,} are free{limit} "
        "(CUDA_ERROR_OUT_OF_MEMORY)",
        status=status,
        call=call,
        requested=requested,
        free=free,
        total=total,
    )
