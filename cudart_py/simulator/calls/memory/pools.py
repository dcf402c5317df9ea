"""Memory pools, of device, pinned or managed memory: creating, choosing, querying, trimming and destroying them."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import (
    CUmemAccess_flags,
    CUmemAllocationHandleType,
    CUmemAllocationType,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)

from ...state import memory
from ...state.arguments import number
from ...state.contexts import current, of_thread
from ...state.devices import Device, find_device
from ...state.errors import StatusError
from ...state.memory.imported_pools import ImportedPool
from ...state.memory.pool_choices import choose_pool, current_pool_at, default_pool_at
from ...state.memory.pools import Location, Pool, current_pool, default_pool, enter_pool, pools
from ..entry import entry

_THRESHOLD = CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD.value
_RESERVED = CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT.value
_RESERVED_HIGH = CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH.value
_USED = CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT.value
_USED_HIGH = CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH.value
_HOSTS = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST, CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
_SHAREABLE = (
    CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE.value,
    CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.value,
)
# The header calls this CU_MEM_LOCATION_TYPE_NONE too: managed memory may have no preferred location.
_NONE = CUmemLocationType.CU_MEM_LOCATION_TYPE_INVALID
_MANAGED_PLACES = (_NONE, CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, *_HOSTS)


@entry(values=1)
def cuDeviceGetDefaultMemPool(dev: Any) -> Any:
    """Return a device's default pool (cuDeviceGetDefaultMemPool)."""
    return CUmemoryPool(default_pool(find_device(dev)).handle)


@entry(values=1)
def cuDeviceGetMemPool(dev: Any) -> Any:
    """Return the pool from which cuMemAllocAsync allocates (cuDeviceGetMemPool)."""
    return CUmemoryPool(current_pool(_device_of(dev)).handle)


@entry(unsafe=True)
def cuDeviceSetMemPool(dev: Any, pool: Any) -> None:
    """Choose the pool from which cuMemAllocAsync allocates (cuDeviceSetMemPool)."""
    device, chosen = _device_of(dev), pools.find(pool)
    if chosen.device is not device or chosen.kind == memory.PINNED or isinstance(chosen, ImportedPool):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    device.current_pool = chosen


@entry(values=1)
def cuMemGetDefaultMemPool(location: Any, typename: Any) -> Any:
    """Return the default pool of a location for a type of allocation (cuMemGetDefaultMemPool)."""
    return CUmemoryPool(default_pool_at(*_choice(location, typename)).handle)


@entry(values=1)
def cuMemGetMemPool(location: Any, typename: Any) -> Any:
    """Return the current pool of a location for a type of allocation (cuMemGetMemPool)."""
    return CUmemoryPool(current_pool_at(*_choice(location, typename)).handle)


@entry(unsafe=True)
def cuMemSetMemPool(location: Any, typename: Any, pool: Any) -> None:
    """Choose the current pool of a location for a type of allocation (cuMemSetMemPool)."""
    (kind, place, _), chosen = _choice(location, typename), pools.find(pool)
    if (chosen.kind, chosen.location) != (kind, place) or isinstance(chosen, ImportedPool):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    choose_pool(chosen)


def _choice(location: Any, kind: Any) -> tuple[str, Location, Device]:
    """Return the kind of memory and the location that a call names, and the device to which its pool belongs.

    If the thread has no context, memory that no device holds belongs to device 0.
    """
    here = current().device if of_thread.stack else find_device(0)
    if location is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    found, device = _kind_and_device(kind, location, here)
    return found, _place(location), device


def _place(location: Any) -> Location:
    # The host as a whole, and no location, have no number.
    whole = location.type in (_NONE, CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST)
    return number(location.type), 0 if whole else number(location.id)


@entry(values=1, unsafe=True)
def cuMemPoolGetAttribute(pool: Any, attr: Any) -> Any:
    """Return a pool's attribute, with sizes in bytes as cuuint64_t (cuMemPoolGetAttribute)."""
    found, key = pools.find(pool), number(attr)
    if key in found.reuse:
        return found.reuse[key]
    counts = {
        _THRESHOLD: found.threshold,
        _RESERVED: found.reserved,
        _RESERVED_HIGH: found.reserved_high,
        _USED: found.used,
        _USED_HIGH: found.used_high,
    }
    if key not in counts:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return cuuint64_t(counts[key])


