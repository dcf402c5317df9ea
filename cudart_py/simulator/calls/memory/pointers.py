"""Pointer attributes: the driver's information about an address."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUcontext, CUdeviceptr, CUmemoryPool, CUmemorytype, CUpointer_attribute, CUresult

from ...state import memory
from ...state.arguments import number
from ...state.contexts import check_current, current, of_thread
from ...state.errors import StatusError
from ...state.memory import Allocation
from ...state.memory.reservations import Mapping, find_mapping, find_reservation
from ..entry import entry

_DEVICE_TYPE = CUmemorytype.CU_MEMORYTYPE_DEVICE.value
_HOST_TYPE = CUmemorytype.CU_MEMORYTYPE_HOST.value
_READ_WRITE = 3
_NO_DEVICE = -2

_A = CUpointer_attribute


def _has_ipc_handle(allocation: Allocation) -> bool:
    """Return whether cuIpcGetMemHandle accepts an allocation: only what cuMemAlloc and cuMemAllocPitch return."""
    return allocation.kind == memory.DEVICE and allocation.pool is None and not allocation.variable


def _of_allocation(attribute: int, address: int, allocation: Allocation) -> Any:
    pool = allocation.pool
    on_device = allocation.kind in (memory.DEVICE, memory.MANAGED)
    if attribute == _A.CU_POINTER_ATTRIBUTE_CONTEXT.value:
        # Memory of a pool belongs to no context.
        return CUcontext(allocation.context.handle if pool is None else 0)
    if attribute == _A.CU_POINTER_ATTRIBUTE_HOST_POINTER.value:
        if not allocation.on_host:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return address
    # Kernels of the current context may be unable to access memory of a pool, or of another device.
    reached = current().reaches(allocation) if of_thread.stack else True
    if attribute == _A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER.value and not reached:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    answers = {
        _A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE.value: _DEVICE_TYPE if on_device else _HOST_TYPE,
        _A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER.value: CUdeviceptr(address),
        _A.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.value: allocation.sync_memops,
        _A.CU_POINTER_ATTRIBUTE_BUFFER_ID.value: allocation.identity,
        _A.CU_POINTER_ATTRIBUTE_IS_MANAGED.value: allocation.kind == memory.MANAGED,
        _A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL.value: allocation.device.ordinal,
        _A.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE.value: _has_ipc_handle(allocation),
        _A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR.value: CUdeviceptr(allocation.address),
        _A.CU_POINTER_ATTRIBUTE_RANGE_SIZE.value: allocation.size,
        _A.CU_POINTER_ATTRIBUTE_MAPPED.value: True,
        _A.CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES.value: 0,
        _A.CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE.value: 0,
        _A.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS.value: _READ_WRITE,
        _A.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE.value: CUmemoryPool(0 if pool is None else pool.handle),
        _A.CU_POINTER_ATTRIBUTE_MAPPING_SIZE.value: allocation.size,
        _A.CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR.value: CUdeviceptr(allocation.address),
        _A.CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID.value: allocation.identity,
        _A.CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE.value: False,
    }
    try:
        return answers[attribute]
    except KeyError:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None


def _of_mapping(attribute: int, address: int, mapping: Mapping) -> Any:
    reservation = find_reservation(address)
    assert reservation is not None
    answers = _UNKNOWN | {
        _A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE.value: _DEVICE_TYPE,
        _A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER.value: CUdeviceptr(address),
        _A.CU_POINTER_ATTRIBUTE_BUFFER_ID.value: mapping.physical.handle,
        _A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL.value: mapping.physical.device.ordinal,
        _A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR.value: CUdeviceptr(reservation.address),
        _A.CU_POINTER_ATTRIBUTE_RANGE_SIZE.value: reservation.size,
        _A.CU_POINTER_ATTRIBUTE_MAPPED.value: True,
        _A.CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES.value: mapping.physical.shareable,
        _A.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS.value: _READ_WRITE if mapping.access else 0,
        _A.CU_POINTER_ATTRIBUTE_MAPPING_SIZE.value: mapping.physical.size,
        _A.CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR.value: CUdeviceptr(mapping.address),
        _A.CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID.value: mapping.physical.handle,
    }
    if attribute == _A.CU_POINTER_ATTRIBUTE_HOST_POINTER.value or attribute not in answers:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return answers[attribute]


def _answer(attribute: int, address: int) -> Any:
    """Return an attribute of an address, or raise CUDA_ERROR_INVALID_VALUE if it has none."""
    mapping = find_mapping(address)
    if mapping is not None:
        return _of_mapping(attribute, address, mapping)
    allocation = memory.known.find(address)
    if allocation is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _of_allocation(attribute, address, allocation)


# The values that cuPointerGetAttributes returns for an address that the driver doesn't know.
_UNKNOWN: dict[int, Any] = {
    _A.CU_POINTER_ATTRIBUTE_CONTEXT.value: CUcontext(0),
    _A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE.value: 0,
    _A.CU_POINTER_ATTRIBUTE_DEVICE_POINTER.value: CUdeviceptr(0),
    _A.CU_POINTER_ATTRIBUTE_HOST_POINTER.value: 0,
    _A.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.value: False,
    _A.CU_POINTER_ATTRIBUTE_BUFFER_ID.value: 0,
    _A.CU_POINTER_ATTRIBUTE_IS_MANAGED.value: False,
    _A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL.value: _NO_DEVICE,
    _A.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE.value: False,
    _A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR.value: CUdeviceptr(0),
    _A.CU_POINTER_ATTRIBUTE_RANGE_SIZE.value: 0,
    _A.CU_POINTER_ATTRIBUTE_MAPPED.value: False,
    _A.CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES.value: 0,
    _A.CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE.value: 0,
    _A.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS.value: 0,
    _A.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE.value: CUmemoryPool(0),
    _A.CU_POINTER_ATTRIBUTE_MAPPING_SIZE.value: 0,
    _A.CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR.value: CUdeviceptr(0),
    _A.CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID.value: 0,
    _A.CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE.value: False,
}


@entry(values=1)
def cuPointerGetAttribute(attribute: Any, ptr: Any) -> Any:
    """Return an attribute of an address (cuPointerGetAttribute)."""
    check_current()
    return _answer(number(attribute), number(ptr))


@entry(values=1)
def cuPointerGetAttributes(numAttributes: Any, attributes: Any, ptr: Any) -> list[Any]:
    """Return several attributes of an address, empty ones if it is unknown (cuPointerGetAttributes)."""
    check_current()
    wanted = [number(attribute) for attribute in attributes or ()]
    if number(numAttributes) > len(wanted) or any(attribute not in _UNKNOWN for attribute in wanted):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    answers = []
    for attribute in wanted:
        try:
            answers.append(_answer(attribute, number(ptr)))
        except StatusError:
            answers.append(_UNKNOWN[attribute])
    return answers


@entry(values=2)
def cuMemGetAddressRange(dptr: Any) -> tuple[Any, int]:
    """Return the start and the size of the allocation into which a pointer points (cuMemGetAddressRange)."""
    current()
    allocation = memory.known.find(number(dptr))
    if allocation is None:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    mapping = find_mapping(number(dptr))
    if mapping is not None:
        return CUdeviceptr(mapping.address), mapping.physical.size
    return CUdeviceptr(allocation.address), allocation.size


@entry()
def cuPointerSetAttribute(value: Any, attribute: Any, ptr: Any) -> None:
    """Store CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which has no effect, and no other attribute (cuPointerSetAttribute)."""
    current()
    allocation = memory.known.find(number(ptr))
    if number(attribute) != _A.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.value or allocation is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    allocation.sync_memops = bool(number(value))


@entry(values=1)
def cuMemGetHandleForAddressRange(dptr: Any, size: Any, handleType: Any, flags: Any) -> Any:
    """Refuse to return a handle for other hardware (cuMemGetHandleForAddressRange)."""
    current()
    raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
