"""Virtual memory: reserving addresses, creating physical memory, mapping it, and allowing devices to access it.

The rules are those of driver 580.159 on an H200, where they are stricter than those of the reference: a mapping covers
all of the physical memory. No stream capture forbids these calls. Access to read only is not supported, and neither is
physical memory on the host.
"""

from __future__ import annotations

import os
from typing import Any

from cuda.bindings.driver import (
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType,
    CUmemAllocationProp,
    CUmemAllocationType,
    CUmemGenericAllocationHandle,
    CUmemLocation,
    CUmemLocationType,
    CUresult,
)

from ...state.arguments import number
from ...state.contexts import Context, of_thread, primary
from ...state.devices import Device, find_device
from ...state.errors import StatusError, invalid_value
from ...state.memory import space
from ...state.memory.mappings import map_physical, refresh, unmap
from ...state.memory.reservations import (
    GRANULARITY,
    Mapping,
    PhysicalMemory,
    Reservation,
    find_mapping,
    find_reservation,
    physical_memory,
    reservations,
)
from ..entry import entry

_ACCESS = CUmemAccess_flags
_SHAREABLE = (
    CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE.value,
    CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.value,
)


def _size(value: Any) -> int:
    """Return a size in bytes, which must be a positive multiple of the granularity."""
    size = number(value)
    if size <= 0 or size % GRANULARITY:
        raise invalid_value()
    return size


def _context(device: Device) -> Context:
    """Return the context that allocations name; mapped memory belongs to none."""
    return of_thread.stack[-1] if of_thread.stack else primary(device)


def _device_of(location: Any) -> Device:
    if location is None or location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
        raise invalid_value()
    return find_device(location.id)


def _checked_properties(prop: Any) -> Device:
    """Return the device on which memory with some properties would be, or raise the driver's status."""
    if prop is None or prop.type != CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED:
        raise invalid_value()
    if prop.location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    if number(prop.requestedHandleTypes) not in _SHAREABLE:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    return find_device(prop.location.id)


@entry(values=1)
def cuMemGetAllocationGranularity(prop: Any, option: Any) -> int:
    """Return 2 MiB, of which sizes and addresses must be multiples (cuMemGetAllocationGranularity)."""
    _checked_properties(prop)
    if number(option) not in [one.value for one in CUmemAllocationGranularity_flags]:
        raise invalid_value()
    return GRANULARITY


@entry(values=1)
def cuMemAddressReserve(size: Any, alignment: Any, addr: Any, flags: Any) -> Any:
    """Reserve a range of addresses; a hint where to place it is ignored (cuMemAddressReserve)."""
    length, aligned = _size(size), number(alignment)
    if number(flags) or aligned < 0 or aligned & (aligned - 1):
        raise invalid_value()
    try:
        reservation = Reservation(length, aligned)
    except MemoryError:
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    reservations[reservation.address] = reservation
    return CUdeviceptr(reservation.address)


@entry(frees=True)
def cuMemAddressFree(ptr: Any, size: Any) -> None:
    """Give back a whole reserved range, into which nothing may be mapped (cuMemAddressFree)."""
    reservation = reservations.get(number(ptr))
    if reservation is None or reservation.size != number(size) or reservation.mappings:
        raise invalid_value()
    del reservations[reservation.address]
    space.region.give_back(reservation.address)


@entry(values=1)
def cuMemCreate(size: Any, prop: Any, flags: Any) -> Any:
    """Create physical memory on a device (cuMemCreate)."""
    device, length = _checked_properties(prop), _size(size)
    if number(flags):
        raise invalid_value()
    try:
        physical = PhysicalMemory.created(device, length, number(prop.requestedHandleTypes))
    except MemoryError:
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    return _enter(physical)


def _find(handle: Any) -> PhysicalMemory:
    return physical_memory.find(handle)


def _drop_unused(physical: PhysicalMemory) -> None:
    if not physical.used:
        physical_memory.remove(physical.handle)
        physical.close()


@entry(frees=True)
def cuMemRelease(handle: Any) -> None:
    """Release a reference to physical memory, which exists on while it is mapped (cuMemRelease)."""
    physical = _find(handle)
    if not physical.references:
        raise invalid_value()
    physical.references -= 1
    _drop_unused(physical)


@entry()
def cuMemMap(ptr: Any, size: Any, offset: Any, handle: Any, flags: Any) -> None:
    """Map all of some physical memory into a reserved range (cuMemMap)."""
    address, length, physical = number(ptr), _size(size), _find(handle)
    if number(flags) or address % GRANULARITY:
        raise invalid_value()
    reservation = find_reservation(address, length)
    if reservation is None or reservation.within(address, length):
        raise invalid_value()
    if number(offset) or length != physical.size:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    try:
        map_physical(reservation, address, physical)
    except MemoryError:
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None


