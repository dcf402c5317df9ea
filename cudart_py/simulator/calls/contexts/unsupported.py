"""Calls for NVIDIA's debugger and its kernel module: coredumps and checkpoints, which need a GPU."""

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
