"""Calls for NVIDIA's debugger, its kernel module and NVSwitch: coredumps, checkpoints and multicast objects."""

from __future__ import annotations

from typing import Any, NoReturn

from cuda.bindings.driver import CUresult

from ...state.errors import StatusError
from ..entry import entry


def _refuse() -> NoReturn:
    raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)


@entry(values=1)
def cuCoredumpGetAttribute(attrib: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCoredumpGetAttribute)."""
    _refuse()


@entry(values=1)
def cuCoredumpGetAttributeGlobal(attrib: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCoredumpGetAttributeGlobal)."""
    _refuse()


@entry()
def cuCoredumpSetAttribute(attrib: Any, value: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCoredumpSetAttribute)."""
    _refuse()


@entry()
def cuCoredumpSetAttributeGlobal(attrib: Any, value: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCoredumpSetAttributeGlobal)."""
    _refuse()


@entry(values=1)
def cuCheckpointProcessGetState(pid: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCheckpointProcessGetState)."""
    _refuse()


@entry(values=1)
def cuCheckpointProcessGetRestoreThreadId(pid: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCheckpointProcessGetRestoreThreadId)."""
    _refuse()


@entry()
def cuCheckpointProcessLock(pid: Any, args: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCheckpointProcessLock)."""
    _refuse()


@entry()
def cuCheckpointProcessCheckpoint(pid: Any, args: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCheckpointProcessCheckpoint)."""
    _refuse()


@entry()
def cuCheckpointProcessRestore(pid: Any, args: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCheckpointProcessRestore)."""
    _refuse()


@entry()
def cuCheckpointProcessUnlock(pid: Any, args: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuCheckpointProcessUnlock)."""
    _refuse()


@entry(values=1)
def cuMulticastGetGranularity(prop: Any, option: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuMulticastGetGranularity)."""
    _refuse()


@entry(values=1)
def cuMulticastCreate(prop: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuMulticastCreate)."""
    _refuse()


@entry()
def cuMulticastAddDevice(mcHandle: Any, dev: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuMulticastAddDevice)."""
    _refuse()


@entry()
def cuMulticastBindMem(mcHandle: Any, mcOffset: Any, memHandle: Any, memOffset: Any, size: Any, flags: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuMulticastBindMem)."""
    _refuse()


@entry()
def cuMulticastUnbind(mcHandle: Any, dev: Any, mcOffset: Any, size: Any) -> NoReturn:
    """Return CUDA_ERROR_NOT_SUPPORTED (cuMulticastUnbind)."""
    _refuse()
