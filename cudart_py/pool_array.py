"""Arrays that own stream-ordered memory of a pool: the allocation, and the free that is due exactly once."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from . import arguments, errors
from ._driver import api, raw
from ._lifetime import closes, finalize
from .allocation import out_of_memory
from .array import DeviceArray
from .capture import captures, defer, refuse
from .debugging import state as launched
from .device import Device, activated, current_device
from .device import _thread as this_thread
from .stream import Stream, legacy_default, per_thread_default, stream_handle

if TYPE_CHECKING:
    from .pools import MemoryPool, PoolMemory

__all__ = ["PoolArray", "empty"]

_PER_THREAD = per_thread_default.handle

_known_dtypes: dict[Any, tuple[np.dtype[Any], int]] = {}
_KEPT_DTYPES = 128


class PoolArray(DeviceArray):
    """A contiguous array in stream-ordered memory of the device's pool or of another.

    Made with cuMemAllocAsync or cuMemAllocFromPoolAsync, given back with cuMemFreeAsync. It is the owner itself, as an
    object for the memory alone would double what both calls cost.
    """

    __slots__ = ("_pool", "_thread", "device", "home", "stream")

    device: Device
    home: Device | Literal[False]
    stream: Stream
    # The pool, which lives as long as its memory; two where another thread changed the device's meanwhile. Deleted by
    # whoever frees the memory: of several threads that try at once one succeeds, by the interpreter's lock.
    _pool: PoolMemory | tuple[PoolMemory | None, ...] | None
    base = None
    # Where the stream is the per-thread default one, whose: to every other thread its handle is another stream.
    _thread: int

    def close(self, *, stream: Stream | None = None) -> None:
        """Give the memory back in the order of `stream`, by default the stream of the allocation (cuMemFreeAsync).

        Views of the array are closed with it. A second call does nothing.
        """
        if stream is not None and self.home is not False:
            stream_handle("DeviceArray.close", stream)  # what is no open stream is refused before anything changes
            self.stream = stream
        try:
            pool = self._pool
            del self._pool
        except AttributeError:
            return
        self.home = False
        closes.latest = object()
        launched.last = None
        order = self.stream
        native = order._queue
        # A stream of somebody's own is the same whatever is current, the default ones are not. With nothing current a
        # driver may refuse.
        if (
            native is not None
            and not captures
            and self._flat
            and (order._device is not None or (this_thread.device is self.device and order._value != _PER_THREAD))
        ):
            (status,) = raw.cuMemFreeAsync(self._native, native)
            if not status:
                return
            if this_thread.device is not None:
                raise errors.failure(status, "cuMemFreeAsync")
        self._free_carefully(pool)

    def _free_carefully(self, pool: object) -> None:
        """Free the memory whatever is current, captured or closed; the pool must live until then."""
        if not self._flat:
            return
        stream = self.stream
        # A captured free would free again at every launch of the graph.
        if captures and defer(stream._value or 0, lambda: self._free_carefully(pool)):
            return
        with activated(self.device):
            if stream.closed or (stream._value == _PER_THREAD and self._made_elsewhere()):
                # The stream that would order this free is gone or out of reach: wait for everything instead.
                api.cuCtxSynchronize()
                api.cuMemFreeAsync(self._native, 1)
            else:
                api.cuMemFreeAsync(self._native, stream.handle)

    def _made_elsewhere(self) -> bool:
        """Tell whether another thread allocated the memory, in its per-thread default stream."""
        return getattr(self, "_thread", None) not in (None, threading.get_ident())

    def __del__(self, _finalize: Callable[[Any], None] = finalize) -> None:
        if self.home is not False:
            _finalize(self)


# Users know one kind of array, and errors name it.
PoolArray.__name__ = DeviceArray.__name__


def empty(
    shape: Any, dtype: DTypeLike = np.float64, *, stream: Stream | None = None, pool: MemoryPool | None = None
) -> DeviceArray:
    """Allocate an array of the current device without initialising it (cuMemAllocAsync).

    `shape` is an int or a tuple; `stream` orders the allocation and later the free, by default the
    legacy default stream. The memory comes from `pool`, by default the device's (cuMemAllocFromPoolAsync). Raises
    OutOfMemoryError with the sizes, ValueError for a pool of another device than the stream's.
    """
    try:
        kind, itemsize = _known_dtypes[dtype]
    except (KeyError, TypeError):
        kind, itemsize = _learn_dtype(dtype)
    if type(shape) is int and shape >= 0:
        sizes: tuple[int, ...] = (shape,)
        nbytes = shape * itemsize
    else:
        sizes = arguments.shape("empty", "shape", shape)
        nbytes = math.prod(sizes) * itemsize
    if stream is None:
        stream = legacy_default
    try:
        # In a stream of somebody's own the driver allocates on its device, whatever is current; a default one has the
        # thread's.
        device, native = stream._device or this_thread.device or current_device(), stream._queue
        source = device._pool if pool is None else pool
    except AttributeError:
        stream_handle("empty", stream)  # raises for what is no stream
        raise
    if pool is not None:
        stream_handle("empty", stream)
        _check_pool(pool, device)
    memory: Any = None if source is None else source.memory
    if native is not None and pool is None and nbytes and not captures:
        try:
            status, value = raw.cuMemAllocAsync(nbytes, native)
        except OverflowError:
            status, value = _no_such_size()
        if status:
            arguments.shape("empty", "shape", shape)  # raises for a size that is none
            value = _try_again(status, nbytes, stream, device)
    else:
        arguments.shape("empty", "shape", sizes)
        value = _allocate_carefully(nbytes, stream, device, pool)
    if pool is None and device._pool is not source:
        memory = memory, device._pool and device._pool.memory
    # Set here and not by a constructor, whose call would cost as much as all of this.
    array = PoolArray()
    array._pool = memory
    array._native = value
    array._pointer = int(value)
    array._flat = nbytes
    array._strides = None
    array.shape = sizes
    array.dtype = kind
    array.stream = stream
    array.device = array.home = device
    if (native is None or stream._device is None) and stream._value == _PER_THREAD:
        array._thread = threading.get_ident()
    return array


def _check_pool(pool: Any, device: Device) -> None:
    """Check a pool that is named, against the device of the stream."""
    from .pools import MemoryPool

    arguments.opened("empty", "pool", pool, MemoryPool, "a MemoryPool or None")
    if pool.device is not device:
        raise ValueError(
            f"empty: argument 'pool' is of device {pool.device.ordinal}, and the stream of device {device.ordinal}"
        )


def _learn_dtype(dtype: DTypeLike) -> tuple[np.dtype[Any], int]:
    """Return the dtype and its bytes, and keep those that are often asked for."""
    kind = arguments.dtype("empty", "dtype", dtype)
    if isinstance(dtype, type | np.dtype) and len(_known_dtypes) < _KEPT_DTYPES:
        _known_dtypes[dtype] = kind, kind.itemsize
    return kind, kind.itemsize


def _try_again(status: Any, nbytes: int, stream: Stream, device: Device) -> Any:
    """Allocate once more if the driver may have missed a current device, or raise what it said."""
    if this_thread.device is not None:
        raise _failure(status, device, nbytes, None)
    return _allocate_carefully(nbytes, stream, device, None)


def _allocate_carefully(nbytes: int, stream: Stream, device: Device, pool: MemoryPool | None) -> Any:
    """Allocate from any pool, in any stream, and return the address; 0 for no bytes."""
    stream_handle("empty", stream)  # raises when closed
    native, source = stream.native, None if pool is None else pool.handle
    if not nbytes:
        return 0
    if captures:
        refuse(stream.handle, "an allocation", "allocate before the capture begins")
    with activated(device):
        try:
            if source is None:
                status, value = raw.cuMemAllocAsync(nbytes, native)
            else:
                status, value = raw.cuMemAllocFromPoolAsync(nbytes, source, native)
        except OverflowError:
            status, value = _no_such_size()
    if status:
        raise _failure(status, device, nbytes, pool)
    return value


def _no_such_size() -> tuple[Any, None]:
    """Return what the driver would, had it a type for so many bytes."""
    from cuda.bindings.driver import CUresult

    return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None


def _failure(status: Any, device: Device, nbytes: int, pool: MemoryPool | None) -> errors.CudaError:
    with activated(device):
        # The pool may have grown before it failed, and would keep that from everybody else.
        api.cuMemPoolTrimTo(api.cuDeviceGetMemPool(device.handle) if pool is None else pool.handle, 0)
        call = "cuMemAllocAsync" if pool is None else "cuMemAllocFromPoolAsync"
        return out_of_memory(status, call, nbytes, pool)
