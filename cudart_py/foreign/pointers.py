"""Pointers: the driver's information about the memory of an array or at an address."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import arguments
from ..base.pointer import Pointer
from ..memory.addresses import PointerAttributes, attributes_of
from ..memory.array import DeviceArray


def pointer_attributes(x: Any) -> PointerAttributes:
    """Return the driver's information about the memory of an array or at an address (cuPointerGetAttributes).

    `x` is a DeviceArray, a NumPy array, a Pointer or an address. An address that the driver does not know is reported
    as pageable. Raises TypeError for other objects, and ValueError for an array that is closed or has no elements.
    """
    return attributes_of(_address(x))


def _address(x: Any) -> int:
    call, name = "pointer_attributes", "x"
    if isinstance(x, DeviceArray):
        address = arguments.opened(call, name, x, DeviceArray).pointer
    elif isinstance(x, np.ndarray):
        address = x.ctypes.data if x.size else 0
    elif isinstance(x, Pointer):
        return x.value
    elif isinstance(x, int | np.integer) and not isinstance(x, bool):
        return arguments.integer(call, name, x, 0, 2**64 - 1)
    else:
        raise arguments.wrong_type(call, name, "a DeviceArray, a NumPy array, a Pointer or an address", x)
    if not address:
        raise arguments.unusable(call, name, "have at least one element", f"the shape {x.shape}")
    return address
