"""Host memory that the device can access: page-locked memory, which can be mapped into the device's address space."""

from __future__ import annotations

import bisect
import functools
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..base import arguments
from ..base.pointer import Pointer
from ..base.set_once import SetOnce
from ..base.shapes import Shape
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import Handle, WaitingHandle, finalize
from ..driver import calls, enums
from ..driver.backend import chosen
from ..driver.calls import api
from ..driver.unwrap import check
from ..streams.stream import Stream, legacy_default
from .allocation import MOST_BYTES, allocation_error, too_many_bytes
from .pools import MemoryPool, PoolMemory, allocate_for_host, pool_of_kind

# Integers, floats, complex numbers, booleans, durations and dates: kinds of dtypes that their type strings describe
# completely. This is not so for other kinds, or for dtypes of other packages, such as eight-bit floats.
_NAMED_KINDS = "biufcmM"


class HostMemory(Handle):
    """Memory that both the host and the device can access; the base object of the NumPy arrays over it.

    `mapped`: whether kernels can access it.
    """

    __slots__ = ("_device", "_layout", "mapped", "nbytes")

    _device: Device
    mapped: bool
    nbytes: int
    # The shape and type string in the array interface. If it is not set, the interface describes an array of bytes.
    _layout: tuple[tuple[int, ...], str]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        shape, typestr = getattr(self, "_layout", ((self.nbytes,), "|u1"))
        return {"version": 3, "shape": shape, "typestr": typestr, "data": (self.handle, False)}

    def _device_address(self, address: int) -> int:
        """Return the device address for a host address in this memory (cuMemHostGetDevicePointer)."""
        with activated(self._device):
            return int(api.cuMemHostGetDevicePointer(self.handle, 0)) + address - self.handle

    def _lose(self) -> None:
        # The arrays over this memory still use its bytes and keep this object alive, so the bytes are dropped with it.
        weakref.finalize(self, finalize, functools.partial(_drop_bytes, self._value)).atexit = False
        super()._lose()


def _drop_bytes(address: int) -> None:
    check(chosen().drop_bytes(address))


class PooledMemory(WaitingHandle, HostMemory):
    """Page-locked memory from a pool (cuMemAllocFromPoolAsync), which every device can access.

    Freeing it waits for the device, because work in any stream may use it. The pool then keeps it for reuse. cuMemFree
    would wait too, but driver 580.159 then goes on counting the memory as in use.
    """

    __slots__ = ("_pool_memory", "_queue")

    _pool_memory: PoolMemory | None  # the driver's pool lives as long as its memory
    _queue: Stream

    def __init__(self, nbytes: int, pool: MemoryPool) -> None:
        self._value = None
        self._owned = True
        self.nbytes = nbytes
        self.mapped = True
        self._device = pool.device
        self._pool_memory = pool._memory
        self._queue, self._value = allocate_for_host(pool, nbytes)

    @property
    def device(self) -> Device:
        """The device of the pool."""
        return self._device

    def _device_address(self, address: int) -> int:
        """Return the address itself: memory of a pool has the same address on the host and on devices."""
        self.handle  # noqa: B018  # raises when closed
        return address

    def _destroy(self, value: Any) -> None:
        queue = legacy_default if self._queue.closed else self._queue  # it is closed with the pool
        api.cuMemFreeAsync(value, queue.native)
        api.cuStreamSynchronize(queue.native)  # so that the pool can release the memory


