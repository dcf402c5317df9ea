"""Memory and events that processes share, `cuda.ipc`: created in one process, and opened in others with handles.

Memory from pools cannot be shared in this way, so shared arrays have separate allocations.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import uuid
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike

from . import arguments
from .context.current import activated
from .context.device import Device, current_device, devices
from .context.lifetimes import WaitingHandle
from .driver import enums
from .driver.calls import api, raw
from .driver.capabilities import require_ipc
from .driver.unwrap import failure
from .memory import creation
from .memory.allocation import MOST_BYTES, Allocation, allocation_error, too_many_bytes
from .memory.array import DeviceArray
from .shapes import Shape
from .streams.event import Event
from .streams.stream import legacy_default

__all__ = ["ArrayHandle", "EventHandle", "empty", "handle"]
__dir__ = __all__.copy  # without private names and imports

# The driver shares memory in units of this many bytes, with everything in them. Allocations are rounded up to whole
# units, so that a unit contains no other memory.
_PIECE = 2 << 20


class SharedAllocation(Allocation):
    """A separate allocation that other processes can open (cuMemAlloc)."""

    __slots__ = ()

    def __init__(self, nbytes: int) -> None:
        self._value = None
        self._owned = True
        self.device = current_device()
        if nbytes > MOST_BYTES - _PIECE:
            raise too_many_bytes("cuMemAlloc", nbytes)
        status, value = raw.cuMemAlloc(-(-nbytes // _PIECE) * _PIECE)
        if status:
            raise allocation_error(status, "cuMemAlloc", nbytes)
        self._value = int(value)

    def _release(self, value: Any) -> None:
        with activated(self.device):
            api.cuMemFree(value)


class OpenedAllocation(Allocation, WaitingHandle):
    """Memory of another process, opened in this one (cuIpcOpenMemHandle).

    Closing it waits for the device. The driver waits when memory is freed, but nothing says that it does here.
    """

    __slots__ = ()

    def __init__(self, data: bytes, device: Device) -> None:
        self._value = None
        self._owned = True
        self.device = device
        handle = _filled(enums.CUipcMemHandle(), data)
        flags = int(enums.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)  # the only flag that exists, and required
        with activated(device):
            status, value = raw.cuIpcOpenMemHandle(handle, flags)
        if status:
            raise failure(status, "cuIpcOpenMemHandle", _STILL_OPEN.format("array"))
        self._value = int(value)

    def _destroy(self, value: Any) -> None:
        api.cuIpcCloseMemHandle(value)


_STILL_OPEN = "The {0} must be open in the process that made it, which must run on this machine"


@dataclass(frozen=True)
class ArrayHandle:
    """A handle that lets another process `open` an array. Create it with `ipc.handle`, and send it by pickling it.

    `shape` is in elements, `strides` is in bytes, and `device_uuid` identifies the device that the memory belongs to.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    device_uuid: uuid.UUID
    _offset: int = field(repr=False)
    _data: bytes = field(repr=False)
    _process: str = field(repr=False)

    def open(self) -> DeviceArray:
        """Return the array in this process, over the same memory (cuIpcOpenMemHandle).

        Closing it, explicitly or at the end of a `with` block, waits for the device and releases the memory in this
        process only (cuIpcCloseMemHandle). The process that made the array must keep it open until then. It must also
        signal with an event when the contents are ready, since stream order does not extend across processes.

        Raises ValueError in the process that made the array, or if the array's device is not visible in this process.
        Raises CudaError if the array has been closed, and NotSupportedError if the driver lacks the capability `ipc`.
        """
        device = _device_here("ArrayHandle.open", self.device_uuid, self._process)
        if 0 in self.shape:
            with activated(device):
                return creation.empty(self.shape, self.dtype)
        base = OpenedAllocation(self._data, device)
        nbytes = math.prod(self.shape) * self.dtype.itemsize
        pointer = base.handle + self._offset
        return DeviceArray(pointer, self.shape, self.dtype, nbytes, device, legacy_default, self.strides, base)


@dataclass(frozen=True)
class EventHandle:
    """A handle that lets another process `open` an event. Create it with `ipc.handle`, and send it by pickling it."""

    device_uuid: uuid.UUID
    _data: bytes = field(repr=False)
    _process: str = field(repr=False)

    def open(self) -> Event:
        """Return the event in this process, which can record it and wait for it like any other (cuIpcOpenEventHandle).

        A wait applies to the latest record before the call, whichever process recorded the event. The process that made
        the event must keep it open until this process closes it. Raises the same errors as `ArrayHandle.open`.
        """
        device = _device_here("EventHandle.open", self.device_uuid, self._process)
        shared = _filled(enums.CUipcEventHandle(), self._data)
        with activated(device):
            status, native = raw.cuIpcOpenEventHandle(shared)
        if status:
            raise failure(status, "cuIpcOpenEventHandle", _STILL_OPEN.format("event"))
        return Event._adopt(native, device)