@entry(unsafe=True)
def cuMemPoolSetAttribute(pool: Any, attr: Any, value: Any) -> None:
    """Set a pool's attribute; 0 resets a high-water mark to the current value (cuMemPoolSetAttribute)."""
    found, key, wanted = pools.find(pool), number(attr), number(value)
    if key in found.reuse:
        found.reuse[key] = int(bool(wanted))
    elif key == _THRESHOLD and wanted >= 0:
        found.threshold = wanted
    elif key == _RESERVED_HIGH and not wanted:
        found.reserved_high = found.reserved
    elif key == _USED_HIGH and not wanted:
        found.used_high = found.used
    else:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry(unsafe=True)
def cuMemPoolTrimTo(pool: Any, minBytesToKeep: Any) -> None:
    """Release unused memory until the pool holds no more than `minBytesToKeep` bytes (cuMemPoolTrimTo)."""
    found = pools.find(pool)
    if isinstance(found, ImportedPool):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    found.trim(number(minBytesToKeep))


@entry(unsafe=True)
def cuMemPoolSetAccess(pool: Any, map: Any, count: Any) -> None:
    """Set which other devices may access a pool's memory (cuMemPoolSetAccess)."""
    found, descriptions = pools.find(pool), list(map or ())
    if not 0 < number(count) <= len(descriptions):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    given, taken = [], []
    for description in descriptions[: number(count)]:
        if found.kind == memory.PINNED and _is_host(description.location):
            continue  # the host always has access to its own memory
        flags = number(description.flags)
        on_device = description.location.type == CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        if flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ or not on_device:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        device = find_device(description.location.id)
        if flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
            given.append(device)
        elif _owns(found, device):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_DEVICE)
        else:
            taken.append(device)
    found.access.update(given)
    found.access.difference_update(taken)
    memory.note_change()


@entry(values=1, unsafe=True)
def cuMemPoolGetAccess(memPool: Any, location: Any) -> Any:
    """Return the access that a device has to a pool's memory (cuMemPoolGetAccess)."""
    found, flags = pools.find(memPool), CUmemAccess_flags
    if _is_host(location):
        on_host = found.kind == memory.PINNED
        return flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE if on_host else flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    device = _device_at(location)
    if _owns(found, device) or device in found.access:
        return flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return flags.CU_MEM_ACCESS_FLAGS_PROT_NONE


def _owns(pool: Pool, device: Device) -> bool:
    """Return whether a device has access to a pool's memory in any case."""
    return pool.kind == memory.DEVICE and pool.device is device


def _is_host(location: Any) -> bool:
    return location is not None and location.type in _HOSTS


def _device_at(location: Any) -> Device:
    if location is None or location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _device_of(location.id)


def _device_of(ordinal: Any) -> Device:
    """Return a device; pools raise CUDA_ERROR_INVALID_VALUE for one that does not exist."""
    try:
        return find_device(ordinal)
    except StatusError:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None


@entry(values=1, unsafe=True)
def cuMemPoolCreate(poolProps: Any) -> Any:
    """Create a pool of a device's memory, of pinned memory of the host, or of managed memory (cuMemPoolCreate)."""
    context = current()
    if poolProps is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    kind, device = _kind_and_device(poolProps.allocType, poolProps.location, context.device)
    # As driver 580.159 does, refuse a maximum size for managed memory.
    if kind == memory.MANAGED and poolProps.maxSize:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    shareable = number(poolProps.handleTypes)
    if shareable not in _SHAREABLE or (shareable and kind != memory.DEVICE):
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    pool = Pool(device, poolProps.maxSize, kind, shareable, _place(poolProps.location))
    return CUmemoryPool(enter_pool(pool).handle)


def _kind_and_device(type: Any, location: Any, here: Device) -> tuple[str, Device]:
    """Return the kind of a pool's memory, and the device to which the pool belongs, or raise the driver's status."""
    if type == CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_MANAGED:
        if location.type not in _MANAGED_PLACES:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        on_device = location.type == CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        return memory.MANAGED, _device_of(location.id) if on_device else here
    if type != CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if _is_host(location):
        return memory.PINNED, here
    return memory.DEVICE, _device_at(location)


@entry(frees=True, unsafe=True)
def cuMemPoolDestroy(pool: Any) -> None:
    """Destroy a pool; its allocations stay valid until they are freed (cuMemPoolDestroy)."""
    found = pools.find(pool)
    device = found.device
    if found.is_default:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if device.current_pool is found:
        device.current_pool = None
    pools.remove(found.handle)
    found.destroyed = True
    found.threshold = 0
    found.release_excess()