class PinnedMemory(HostMemory):
    """Page-locked host memory (cuMemHostAlloc).

    Several arrays may share it. It is freed when the last of them is gone, or by `close()`, after which none of them
    may be used.
    """

    __slots__ = ("write_combined",)

    def __init__(self, nbytes: int, *, mapped: bool = False, write_combined: bool = False) -> None:
        self._value = None
        self._owned = True
        self._device = current_device()
        self.nbytes = nbytes
        self.mapped = mapped
        self.write_combined = write_combined
        flags = enums.CU_MEMHOSTALLOC_PORTABLE
        flags |= enums.CU_MEMHOSTALLOC_DEVICEMAP if mapped else 0
        flags |= enums.CU_MEMHOSTALLOC_WRITECOMBINED if write_combined else 0
        if nbytes > MOST_BYTES:
            raise too_many_bytes("cuMemHostAlloc", nbytes, "page-locked host memory")
        status, value = calls.raw.cuMemHostAlloc(nbytes, flags)
        if status:
            raise allocation_error(status, "cuMemHostAlloc", nbytes, "page-locked host memory")
        self._value = int(value)

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuMemFreeHost(value)


class RegisteredMemory(SetOnce, HostMemory):
    """The memory of an existing NumPy array, page-locked until this object is closed (cuMemHostRegister)."""

    __slots__ = {"array": "The array whose memory it is."}

    def __init__(self, array: NDArray[Any]) -> None:
        self._value = None
        self._owned = True
        _check_lockable("RegisteredMemory", array)
        self._device = current_device()
        self.array = array
        self.nbytes = array.nbytes
        self.mapped = True
        flags = enums.CU_MEMHOSTREGISTER_PORTABLE | enums.CU_MEMHOSTREGISTER_DEVICEMAP
        # Passed as an object, not as an address, so that a driver that still uses the memory after it was unregistered
        # can keep it alive.
        whole = np.asarray(array).reshape(-1, order="A").view(np.uint8)
        api.cuMemHostRegister(whole, self.nbytes, flags)
        self._value = array.ctypes.data
        _registered.add(self)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"of {self.array.shape} {self.array.dtype}"
        return f"<RegisteredMemory {state}>"

    def _lose(self) -> None:
        _registered.remove(self._value)
        super()._lose()

    def _release(self, value: Any) -> None:
        _registered.remove(value)
        with activated(self._device):
            api.cuMemHostUnregister(value)


class _Registered:
    """The registered ranges, keyed by start address, because an array does not know that it is registered."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._memory: dict[int, weakref.ref[RegisteredMemory]] = {}

    def add(self, memory: RegisteredMemory) -> None:
        with self._lock:
            bisect.insort(self._starts, memory.handle)
            self._memory[memory.handle] = weakref.ref(memory)

    def remove(self, start: int) -> None:
        with self._lock:
            self._starts.remove(start)
            del self._memory[start]

    def find(self, array: NDArray[Any]) -> RegisteredMemory | None:
        """Return the registered range that contains the whole array, or None."""
        if not self._starts:
            return None
        low, high = np.lib.array_utils.byte_bounds(array)
        with self._lock:
            place = bisect.bisect_right(self._starts, low) - 1
            memory = self._memory[self._starts[place]]() if place >= 0 else None
        if memory is None or memory.closed or high > memory.handle + memory.nbytes:
            return None
        return memory


_registered = _Registered()


def register_host(array: NDArray[Any]) -> RegisteredMemory:
    """Page-lock the memory of an existing NumPy array until the result is closed (cuMemHostRegister).

    Use `with register_host(array):`, or keep the result and call `close()` once no copy or kernel uses the array any
    longer. Until then, copies of the array run at full speed and concurrently with the host, and kernels accept the
    array as an argument. Page-locking takes a long time, so it pays off only for memory that is used repeatedly.

    Raises TypeError for anything that is not a NumPy array, ValueError for an array that is empty, read-only or not
    contiguous, and InvalidValueError for an array that is already page-locked.
    """
    _check_lockable("register_host", array)
    return RegisteredMemory(array)


def _check_lockable(call: str, array: Any) -> None:
    """Raise TypeError or ValueError if the memory of a call's argument `array` cannot be page-locked."""
    arguments.instance(call, "array", array, np.ndarray, "a NumPy array")
    if array.dtype.hasobject:
        wanted = "one without Python objects, which a device cannot use,"
        raise arguments.wrong_dtype(call, "array", wanted, array.dtype)
    if not array.size:
        raise arguments.unusable(call, "array", "have at least one element", f"the shape {array.shape}")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise arguments.unusable(call, "array", "be contiguous", f"of shape {array.shape} with strides {array.strides}")
    if not array.flags.writeable:
        raise arguments.unusable(call, "array", "be writeable, since the device could write to it", "read-only")


