"""Arrays that grow in place, `cuda.virtual`: their address stays the same, so views and kernels' pointers stay valid.

A range of addresses is reserved for the largest size. Physical memory is created and mapped there as the array grows.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from . import errors
from .base import arguments
from .base.shapes import Shape
from .context.capture import captures
from .context.current import activated
from .context.device import Device, current_device
from .context.lifetimes import WaitingHandle
from .driver import enums
from .driver.calls import api, raw
from .driver.unwrap import failure
from .memory.allocation import MOST_BYTES, Allocation, allocation_error, too_many_bytes, with_room
from .memory.array import DeviceArray
from .streams.stream import Stream, legacy_default, stream_of

__all__ = ["GrowableArray"]
__dir__ = __all__.copy  # without private names and imports


class VirtualMemory(Allocation, WaitingHandle):
    """Reserved addresses on a device, with physical memory in the first `committed` bytes.

    `reserved` and `committed` are multiples of the driver's granularity. Closing it waits for the device.
    """

    __slots__ = ("_access", "_granularity", "_pieces", "_properties", "committed", "reserved")

    def __init__(self, nbytes: int, device: Device, access: tuple[Device, ...]) -> None:
        self._value = None
        self._owned = True
        self.device = device
        # The sizes of the mappings, in the order of their addresses. Each must be removed as a whole.
        self._pieces: list[int] = []
        self.committed = 0
        self._access = [_access_of(each) for each in (device, *access)]
        self._properties = enums.CUmemAllocationProp()
        self._properties.type = enums.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._properties.location.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._properties.location.id = device.ordinal
        options = enums.CUmemAllocationGranularity_flags
        with activated(device):
            self._granularity = int(
                api.cuMemGetAllocationGranularity(self._properties, options.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
            )
            self.reserved = self._rounded(nbytes)
            if self.reserved > MOST_BYTES:
                raise too_many_bytes("cuMemAddressReserve", nbytes, "addresses")
            status, value = raw.cuMemAddressReserve(self.reserved, 0, 0, 0)
            if status:
                raise allocation_error(status, "cuMemAddressReserve", nbytes, "addresses")
            self._value = int(value)

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self._granularity) * self._granularity

    def commit(self, nbytes: int) -> None:
        """Map physical memory at the end, so that the first `nbytes` bytes can be used (cuMemCreate, cuMemMap)."""
        size = self._rounded(nbytes) - self.committed
        if size <= 0:
            return
        address = self.handle + self.committed
        with activated(self.device):
            status, memory = with_room(lambda: raw.cuMemCreate(size, self._properties, 0))
            if status:
                raise allocation_error(status, "cuMemCreate", size)
            try:
                api.cuMemMap(address, size, 0, memory, 0)
                try:
                    api.cuMemSetAccess(address, size, self._access, len(self._access))
                except BaseException:
                    api.cuMemUnmap(address, size)
                    raise
                self._pieces.append(size)
                self.committed += size
            finally:
                api.cuMemRelease(memory)  # the memory exists as long as it is mapped

    def uncommit(self, nbytes: int) -> None:
        """Wait for the device, and release the pieces after the first `nbytes` bytes (cuMemUnmap).

        Raises CaptureError, before anything is released, during a capture, which forbids waiting.
        """
        if not self._pieces or self.committed - self._pieces[-1] < nbytes:
            return
        if captures:
            raise errors.CaptureError(
                "GrowableArray.resize: releasing memory waits for the device, which a capture forbids: shrink the "
                "array before the capture or after it"
            )
        with activated(self.device):
            api.cuCtxSynchronize()
            self._unmap(nbytes, self.handle)

    def _unmap(self, nbytes: int, start: int) -> None:
        while self._pieces and self.committed - self._pieces[-1] >= nbytes:
            size = self._pieces[-1]
            api.cuMemUnmap(start + self.committed - size, size)
            self._pieces.pop()
            self.committed -= size

    def _destroy(self, value: Any) -> None:
        try:
            self._unmap(0, value)
        finally:
            api.cuMemAddressFree(value, self.reserved)


def _access_of(device: Device) -> Any:
    """Return the description that lets a device read and write mapped memory."""
    access = enums.CUmemAccessDesc()
    access.location.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device.ordinal
    access.flags = enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


class GrowableArray:
    """An array on the current device whose length changes while its address stays the same (cuMemAddressReserve).

        x = cuda.virtual.GrowableArray(1 << 30, np.float32)
        x.append(host_values)
        kernel[grid, block](x.array, len(x))

    - `capacity`: the largest length, in rows. Addresses are reserved for it, which takes no memory.
    - `row_shape`: the shape of a row, () by default for an array of one axis.
    - `accessible_to`: other devices whose kernels may use the array.

    `len()` is the current length, in rows, and `array` is a DeviceArray of this length. Growing maps more physical
    memory after the existing memory, in units of 2 MiB, and copies nothing (cuMemCreate, cuMemMap, cuMemSetAccess).
    Existing arrays and views therefore remain valid. Threads that change the length take turns. Closing waits for the
    device, and releases everything.

    Raises OutOfMemoryError, with the sizes, if there are not enough addresses, and NotSupportedError if the driver
    lacks virtual memory.
    """

    __slots__ = ("_capacity", "_dtype", "_length", "_lock", "_memory", "_row_bytes", "_row_shape")

    def __init__(
        self,
        capacity: int,
        dtype: DTypeLike = np.float64,
        *,
        row_shape: Shape = (),
        accessible_to: Iterable[Device] = (),
    ) -> None:
        call = "GrowableArray"
        self._capacity = arguments.integer(call, "capacity", capacity, 1, 2**63 - 1)
        self._row_shape = arguments.shape(call, "row_shape", row_shape)
        self._dtype = arguments.dtype(call, "dtype", dtype)
        self._row_bytes = math.prod(self._row_shape) * self._dtype.itemsize
        if not self._row_bytes:
            raise arguments.unusable(call, "row_shape", "have at least one element", self._row_shape)
        others = arguments.items(call, "accessible_to", accessible_to, "a list of Devices")
        for other in others:
            arguments.instance(call, "accessible_to", other, Device, "a list of Devices")
        here = current_device()
        if not here.attribute("virtual_memory_management_supported"):
            raise failure(enums.CUresult.CUDA_ERROR_NOT_SUPPORTED, "cuMemAddressReserve")
        access = tuple(dict.fromkeys(other for other in others if other is not here))
        self._length = 0
        self._lock = threading.RLock()
        self._memory = VirtualMemory(self._capacity * self._row_bytes, here, access)

    @property
    def array(self) -> DeviceArray:
        """The array of the current length; raises ValueError when closed."""
        shape = (self._length, *self._row_shape)
        nbytes = self._length * self._row_bytes
        memory = self._memory
        return DeviceArray(memory.handle, shape, self._dtype, nbytes, memory.device, legacy_default, None, memory)

    @property
    def pointer(self) -> int:
        """The address of the first element, which never changes; raises ValueError when closed."""
        return self._memory.handle

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._memory.device

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._dtype

    @property
    def capacity(self) -> int:
        """The largest length, as requested."""
        return self._capacity

    @property
    def committed_bytes(self) -> int:
        """The size in bytes of the physical memory that the array holds."""
        return self._memory.committed

    def __len__(self) -> int:
        return self._length

    def resize(self, length: int) -> None:
        """Change the length, without a copy; new elements are not initialised.

        Growing returns at once. Shrinking releases the memory that was added for the elements after the new length, in
        the units in which it was added (cuMemUnmap). If there is any, the call waits for the device. Views of released
        elements must not be used any more.

        Raises ValueError for a length above the capacity, OutOfMemoryError, with the sizes, if there is not enough
        memory, and CaptureError for memory that would be released while a stream is being captured. After an error, the
        length is the same as before.
        """
        call = "GrowableArray.resize"
        size = arguments.integer(call, "length", length, 0, MOST_BYTES)
        if size > self._capacity:
            raise arguments.unusable(
                call, "length", f"not exceed the capacity of {self._capacity}", None, f"got {size}"
            )
        self._memory.handle  # noqa: B018  # raises when closed
        with self._lock:
            if size > self._length:
                self._memory.commit(size * self._row_bytes)
            else:
                self._memory.uncommit(size * self._row_bytes)
            self._length = size

    def append(self, values: Any, *, stream: Stream | None = None) -> Self:
        """Grow by the length of `values`, a host array or a DeviceArray, copy them to the end, and return the array.

        The copy is like that of `DeviceArray.copy_from`, and raises the same errors. Raises ValueError if the capacity
        does not suffice or the shapes of rows differ, and TypeError if the dtypes differ. After an error, the length is
        the same as before.
        """
        call = "GrowableArray.append"
        stream_of(call, stream)
        rows = values if isinstance(values, DeviceArray) else arguments.host_array(call, "values", values)
        if rows.shape[1:] != self._row_shape or not rows.shape:
            raise arguments.unusable(call, "values", f"have rows of shape {self._row_shape}", f"the shape {rows.shape}")
        if rows.dtype != self._dtype:
            raise arguments.wrong_dtype(call, "values", str(self._dtype), rows.dtype)
        with self._lock:
            before = self._length
            if before + len(rows) > self._capacity:
                room = f"have at most {self._capacity - before} rows, which the capacity has room for"
                raise arguments.unusable(call, "values", room, len(rows))
            self.resize(before + len(rows))
            try:
                self.array[before:].copy_from(rows, stream=stream)
            except BaseException:
                self._length = before
                raise
        return self

    @property
    def closed(self) -> bool:
        """Whether the array has been closed."""
        return self._memory.closed

    def close(self) -> None:
        """Wait for the device, and release the memory and the addresses (cuMemUnmap, cuMemAddressFree).

        A second call does nothing.
        """
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        self.close()

    def __repr__(self) -> str:
        shape = (self._length, *self._row_shape)
        state = "closed" if self.closed else f"at {self.pointer:#x}, with room for {self._capacity:,} rows"
        return f"<GrowableArray {shape} {self._dtype} {state}>"
