"""Handles for other processes on this machine, of device memory and of events.

An event for other processes is recorded by running the work before it at once. So whatever another process has recorded
is done, and no process has to wait for the queue of another one, which would run only when that process waits.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings.driver import (
    CU_IPC_HANDLE_SIZE,
    CUdeviceptr,
    CUevent,
    CUevent_flags,
    CUipcEventHandle,
    CUipcMem_flags,
    CUipcMemHandle,
    CUresult,
)

from ...state import memory
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.memory import sharing
from ...state.memory.sharing import Handle
from ...state.queue.scheduling import complete_context
from ..entry import entry
from ..streams.events import Event, find_event

_LAZY_PEERS = CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
_INTERPROCESS = CUevent_flags.CU_EVENT_INTERPROCESS.value
_EVENT_FLAGS = _INTERPROCESS | CUevent_flags.CU_EVENT_DISABLE_TIMING.value


def _refuse() -> StatusError:
    return StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


def _filled(handle: Any, data: bytes) -> Any:
    """Copy bytes into a handle of the bindings, which expose only its address."""
    ctypes.memmove(handle.getPtr(), data, CU_IPC_HANDLE_SIZE)
    return handle


def _parsed(handle: Any) -> Handle:
    """Return what a handle of another process says, or raise the driver's status."""
    try:
        found = Handle.parsed(ctypes.string_at(handle.getPtr(), CU_IPC_HANDLE_SIZE))
    except ValueError:
        raise _refuse() from None
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
        raise _refuse()
    try:
        handle = sharing.share(allocation)
    except (OSError, MemoryError):
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    return _filled(CUipcMemHandle(), handle.data)


@entry(values=1, unsafe=True)
def cuIpcOpenMemHandle(handle: Any, Flags: Any) -> Any:
    """Return the address in this process of memory of another one (cuIpcOpenMemHandle).

    If the memory is open already, its address is the same, and it must be closed as often as it was opened.
    """
    context = current()
    if number(Flags) != _LAZY_PEERS:
        raise _refuse()
    try:
        allocation = sharing.open_shared(_parsed(handle), context)
    except MemoryError:
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    except (OSError, ValueError):
        raise _refuse() from None
    return CUdeviceptr(allocation.address)


@entry(frees=True, unsafe=True)
def cuIpcCloseMemHandle(dptr: Any) -> None:
    """Complete the context's work, and close memory of another process (cuIpcCloseMemHandle)."""
    complete_context(current(), freeing=True)
    if not sharing.close_shared(number(dptr)):
        raise _refuse()


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
        raise _refuse()
    return CUevent(Event(context, _EVENT_FLAGS).handle)