def pinned_empty(
    shape: Shape,
    dtype: DTypeLike = np.float64,
    *,
    mapped: bool = False,
    write_combined: bool = False,
    pool: MemoryPool | None = None,
) -> NDArray[Any]:
    """Allocate page-locked (pinned) host memory as an uninitialised NumPy array (cuMemHostAlloc).

    Copies to and from this memory run at full speed and concurrently with the host.

    - `mapped`: kernels can read and write the array, as an argument or through `device_pointer`.
    - `write_combined`: faster for the device to read, but very slow for the host to read.
    - `pool`: a `MemoryPool(kind="pinned")`, which keeps freed memory for later arrays, since page-locking takes a long
      time (cuMemAllocFromPoolAsync). Its memory is always mapped and never write-combined.

    The memory is freed once no array uses it any longer. Raises OutOfMemoryError, with the size, if there is not enough
    memory, and ValueError for a pool of another kind of memory.
    """
    call = "pinned_empty"
    sizes, kind, nbytes = arguments.layout(call, shape, dtype)
    mapped = arguments.flag(call, "mapped", mapped)
    write_combined = arguments.flag(call, "write_combined", write_combined)
    if pool is not None:
        pool_of_kind(call, pool, "pinned")
        if write_combined:
            raise arguments.wrong_value(call, "write_combined", "False with 'pool'", write_combined)
    if 0 in sizes:
        return np.empty(sizes, kind)
    if pool is not None:
        return array_over(PooledMemory(nbytes, pool), sizes, kind)
    memory = PinnedMemory(nbytes, mapped=mapped, write_combined=write_combined)
    return array_over(memory, sizes, kind)


def array_over(memory: HostMemory, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a NumPy array over the whole of `memory`, which lives as long as the array.

    If the array interface can describe the dtype, the base of the array is `memory` itself, so that a copy finds the
    memory quickly.
    """
    if dtype.kind in _NAMED_KINDS and dtype.isbuiltin == 1 and dtype.metadata is None:
        memory._layout = shape, dtype.str
        return np.asarray(memory)
    return np.asarray(memory).view(dtype).reshape(shape)


def pinned_owner(array: NDArray[Any]) -> HostMemory | None:
    """Return the page-locked or managed memory that contains an array or a view, or None."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, HostMemory) else _registered.find(array)


def freed_owner(array: NDArray[Any]) -> HostMemory | None:
    """Return the page-locked or managed memory that contained an array, if it has been freed; else None.

    Memory that a reset has closed keeps its bytes until the last array over it is gone.
    """
    owner = pinned_owner(array)
    return owner if owner is not None and owner.closed and not owner._is_lost else None


def is_pinned(array: NDArray[Any]) -> bool:
    """Return whether an array is page-locked, registered or managed, so that copies run concurrently with the host."""
    return pinned_owner(array) is not None


def device_pointer(array: NDArray[Any]) -> Pointer:
    """Return the address at which kernels access a mapped, registered or managed array (cuMemHostGetDevicePointer).

    Raises TypeError for anything that is not a NumPy array, and ValueError for an array that kernels cannot access.
    """
    arguments.instance("device_pointer", "array", array, np.ndarray, "a NumPy array")
    owner = pinned_owner(array)
    if owner is None or not owner.mapped:
        what = "pageable" if owner is None else "pinned but not mapped"
        remedy = "make it with pinned_empty(..., mapped=True)"
        raise arguments.unusable("device_pointer", "array", "be mapped", what, remedy)
    return Pointer(owner._device_address(array.ctypes.data), owner)
