"""Handles of arrays, events and pools, from which other processes open them."""

from __future__ import annotations

import functools
import math
import os
import uuid
import weakref
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from ..base import arguments
from ..context.current import activated
from ..context.device import Device, devices
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.capabilities import require_ipc
from ..driver.unwrap import failure
from ..memory import creation
from ..memory.array import DeviceArray
from ..memory.pools import MemoryPool
from ..streams.event import Event
from ..streams.stream import legacy_default
from .memory import STILL_OPEN, ImportedAllocation, OpenedAllocation, OpenedPool, SharedAllocation, bytes_of, filled


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
    _pool: uuid.UUID | None = field(repr=False)

    def open(self, pool: OpenedPool | None = None) -> DeviceArray:
        """Return the array in this process, over the same memory (cuIpcOpenMemHandle, cuMemPoolImportPointer).

        An array from a pool needs `pool`, which the pool's own handle has opened. It can be open only once in this
        process, since the driver does not count.

        Closing it, explicitly or at the end of a `with` block, waits for the device and releases the memory in this
        process only (cuIpcCloseMemHandle, cuMemFreeAsync). The process that created the array must keep it open until
        then. It must also signal with an event when the contents are ready, since stream order does not extend across
        processes.

        Raises ValueError in the process that created the array, for another pool than the array's, for an array from a
        pool that is open already, or if the array's device is not visible in this process. Raises TypeError for an
        array from a pool without its pool, CudaError if the array has been closed, and NotSupportedError if the driver
        lacks the capability `ipc`.
        """
        call = "ArrayHandle.open"
        device = _device_here(call, self.device_uuid, self._process)
        if self._pool is None and pool is not None:
            raise arguments.wrong_value(call, "pool", "None for an array from ipc.empty", pool)
        if self._pool is not None:
            arguments.opened(call, "pool", pool, OpenedPool, "the array's pool, which PoolHandle.open returns")
        if 0 in self.shape:
            with activated(device):
                return creation.empty(self.shape, self.dtype)
        base: OpenedAllocation | ImportedAllocation
        if pool is None:
            base = OpenedAllocation(self._data, device)
        elif pool._imported.identity != self._pool:
            raise arguments.unusable(call, "pool", "be the pool that the array is from", "another pool")
        else:
            base = ImportedAllocation(self._data, pool._imported)
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

        A wait applies to the latest record before the call, whichever process recorded the event. The process that
        created the event must keep it open until this process closes it. Raises the same errors as `ArrayHandle.open`.
        """
        device = _device_here("EventHandle.open", self.device_uuid, self._process)
        shared = filled(enums.CUipcEventHandle(), self._data)
        with activated(device):
            status, native = raw.cuIpcOpenEventHandle(shared)
        if status:
            raise failure(status, "cuIpcOpenEventHandle", STILL_OPEN.format("event"))
        return Event._adopt(native, device)


class _Descriptor:
    """A file descriptor, which is closed with its last reference."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        weakref.finalize(self, os.close, number)

    def __reduce__(self) -> tuple[Any, ...]:
        # Imported late: only programs that send pools need it. It sends a duplicate of the descriptor, when a process
        # is started or when the other process unpickles it.
        from multiprocessing.reduction import DupFd

        return _received, (DupFd(self.number),)


def _received(duplicate: Any) -> _Descriptor:
    return _Descriptor(duplicate.detach())


@dataclass(frozen=True)
class PoolHandle:
    """A handle that lets another process `open` a pool. Create it with `ipc.handle`.

    It holds a file descriptor, which only multiprocessing can send: as an argument of a process, or through its queues,
    pipes and pools. The descriptor is closed with the handle's last reference.
    """

    device_uuid: uuid.UUID
    _descriptor: _Descriptor = field(repr=False)
    _process: str = field(repr=False)
    _identity: uuid.UUID = field(repr=False)

    def open(self) -> OpenedPool:
        """Return the pool in this process, which `ArrayHandle.open` needs (cuMemPoolImportFromShareableHandle).

        The process that created the pool must keep it open until this process has closed it, and its arrays. Raises
        ValueError in the process that created the pool, or if its device is not visible in this process. Raises
        CudaError if the pool has been closed, and NotSupportedError if the driver lacks the capability `ipc`.
        """
        device = _device_here("PoolHandle.open", self.device_uuid, self._process)
        return OpenedPool(self._descriptor.number, device, self._identity)


@overload
def handle(thing: DeviceArray) -> ArrayHandle: ...
@overload
def handle(thing: Event) -> EventHandle: ...
@overload
def handle(thing: MemoryPool) -> PoolHandle: ...
def handle(thing: DeviceArray | Event | MemoryPool) -> ArrayHandle | EventHandle | PoolHandle:
    """Return a handle to an array, an event or a pool for other processes.

    `thing` is one of these:

    - an array from `ipc.empty`, or a view of one (cuIpcGetMemHandle)
    - a `MemoryPool(interprocess=True)` (cuMemPoolExportToShareableHandle), or an array from it, or a view of one
      (cuMemPoolExportPointer)
    - an `Event(timing=False, interprocess=True)` (cuIpcGetEventHandle)

    The handle can be pickled, so it can be sent as an argument or through the queues and pipes of multiprocessing. Its
    `open()` returns the object in the other process. The handle does not keep `thing` alive: it must stay open in this
    process until all other processes have closed it.

    Raises TypeError for other objects, and ValueError for an object that is closed or was not created for sharing.
    """
    call = "ipc.handle"
    kinds = (DeviceArray, Event, MemoryPool)
    arguments.instance(call, "thing", thing, kinds, "an array from ipc.empty or a pool, an Event or a MemoryPool")
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
        return EventHandle(where, bytes_of(native), process)
    if isinstance(thing, MemoryPool):
        return _pool_handle(call, thing, where, process)
    offset, data, pool = _place_of(call, thing)
    return ArrayHandle(thing.shape, thing.dtype, thing.strides, where, offset, data, process, pool)


def _pool_handle(call: str, pool: MemoryPool, device_uuid: uuid.UUID, process: str) -> PoolHandle:
    if pool._memory is None or pool._memory.shared_identity is None:
        raise ValueError(
            f"{call}: argument 'thing' is a pool that other processes cannot open: make it with "
            "MemoryPool(interprocess=True), in the process that shares it"
        )
    kind = enums.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    with activated(pool.device):
        descriptor = _Descriptor(int(api.cuMemPoolExportToShareableHandle(pool.handle, kind, 0)))
    return PoolHandle(device_uuid, descriptor, process, pool._memory.shared_identity)


def _place_of(call: str, array: DeviceArray) -> tuple[int, bytes, uuid.UUID | None]:
    """Return an array's offset in bytes within its allocation, the allocation's driver handle, and its pool."""
    if not array.size:
        return 0, b"", None
    owner = array
    while isinstance(owner.base, DeviceArray):
        owner = owner.base
    separate, pool = owner.base, None if owner._origin is None else owner._origin.pool_before
    with activated(array.device):
        if isinstance(separate, SharedAllocation):
            native = api.cuIpcGetMemHandle(separate.handle)
            return array.pointer - separate.handle, bytes_of(native), None
        if separate is None and pool is not None and pool.shared_identity is not None:
            native = api.cuMemPoolExportPointer(owner.pointer)
            return array.pointer - owner.pointer, bytes_of(native), pool.shared_identity
    raise ValueError(
        f"{call}: argument 'thing' is an array that other processes cannot open: allocate it with ipc.empty, or from a "
        "MemoryPool(interprocess=True), in the process that shares it"
    )


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
