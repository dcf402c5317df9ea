"""Handles for other processes, which the simulator lacks because its memory belongs to the process in which it runs."""

from __future__ import annotations

from typing import Any, NoReturn

from cuda.bindings.driver import CUresult

from ...state.contexts import current
from ...state.errors import StatusError
from ..entry import entry


def _refuse() -> NoReturn:
    current()
    raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)


@entry(values=1)
def cuIpcGetMemHandle(dptr: Any) -> Any:
    """Refuse to return a handle of memory for other processes (cuIpcGetMemHandle)."""
    _refuse()


@entry(values=1)
def cuIpcOpenMemHandle(handle: Any, Flags: Any) -> Any:
    """Refuse to open the memory of another process (cuIpcOpenMemHandle)."""
    _refuse()


@entry(frees=True)
def cuIpcCloseMemHandle(dptr: Any) -> None:
    """Refuse to close the memory of another process (cuIpcCloseMemHandle)."""
    _refuse()


@entry(values=1)
def cuIpcGetEventHandle(event: Any) -> Any:
    """Refuse to return a handle of an event for other processes (cuIpcGetEventHandle)."""
    _refuse()


@entry(values=1)
def cuIpcOpenEventHandle(handle: Any) -> Any:
    """Refuse to open the event of another process (cuIpcOpenEventHandle)."""
    _refuse()
