"""Arguments as the functions of `cuda.bindings.driver` take them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from cuda.bindings.driver import CUdeviceptr


def number(value: Any) -> int:
    """Return a handle, address or integer argument as an int; None is a null pointer."""
    return 0 if value is None else int(value)


def host_address(value: Any) -> int:
    """Return the address of a host argument: an int, a buffer or None."""
    if type(value) is int:
        return value
    if value is None:
        return 0
    if isinstance(value, (int, CUdeviceptr)):
        return int(value)
    view = memoryview(value)
    if view.nbytes == 0:
        return 0
    if view.readonly:
        array = np.frombuffer(view, np.uint8)
        return int(array.__array_interface__["data"][0])
    return ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B")))
