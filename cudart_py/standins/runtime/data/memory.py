"""Memory: allocations, fills, and questions about addresses."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings.driver import CUpointer_attribute

from ...c_types import Extent, PitchedPointer
from ...foreign_memory import write
from ..calls import INVALID_VALUE, SUCCESS, Out, driver

# cuMemAllocPitch asks for the size of the accesses that will be made; any of them gets the same pitch.
_ELEMENT_BYTES = 4
_UNREGISTERED, _HOST, _DEVICE, _MANAGED = range(4)  # cudaMemoryType
_NO_DEVICE = -2  # cudaInvalidDeviceId


def allocate(place: int, size: int) -> int:
    """Allocate device memory; 0 bytes are a null pointer (cudaMalloc)."""
    if not place:
        return INVALID_VALUE
    if not size:
        write(place, 0)
        return SUCCESS
    return driver("cuMemAlloc_v2")(place, size)


def free(pointer: int) -> int:
    """Free device memory; a null pointer is allowed (cudaFree)."""
    return driver("cuMemFree_v2")(pointer) if pointer else SUCCESS


def allocate_host(place: int, size: int) -> int:
    """Allocate pinned memory (cudaMallocHost)."""
    return driver("cuMemHostAlloc")(place, size, 0)


def free_host(pointer: int) -> int:
    """Free pinned memory; a null pointer is allowed (cudaFreeHost)."""
    return driver("cuMemFreeHost")(pointer) if pointer else SUCCESS


def host_flags(flags: int, pointer: int) -> int:
    """Write the flags of pinned memory (cudaHostGetFlags)."""
    return driver("cuMemHostGetFlags")(flags, pointer)


def allocate_pitched(place: int, pitch: int, width: int, height: int) -> int:
    """Allocate rows that begin at multiples of a pitch (cudaMallocPitch)."""
    return driver("cuMemAllocPitch_v2")(place, pitch, width, height, _ELEMENT_BYTES)


def allocate_box(pitched: int, extent: Extent) -> int:
    """Allocate a box of pitched rows (cudaMalloc3D)."""
    address, pitch = Out(), Out()
    rows = extent.height * extent.depth
    status = driver("cuMemAllocPitch_v2")(address.address, pitch.address, extent.width, rows, _ELEMENT_BYTES)
    if not status:
        result = PitchedPointer.from_address(pitched)
        result.ptr, result.pitch, result.xsize, result.ysize = address.value, pitch.value, extent.width, extent.height
    return status


def fill(pointer: int, value: int, size: int) -> int:
    """Fill bytes (cudaMemset)."""
    return driver("cuMemsetD8_v2")(pointer, value & 0xFF, size) if size else SUCCESS


def fill_async(pointer: int, value: int, size: int, stream: int) -> int:
    """Fill bytes in stream order (cudaMemsetAsync)."""
    return driver("cuMemsetD8Async")(pointer, value & 0xFF, size, stream) if size else SUCCESS


def fill_rows(pointer: int, pitch: int, value: int, width: int, height: int) -> int:
    """Fill the bytes of rows (cudaMemset2D)."""
    return driver("cuMemsetD2D8_v2")(pointer, pitch, value & 0xFF, width, height)


def fill_rows_async(pointer: int, pitch: int, value: int, width: int, height: int, stream: int) -> int:
    """Fill the bytes of rows in stream order (cudaMemset2DAsync)."""
    return driver("cuMemsetD2D8Async")(pointer, pitch, value & 0xFF, width, height, stream)


def fill_box(pitched: PitchedPointer, value: int, extent: Extent) -> int:
    """Fill the bytes of a box (cudaMemset3D)."""
    status = SUCCESS
    for place in _planes(pitched, extent):
        status = status or fill_rows(place, pitched.pitch, value, extent.width, extent.height)
    return status


def fill_box_async(pitched: PitchedPointer, value: int, extent: Extent, stream: int) -> int:
    """Fill the bytes of a box in stream order (cudaMemset3DAsync)."""
    status = SUCCESS
    for place in _planes(pitched, extent):
        status = status or fill_rows_async(place, pitched.pitch, value, extent.width, extent.height, stream)
    return status


def _planes(pitched: PitchedPointer, extent: Extent) -> list[int]:
    """Return the address of each plane of a box."""
    return [pitched.ptr + plane * pitched.pitch * pitched.ysize for plane in range(extent.depth)]


class PointerAttributes(ctypes.Structure):
    """cudaPointerAttributes."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_pointer", ctypes.c_size_t),
        ("host_pointer", ctypes.c_size_t),
        ("reserved", ctypes.c_long * 8),
    ]


