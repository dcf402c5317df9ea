"""Driver calls by the runtime, and the runtime's state for each thread: its device and its last error."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

from ..driver.table import implementation
from ..foreign_memory import read
from ..functions import driver_functions

SUCCESS = 0
INVALID_VALUE = 1
INVALID_CONFIGURATION = 9
INVALID_PITCH = 12
INVALID_SYMBOL = 13
INVALID_MEMORY_DIRECTION = 21
MISSING_CONFIGURATION = 52
INVALID_DEVICE_FUNCTION = 98
NO_DEVICE = 100
INVALID_DEVICE = 101
NOT_READY = 600


class ThreadState(threading.local):
    """The state of one thread: its device, its last error, and the configurations of launches that have begun."""

    def __init__(self) -> None:
        self.device = 0
        self.last_error = SUCCESS
        self.configurations: list[tuple[Any, Any, int, int]] = []


state = ThreadState()


@functools.cache
def driver(symbol: str) -> Callable[..., int]:
    """Return a function of libcuda, which takes C's arguments and returns a status."""
    return implementation(driver_functions()[symbol])


class Out:
    """A place for a result of one driver function that goes into another call."""

    def __init__(self, kind: Any = ctypes.c_size_t) -> None:
        self._cell = kind()

    @property
    def address(self) -> int:
        """Return the address that the function writes to."""
        return ctypes.addressof(self._cell)

    @property
    def value(self) -> Any:
        """Return what the function has written."""
        return self._cell.value


def use_device(ordinal: int) -> int:
    """Make a device's primary context current in this thread, and retain it the first time."""
    context = Out()
    status = primary_context(ordinal, context)
    if status:
        return status
    state.device = ordinal
    return driver("cuCtxSetCurrent")(context.value)


def primary_context(ordinal: int, context: Out) -> int:
    """Write a device's primary context, retained once and for all."""
    if ordinal not in _retained:
        status = driver("cuDevicePrimaryCtxRetain")(context.address, ordinal)
        if status:
            return status
        _retained[ordinal] = context.value
    ctypes.c_size_t.from_address(context.address).value = _retained[ordinal]
    return SUCCESS


def forget_contexts(ordinal: int) -> None:
    """Retain the device's primary context again at the next use, because it has been reset."""
    _retained.pop(ordinal, None)


_retained: dict[int, int] = {}


def ensure_context() -> int:
    """Make the thread's device current if no context is, as every call of the runtime does."""
    current = Out()
    status = driver("cuCtxGetCurrent")(current.address)
    if status == 3:  # before cuInit
        status = driver("cuInit")(0) or driver("cuCtxGetCurrent")(current.address)
    if status or read(current.address):
        return status
    return use_device(state.device)