def empty(shape: Shape, dtype: DTypeLike = np.float64) -> DeviceArray:
    """Allocate an uninitialised array on the current device that other processes can open (cuMemAlloc).

        x = cuda.ipc.empty(n, np.float32)
        process = multiprocessing.get_context("spawn").Process(target=work, args=(cuda.ipc.handle(x),))

    `shape` is an int or a tuple. The size of the allocation is a multiple of 2 MiB, because the driver shares memory in
    units of that size. The memory is freed when the array is closed, or once nothing refers to it any longer; freeing
    it waits for the device. Raises OutOfMemoryError, with the sizes, if there is not enough memory, and
    NotSupportedError if the driver lacks the capability `ipc`.
    """
    call = "ipc.empty"
    sizes, kind, nbytes = arguments.layout(call, shape, dtype)
    require_ipc(call)
    if 0 in sizes:
        return creation.empty(sizes, kind)
    base = SharedAllocation(nbytes)
    return DeviceArray(base.handle, sizes, kind, nbytes, base.device, legacy_default, None, base)


@overload
def handle(thing: DeviceArray) -> ArrayHandle: ...
@overload
def handle(thing: Event) -> EventHandle: ...
def handle(thing: DeviceArray | Event) -> ArrayHandle | EventHandle:
    """Return a handle to an array or an event for other processes (cuIpcGetMemHandle, cuIpcGetEventHandle).

    `thing` is an array from `ipc.empty` or a view of one, or an `Event(timing=False, interprocess=True)`. The handle
    can be pickled, so it can be sent as an argument or through the queues and pipes of multiprocessing. Its `open()`
    returns the array or event in the other process. The handle does not keep `thing` alive: it must stay open in this
    process until all other processes have closed it.

    Raises TypeError for other objects, and ValueError for an object that is closed or was not made for sharing.
    """
    call = "ipc.handle"
    arguments.instance(call, "thing", thing, (DeviceArray, Event), "an array from ipc.empty or an Event")
    if thing.closed:
        raise arguments.wrong_value(call, "thing", "open", thing)
    require_ipc(call)
    device = thing.device
    where, process = device.properties.uuid, _token_of(os.getpid())
    if isinstance(thing, Event):
        if not thing.interprocess:
            raise ValueError(
                f"{call}: argument 'thing' is an event that other processes cannot open: make it with "
                "Event(timing=False, interprocess=True), in the process that shares it"
            )
        with activated(device):
            native = api.cuIpcGetEventHandle(thing.native)
        return EventHandle(where, _bytes_of(native), process)
    offset, data = _place_of(call, thing)
    return ArrayHandle(thing.shape, thing.dtype, thing.strides, where, offset, data, process)


def _place_of(call: str, array: DeviceArray) -> tuple[int, bytes]:
    """Return an array's offset in bytes within its allocation, and the bytes of the allocation's driver handle."""
    if not array.size:
        return 0, b""
    base: Any = array
    while isinstance(base, DeviceArray):
        base = base.base
    if not isinstance(base, SharedAllocation):
        raise ValueError(
            f"{call}: argument 'thing' is an array that other processes cannot open: allocate it with ipc.empty, in "
            "the process that shares it"
        )
    with activated(array.device):
        native = api.cuIpcGetMemHandle(base.handle)
    return array.pointer - base.handle, _bytes_of(native)


def _device_here(call: str, wanted: uuid.UUID, process: str) -> Device:
    """Return the device that a handle belongs to, after checking that this process can open the handle."""
    require_ipc(call)
    if process == _token_of(os.getpid()):
        raise ValueError(f"{call}: this handle was made in this process: use the original object")
    for device in devices():
        if device.properties.uuid == wanted:
            return device
    raise ValueError(
        f"{call}: the handle belongs to a device that is not visible to this process, with the UUID {wanted}"
    )


@functools.cache
def _token_of(process: int) -> str:
    # A process id alone is not unique: a process in another container may have the same one. A forked child has an id
    # of its own, and so gets its own token.
    return uuid.uuid4().hex


def _bytes_of(handle: Any) -> bytes:
    """Return the bytes of a driver handle, of which the bindings expose only the address."""
    return ctypes.string_at(handle.getPtr(), enums.CU_IPC_HANDLE_SIZE)


def _filled(handle: Any, data: bytes) -> Any:
    """Copy these bytes into a driver handle, and return the handle."""
    ctypes.memmove(handle.getPtr(), data, enums.CU_IPC_HANDLE_SIZE)
    return handle