_NAMES = CUpointer_attribute
_ATTRIBUTES: tuple[tuple[CUpointer_attribute, Any], ...] = (
    (_NAMES.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ctypes.c_uint),
    (_NAMES.CU_POINTER_ATTRIBUTE_IS_MANAGED, ctypes.c_uint),
    (_NAMES.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ctypes.c_int),
    (_NAMES.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, ctypes.c_size_t),
    (_NAMES.CU_POINTER_ATTRIBUTE_HOST_POINTER, ctypes.c_size_t),
)


def pointer_attributes(attributes: int, pointer: int) -> int:
    """Write the attributes of an address, which may also be ordinary host memory (cudaPointerGetAttributes)."""
    if not attributes:
        return INVALID_VALUE
    result = PointerAttributes.from_address(attributes)
    cells = [Out(kind) for _, kind in _ATTRIBUTES]
    names = (ctypes.c_int * len(cells))(*(name.value for name, _ in _ATTRIBUTES))
    places = (ctypes.c_size_t * len(cells))(*(cell.address for cell in cells))
    status = driver("cuPointerGetAttributes")(len(cells), ctypes.addressof(names), ctypes.addressof(places), pointer)
    if status:
        return status
    kind, managed, ordinal, device_pointer, host_pointer = (cell.value for cell in cells)
    if not kind:
        result.type, result.device, result.device_pointer, result.host_pointer = _UNREGISTERED, _NO_DEVICE, 0, pointer
        return SUCCESS
    # The driver's numbers of host and device memory are the runtime's.
    result.type = _MANAGED if managed else kind
    result.device, result.device_pointer, result.host_pointer = ordinal, device_pointer, host_pointer
    return SUCCESS


# The flags of the following two functions have 32 bits, and those of the driver's functions 64.


def export_pool(place: int, pool: int, kind: int, flags: int) -> int:
    """Write a new file descriptor of a pool (cudaMemPoolExportToShareableHandle)."""
    return driver("cuMemPoolExportToShareableHandle")(place, pool, kind, flags)


def import_pool(place: int, handle: int, kind: int, flags: int) -> int:
    """Write the pool that a file descriptor refers to (cudaMemPoolImportFromShareableHandle)."""
    return driver("cuMemPoolImportFromShareableHandle")(place, handle, kind, flags)


FUNCTIONS: dict[str, Any] = {
    "cudaFree": free,
    "cudaFreeHost": free_host,
    "cudaHostGetFlags": host_flags,
    "cudaMalloc": allocate,
    "cudaMalloc3D": allocate_box,
    "cudaMallocHost": allocate_host,
    "cudaMallocPitch": allocate_pitched,
    "cudaMemPoolExportToShareableHandle": export_pool,
    "cudaMemPoolImportFromShareableHandle": import_pool,
    "cudaMemset": fill,
    "cudaMemset2D": fill_rows,
    "cudaMemset2DAsync": fill_rows_async,
    "cudaMemset3D": fill_box,
    "cudaMemset3DAsync": fill_box_async,
    "cudaMemsetAsync": fill_async,
    "cudaPointerGetAttributes": pointer_attributes,
}