@entry(frees=True)
def cuMemUnmap(ptr: Any, size: Any) -> None:
    """Remove all mappings from a range, which must not cut any of them (cuMemUnmap)."""
    address, length = number(ptr), number(size)
    reservation = find_reservation(address, max(length, 1))
    if reservation is None or length <= 0:
        raise invalid_value()
    mappings = reservation.within(address, length)
    if any(mapping.address < address or address + length < mapping.end for mapping in mappings):
        raise invalid_value()
    for mapping in mappings:
        unmap(reservation, mapping, _context(mapping.physical.device))
        _drop_unused(mapping.physical)


@entry()
def cuMemSetAccess(ptr: Any, size: Any, desc: Any, count: Any) -> None:
    """Set which devices may access a range of whole, contiguous mappings (cuMemSetAccess)."""
    address, length, descriptions = number(ptr), _size(size), list(desc or ())
    reservation = find_reservation(address, length)
    if reservation is None or not 0 < number(count) <= len(descriptions):
        raise invalid_value()
    mappings = reservation.within(address, length)
    if sum(mapping.physical.size for mapping in mappings) != length or mappings[0].address != address:
        raise invalid_value()
    given, taken = set(), set()
    for description in descriptions[: number(count)]:
        device, flags = _device_of(description.location), number(description.flags)
        if flags == _ACCESS.CU_MEM_ACCESS_FLAGS_PROT_READWRITE.value:
            given.add(device)
        elif flags == _ACCESS.CU_MEM_ACCESS_FLAGS_PROT_NONE.value:
            taken.add(device)
        elif flags == _ACCESS.CU_MEM_ACCESS_FLAGS_PROT_READ.value:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        else:
            raise invalid_value()
    for mapping in mappings:
        mapping.access = (mapping.access | given) - taken
    refresh(reservation, _context(mappings[0].physical.device))


@entry(values=1)
def cuMemGetAccess(location: Any, ptr: Any) -> int:
    """Return the access that a device has to mapped memory, as a CUmemAccess_flags number (cuMemGetAccess)."""
    device, mapping = _device_of(location), _mapping_at(number(ptr))
    flags = _ACCESS.CU_MEM_ACCESS_FLAGS_PROT_READWRITE if device in mapping.access else 0
    return number(flags)


@entry(values=1)
def cuMemGetAllocationPropertiesFromHandle(handle: Any) -> Any:
    """Return the properties of physical memory (cuMemGetAllocationPropertiesFromHandle)."""
    physical, properties = _find(handle), CUmemAllocationProp()
    properties.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.requestedHandleTypes = CUmemAllocationHandleType(physical.shareable)
    location = CUmemLocation()
    location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = physical.device.ordinal
    properties.location = location
    return properties


@entry(values=1)
def cuMemRetainAllocationHandle(addr: Any) -> Any:
    """Return the handle of the memory at an address, with one more reference (cuMemRetainAllocationHandle)."""
    physical = _mapping_at(number(addr)).physical
    physical.references += 1
    return CUmemGenericAllocationHandle(physical.handle)


def _mapping_at(address: int) -> Mapping:
    """Return the mapping that contains an address, or raise CUDA_ERROR_INVALID_VALUE."""
    mapping = find_mapping(address)
    if mapping is None:
        raise invalid_value()
    return mapping


@entry(values=1)
def cuMemExportToShareableHandle(handle: Any, handleType: Any, flags: Any) -> int:
    """Return a new file descriptor of physical memory, for another process (cuMemExportToShareableHandle)."""
    physical, kind = _find(handle), number(handleType)
    if number(flags) or not kind or kind & physical.shareable != kind:
        raise invalid_value()
    return os.dup(physical.descriptor)


@entry(values=1)
def cuMemImportFromShareableHandle(osHandle: Any, shHandleType: Any) -> Any:
    """Return a handle of physical memory that a file descriptor refers to (cuMemImportFromShareableHandle)."""
    descriptor, kind = number(osHandle), number(shHandleType)
    if kind not in _SHAREABLE or not kind:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED if kind else CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        physical = PhysicalMemory.imported(descriptor)
    except (OSError, ValueError):
        raise invalid_value() from None
    return _enter(physical)


def _enter(physical: PhysicalMemory) -> Any:
    physical.handle = physical_memory.add(physical)
    return CUmemGenericAllocationHandle(physical.handle)
