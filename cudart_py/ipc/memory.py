"""Memory that processes share: allocations that other processes can open, and those of others that this one has opened.

An allocation is shared alone or through its pool. Alone, it is separate memory of the driver (cuMemAlloc). Through a
pool that was created for it, memory costs no more than other stream-ordered memory.
"""

from __future__ import annotations

import ctypes
import uuid
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..base import arguments
from ..base.shapes import Shape
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import Handle, WaitingHandle
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.capabilities import require_ipc
from ..driver.unwrap import failure
from ..memory import creation
from ..memory.allocation import MOST_BYTES, Allocation, allocation_error, too_many_bytes
from ..memory.array import DeviceArray
from ..streams.stream import legacy_default

# The driver shares memory in units of this many bytes, with everything in them. Allocations are rounded up to whole
# units, so that a unit contains no other memory.
_UNIT = 2 << 20
STILL_OPEN = "The {0} must be open in the process that made it, which must run on this machine"


class SharedAllocation(Allocation):
    """A separate allocation that other processes can open (cuMemAlloc)."""

    __slots__ = ()

    def __init__(self, nbytes: int) -> None:
        self._value = None
        self._owned = True
        self.device = current_device()
        if nbytes > MOST_BYTES - _UNIT:
            raise too_many_bytes("cuMemAlloc", nbytes)
        status, value = raw.cuMemAlloc(-(-nbytes // _UNIT) * _UNIT)
        if status:
            raise allocation_error(status, "cuMemAlloc", nbytes)
        self._value = int(value)

    def _release(self, value: Any) -> None:
        with activated(self.device):
            api.cuMemFree(value)


class OpenedAllocation(Allocation, WaitingHandle):
    """Memory of another process, opened in this one (cuIpcOpenMemHandle).

    Closing it waits for the device. The driver waits when ordinary memory is freed, but it is not documented to wait
    here.
    """

    __slots__ = ()

    def __init__(self, data: bytes, device: Device) -> None:
        self._value = None
        self._owned = True
        self.device = device
        handle = filled(enums.CUipcMemHandle(), data)
        flags = int(enums.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)  # the only flag that exists, and required
        with activated(device):
            status, value = raw.cuIpcOpenMemHandle(handle, flags)
        if status:
            raise failure(status, "cuIpcOpenMemHandle", STILL_OPEN.format("array"))
        self._value = int(value)

    def _destroy(self, value: Any) -> None:
        api.cuIpcCloseMemHandle(value)


class _ImportedPool:
    """The driver's pool for a pool of another process, which is destroyed with the last object that uses it.

    The driver may crash if a pool is destroyed before its allocations, which the garbage collector could otherwise
    cause, because it finalizes the objects of a reference cycle in any order.
    """

    __slots__ = ("_open", "_users", "device", "identity", "value")

    def __init__(self, value: int, device: Device, identity: uuid.UUID) -> None:
        self.value = value
        self.device = device
        self.identity = identity
        # One element for each object that uses the pool. Whoever takes the first one, which is True, is the last user.
        # A list, because it changes in one step, whatever other threads or finalizers do.
        self._users = [True]
        # A mark for each allocation that is open, keyed by the data from which it was imported.
        self._open: dict[bytes, object] = {}

    def claim(self, data: bytes) -> bool:
        """Note that an allocation is about to be imported; return False if it is open already."""
        mark = object()
        if self._open.setdefault(data, mark) is not mark:
            return False
        self._users.append(False)
        return True

    def disclaim(self, data: bytes) -> None:
        """Forget an allocation that has been closed."""
        del self._open[data]
        self.leave()

    def leave(self) -> None:
        """Note that an object no longer uses the pool."""
        if self._users.pop():
            with activated(self.device):
                api.cuMemPoolDestroy(self.value)


class ImportedAllocation(Allocation, WaitingHandle):
    """Memory from a pool of another process, opened in this one (cuMemPoolImportPointer).

    Closing it waits for the device, so that the other process may free the memory afterwards.
    """

    __slots__ = ("_data", "_pool")

    def __init__(self, data: bytes, pool: _ImportedPool) -> None:
        self._value = None
        self._owned = True
        self.device = pool.device
        self._data = data
        self._pool = pool
        if not pool.claim(data):
            raise ValueError(
                "ArrayHandle.open: the array is open in this process already, and the driver does not count how often: "
                "use the array that is open, or views of it"
            )
        try:
            shared = filled(enums.CUmemPoolPtrExportData(), data)
            with activated(self.device):
                status, value = raw.cuMemPoolImportPointer(pool.value, shared)
            if status:
                raise failure(status, "cuMemPoolImportPointer", STILL_OPEN.format("array"))
            self._value = int(value)
        except BaseException:
            pool.disclaim(data)
            raise

    def _destroy(self, value: Any) -> None:
        api.cuMemFreeAsync(value, legacy_default.native)
        api.cuStreamSynchronize(legacy_default.native)
        self._pool.disclaim(self._data)


class OpenedPool(Handle):
    """A pool of another process, returned by `PoolHandle.open`. `ArrayHandle.open` needs it to open the pool's arrays.

    This process cannot allocate from it. Arrays that this process has opened stay open when the pool is closed
    (cuMemPoolDestroy).
    """

    __slots__ = ("_imported",)

    def __init__(self, descriptor: int, device: Device, identity: uuid.UUID) -> None:
        self._value = None
        self._owned = True
        kind = enums.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        with activated(device):
            status, value = raw.cuMemPoolImportFromShareableHandle(descriptor, kind, 0)
        if status:
            raise failure(status, "cuMemPoolImportFromShareableHandle", STILL_OPEN.format("pool"))
        self._value = int(value)
        self._imported = _ImportedPool(self._value, device, identity)
        try:
            device._adopt_pool(self)
        except BaseException:
            self.close()
            raise

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._imported.device

    def _release(self, value: Any) -> None:
        self._imported.leave()

    def __repr__(self) -> str:
        return f"<OpenedPool of device {self.device.ordinal}{', closed' if self.closed else ''}>"


def empty(shape: Shape, dtype: DTypeLike = np.float64) -> DeviceArray:
    """Allocate an uninitialised array on the current device that other processes can open (cuMemAlloc).

        x = cuda.ipc.empty(n, np.float32)
        process = multiprocessing.get_context("spawn").Process(target=work, args=(cuda.ipc.handle(x),))

    `shape` is an int or a tuple. The size of the allocation is a multiple of 2 MiB, because the driver shares memory in
    units of that size. The memory is freed when the array is closed, or once nothing refers to it any longer; freeing
    it waits for the device. Programs that share many arrays allocate them from a `MemoryPool(interprocess=True)`.

    Raises OutOfMemoryError, with the sizes, if there is not enough memory, and NotSupportedError if the driver lacks
    the capability `ipc`.
    """
    call = "ipc.empty"
    sizes, kind, nbytes = arguments.layout(call, shape, dtype)
    require_ipc(call)
    if 0 in sizes:
        return creation.empty(sizes, kind)
    base = SharedAllocation(nbytes)
    return DeviceArray(base.handle, sizes, kind, nbytes, base.device, legacy_default, None, base)


def bytes_of(handle: Any) -> bytes:
    """Return the bytes of a driver handle, of which the bindings expose only the address."""
    return ctypes.string_at(handle.getPtr(), enums.CU_IPC_HANDLE_SIZE)


def filled(handle: Any, data: bytes) -> Any:
    """Copy these bytes into a driver handle, and return the handle."""
    ctypes.memmove(handle.getPtr(), data, enums.CU_IPC_HANDLE_SIZE)
    return handle
