"""Handles for other processes on this machine, of device memory, of events, and of pools and their allocations.

Recording an event for other processes runs all work before it at once. So whatever another process has recorded is
done, and no process has to wait for the queue of another one, which would run only when that process waits.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

from cuda.bindings.driver import (
    CU_IPC_HANDLE_SIZE,
    CUdeviceptr,
    CUevent,
    CUevent_flags,
    CUipcEventHandle,
    CUipcMem_flags,
    CUipcMemHandle,
    CUmemAllocationHandleType,
    CUmemoryPool,
    CUmemPoolPtrExportData,
    CUresult,
)

from ...state import memory
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError, invalid_value
from ...state.memory import imported_pools, sharing
from ...state.memory.imported_pools import ImportedPool
from ...state.memory.pools import enter_pool, pools
from ...state.memory.sharing import Handle
from ...state.queue.scheduling import complete_context
from ..entry import entry
from ..streams.events import Event, find_event

_LAZY_PEERS = CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
_DESCRIPTOR = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.value
_INTERPROCESS = CUevent_flags.CU_EVENT_INTERPROCESS.value
_EVENT_FLAGS = _INTERPROCESS | CUevent_flags.CU_EVENT_DISABLE_TIMING.value


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Turn the exceptions for memory that cannot be opened into the driver's statuses."""
    try:
        yield
    except MemoryError:
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    except (OSError, ValueError):
        raise invalid_value() from None


def _filled(handle: Any, data: bytes) -> Any:
    """Copy bytes into a handle of the bindings, which expose only its address."""
    ctypes.memmove(handle.getPtr(), data, CU_IPC_HANDLE_SIZE)
    return handle


def _parsed(handle: Any) -> Handle:
    """Return the contents of another process's handle, or raise the driver's status."""
    try:
        found = Handle.parsed(ctypes.string_at(handle.getPtr(), CU_IPC_HANDLE_SIZE))
    except ValueError:
        raise invalid_value() from None
    if found.here:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return found


@entry(values=1, unsafe=True)
def cuIpcGetMemHandle(dptr: Any) -> Any:
    """Return a handle of an allocation of cuMemAlloc for other processes (cuIpcGetMemHandle)."""
    current()
    allocation = memory.known.find(number(dptr))
    if (
        allocation is None
        or allocation.kind != memory.DEVICE
        or allocation.pool is not None
        or allocation.access is not None
        or allocation.variable
    ):
        raise invalid_value()
    return _filled(CUipcMemHandle(), _shared(allocation).data)


def _shared(allocation: memory.Allocation) -> Handle:
    """Return the handle of an allocation, or raise CUDA_ERROR_OUT_OF_MEMORY."""
    try:
        return sharing.share(allocation)
    except (OSError, MemoryError):
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None


@entry(values=1, unsafe=True)
def cuIpcOpenMemHandle(handle: Any, Flags: Any) -> Any:
    """Return the address in this process of memory of another one (cuIpcOpenMemHandle).

    If the memory is open already, its address is the same, and it must be closed as often as it was opened.
    """
    context = current()
    if number(Flags) != _LAZY_PEERS:
        raise invalid_value()
    shared = _parsed(handle)
    if shared.pool:
        raise invalid_value()
    with _refused():
        return CUdeviceptr(sharing.open_shared(shared, context).address)


@entry(frees=True, unsafe=True)
def cuIpcCloseMemHandle(dptr: Any) -> None:
    """Complete the context's work, and close memory of another process (cuIpcCloseMemHandle)."""
    complete_context(current(), freeing=True)
    if not sharing.close_shared(number(dptr)):
        raise invalid_value()


@entry(values=1)
def cuIpcGetEventHandle(event: Any) -> Any:
    """Return a handle of an event for other processes (cuIpcGetEventHandle)."""
    current()
    found = find_event(event)
    if not found.flags & _INTERPROCESS:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    handle = Handle.own(number(event) & 0xFFFF_FFFF, found.context.device.ordinal)
    return _filled(CUipcEventHandle(), handle.data)


@entry(values=1)
def cuIpcOpenEventHandle(handle: Any) -> Any:
    """Return an event that stands for one of another process (cuIpcOpenEventHandle)."""
    context, found = current(), _parsed(handle)
    if not found.valid:
        raise invalid_value()
    return CUevent(Event(context, _EVENT_FLAGS).handle)


@entry(values=1, unsafe=True)
def cuMemPoolExportToShareableHandle(pool: Any, handleType: Any, flags: Any) -> int:
    """Return a new file descriptor of a pool, for another process (cuMemPoolExportToShareableHandle)."""
    shared = pools.find(pool)
    if number(flags) or number(handleType) != _DESCRIPTOR or not shared.shareable:
        raise invalid_value()
    try:
        return imported_pools.export(shared)
    except OSError:
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None


@entry(values=1, unsafe=True)
def cuMemPoolImportFromShareableHandle(handle: Any, handleType: Any, flags: Any) -> Any:
    """Return the pool of another process that a file descriptor refers to (cuMemPoolImportFromShareableHandle)."""
    current()
    if number(flags) or number(handleType) != _DESCRIPTOR:
        raise invalid_value()
    with _refused():
        return CUmemoryPool(enter_pool(ImportedPool.of(number(handle))).handle)


@entry(values=1, unsafe=True)
def cuMemPoolExportPointer(ptr: Any) -> Any:
    """Return the data from which another process imports an allocation of a pool (cuMemPoolExportPointer)."""
    current()
    allocation = memory.known.by_start.get(number(ptr))
    if allocation is None or allocation.pool is None or not allocation.pool.shareable:
        raise invalid_value()
    return _filled(CUmemPoolPtrExportData(), _shared(allocation).data)


@entry(values=1, unsafe=True)
def cuMemPoolImportPointer(pool: Any, shareData: Any) -> Any:
    """Return the address in this process of an allocation of an imported pool (cuMemPoolImportPointer)."""
    context, source = current(), pools.find(pool)
    if not isinstance(source, ImportedPool):
        raise invalid_value()
    shared = _parsed(shareData)
    with _refused():
        return CUdeviceptr(source.open(shared, context).address)
