"""Addresses: what the driver knows of the memory behind one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import arguments
from ._driver import api
from .array import DeviceArray
from .device import Device, activated, current_device
from .pointer import Pointer

__all__ = ["MemoryKind", "PointerAttributes", "memory_kind", "pointer_attributes"]

MemoryKind = Literal["device", "host", "managed", "pageable"]

_NAMES = (
    "MEMORY_TYPE",
    "IS_MANAGED",
    "DEVICE_ORDINAL",
    "DEVICE_POINTER",
    "HOST_POINTER",
    "RANGE_START_ADDR",
    "RANGE_SIZE",
    "MEMPOOL_HANDLE",
)


@dataclass(frozen=True)
class PointerAttributes:
    """What the driver knows of an address. Sizes are in bytes.

    `kind` is "device", "host" (page-locked), "managed", or "pageable": host memory that the driver doesn't know.
    `device` is where the memory lies or was allocated, None for pageable memory. `device_pointer` and `host_pointer`
    are the address as kernels and the host use it, None where they cannot. `start` and `nbytes` are the whole
    allocation's, None for pageable memory. `pool` is the handle of the pool it came from, None without one.
    """

    address: int
    kind: MemoryKind
    device: Device | None
    device_pointer: int | None
    host_pointer: int | None
    start: int | None
    nbytes: int | None
    pool: int | None


def pointer_attributes(x: Any) -> PointerAttributes:
    """Ask the driver about the memory behind something (cuPointerGetAttributes).

    `x` is a DeviceArray, a NumPy array, a Pointer or an address. An address that belongs to nothing counts as
    pageable. Raises TypeError for other objects, ValueError for an array that is closed or has no elements.
    """
    address = _address(x)
    kind, answers = _ask(address)
    if kind == "pageable":
        return PointerAttributes(address, kind, None, None, address, None, None, None)
    ordinal, device_pointer, host_pointer, start, nbytes, pool = answers
    return PointerAttributes(
        address,
        kind,
        Device(ordinal),
        device_pointer or None,
        host_pointer or None,
        start,
        nbytes,
        pool or None,
    )


def memory_kind(address: int) -> MemoryKind:
    """Tell what memory lies behind an address."""
    return _ask(address)[0]


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
        raise ValueError(f"{call}: argument {name!r} is an array of no elements, which has no memory")
    return address


def _ask(address: int) -> tuple[MemoryKind, list[int]]:
    """Return the kind of memory and the answers that `PointerAttributes` is made of."""
    from cuda.bindings import driver as enums

    wanted = [getattr(enums.CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}") for name in _NAMES]
    with activated(current_device()):
        memory_type, managed, *answers = map(int, api.cuPointerGetAttributes(len(wanted), wanted, address))
    kind: MemoryKind = "device"
    if managed:
        kind = "managed"
    elif memory_type == enums.CUmemorytype.CU_MEMORYTYPE_HOST:
        kind = "host"
    elif not memory_type:
        kind = "pageable"
    return kind, answers
