"""Device memory: allocations outside pools, and the amount of memory."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUdeviceptr, CUresult

from ...checks.findings import site_to_report
from ...state import memory
from ...state.arguments import number
from ...state.contexts import check_current, current, current_or
from ...state.errors import StatusError
from ...state.memory import Allocation, pools
from ...state.queue.scheduling import complete_context
from ..entry import entry

_PITCH = 512


@entry(values=1, unsafe=True)
def cuMemAlloc(bytesize: Any) -> Any:
    """Allocate device memory (cuMemAlloc)."""
    context = current()
    return CUdeviceptr(memory.allocate(number(bytesize), memory.DEVICE, context, counted=True).address)


@entry(values=2, unsafe=True)
def cuMemAllocPitch(WidthInBytes: Any, Height: Any, ElementSizeBytes: Any) -> tuple[Any, int]:
    """Allocate rows that each begin at a multiple of 512 bytes (cuMemAllocPitch)."""
    context = current()
    width, height = number(WidthInBytes), number(Height)
    if number(ElementSizeBytes) not in (4, 8, 16) or width <= 0 or height <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    pitch = -(-width // _PITCH) * _PITCH
    return CUdeviceptr(memory.allocate(pitch * height, memory.DEVICE, context, counted=True).address), pitch


@entry(frees=True, unsafe=True)
def cuMemFree(dptr: Any) -> None:
    """Complete the context's work and free device or managed memory (cuMemFree).

    A thread without a context may free memory, too.
    """
    check_current()
    address = number(dptr)
    if not address:
        return
    allocation = memory.known.by_start.get(address)
    pooled = allocation is not None and allocation.pool is not None
    kinds = memory.DEVICE, memory.MANAGED
    if allocation is None or not (pooled or allocation.kind in kinds) or allocation.access is not None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if allocation.pool is not None and not allocation.pool.outstanding:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    complete_context(current_or(allocation.context), freeing=True)
    allocation.freed_at = site_to_report()
    _free(allocation)


def _free(allocation: Allocation) -> None:
    if allocation.pool is not None:
        pools.free_now(allocation)
    else:
        memory.free(allocation, counted=allocation.kind == memory.DEVICE)


@entry(values=2)
def cuMemGetInfo() -> tuple[int, int]:
    """Return the free and total bytes of the current context's device (cuMemGetInfo)."""
    device = current().device
    return device.total - device.used, device.total
