"""Host memory: pinned allocations and registered ranges, which kernels access at the host's own addresses."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import (
    CU_MEMHOSTALLOC_DEVICEMAP,
    CU_MEMHOSTALLOC_PORTABLE,
    CU_MEMHOSTALLOC_WRITECOMBINED,
    CU_MEMHOSTREGISTER_DEVICEMAP,
    CU_MEMHOSTREGISTER_PORTABLE,
    CU_MEMHOSTREGISTER_READ_ONLY,
    CUdeviceptr,
    CUresult,
)

from ...state import memory
from ...state.arguments import host_address, number
from ...state.contexts import check_current, current, current_or
from ...state.errors import StatusError
from ...state.memory import Allocation
from ...state.queue.scheduling import complete_context
from ..entry import entry

_ALLOCATION_FLAGS = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED
_REGISTRATION_FLAGS = CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE


@entry(values=1, unsafe=True)
def cuMemHostAlloc(bytesize: Any, Flags: Any) -> int:
    """Allocate pinned memory, which every context may access (cuMemHostAlloc)."""
    context = current()
    flags = number(Flags)
    if flags & ~_ALLOCATION_FLAGS:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return memory.allocate(number(bytesize), memory.PINNED, context, flags=flags).address


@entry(values=1, unsafe=True)
def cuMemAllocHost(bytesize: Any) -> int:
    """Allocate pinned memory that kernels can access (cuMemAllocHost)."""
    flags = CU_MEMHOSTALLOC_DEVICEMAP
    return memory.allocate(number(bytesize), memory.PINNED, current(), flags=flags).address


@entry(frees=True, unsafe=True)
def cuMemFreeHost(p: Any) -> None:
    """Complete the context's work and free pinned memory, as cuMemFree does (cuMemFreeHost)."""
    check_current()
    address = host_address(p)
    if not address:
        return
    allocation = memory.known.by_start.get(address)
    if allocation is None or allocation.kind != memory.PINNED or allocation.pool is not None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    complete_context(current_or(allocation.context), freeing=True)
    memory.free(allocation)


def _pinned(address: int, kinds: tuple[str, ...] = (memory.PINNED, memory.REGISTERED)) -> Allocation:
    allocation = memory.known.find(address)
    if allocation is None or allocation.kind not in kinds or allocation.pool is not None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return allocation


@entry(values=1)
def cuMemHostGetDevicePointer(p: Any, Flags: Any) -> Any:
    """Return the device address of pinned or registered memory, which is the same (cuMemHostGetDevicePointer)."""
    current()
    address = host_address(p)
    if number(Flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    _pinned(address)
    return CUdeviceptr(address)


@entry(values=1)
def cuMemHostGetFlags(p: Any) -> int:
    """Return the flags of pinned, registered or managed memory, which is mapped in any case (cuMemHostGetFlags).

    Driver 580.159 returns CU_MEMHOSTALLOC_PORTABLE only for registered memory.
    """
    current()
    found = _pinned(host_address(p), (memory.PINNED, memory.REGISTERED, memory.MANAGED))
    kept = {memory.PINNED: CU_MEMHOSTALLOC_WRITECOMBINED, memory.REGISTERED: CU_MEMHOSTREGISTER_PORTABLE}
    return int(found.flags & kept.get(found.kind, 0) | CU_MEMHOSTALLOC_DEVICEMAP)


@entry(unsafe=True)
def cuMemHostRegister(p: Any, bytesize: Any, Flags: Any) -> None:
    """Pin a range of ordinary host memory (cuMemHostRegister)."""
    context = current()
    address, size, flags = host_address(p), number(bytesize), number(Flags)
    if flags & CU_MEMHOSTREGISTER_READ_ONLY:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    if flags & ~_REGISTRATION_FLAGS or not address or size <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    before = memory.known.before(address + size - 1)
    if before is not None and before.end > address:
        taken = before.kind == memory.REGISTERED
        raise StatusError(
            CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED if taken else CUresult.CUDA_ERROR_INVALID_VALUE
        )
    if memory.space.region.contains(address):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    allocation = Allocation(address, size, memory.REGISTERED, context, flags=flags)
    allocation.held = p
    memory.enter(allocation)


@entry(frees=True, unsafe=True)
def cuMemHostUnregister(p: Any) -> None:
    """Complete the context's work and unpin a registered range (cuMemHostUnregister)."""
    context = current()
    address = host_address(p)
    allocation = memory.known.find(address)
    if address and allocation is None:
        raise StatusError(CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
    if allocation is None or allocation.kind != memory.REGISTERED or allocation.address != address:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    complete_context(context, freeing=True)
    memory.forget(allocation)
