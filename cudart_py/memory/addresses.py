"""Addresses: the driver's information about the memory at an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..context.current import activated
from ..context.device import Device, current_device
from ..driver import enums
from ..driver.calls import api, device_ordinal

MemoryKind = Literal["device", "host", "managed", "pageable"]

_NAMES = (
    "MEMORY_TYPE",
    "IS_MANAGED",
    "DEVICE_POINTER",
    "HOST_POINTER",
    "RANGE_START_ADDR",
    "RANGE_SIZE",
    "MEMPOOL_HANDLE",
)


@dataclass(frozen=True)
class PointerAttributes:
    """The driver's information about an address. Sizes are in bytes.

    `kind` is "device", "host" (page-locked), "managed", or "pageable": host memory that the driver does not know.
    `device` is the device where the memory is or was allocated. `device_pointer` and `host_pointer` are the addresses
    at which kernels and the host access the memory, or None if they cannot. `start` and `nbytes` describe the whole
    allocation. `pool` is the handle of the pool that the memory came from, or None. For pageable memory, `device`,
    `start` and `nbytes` are None.
    """

    address: int
    kind: MemoryKind
    device: Device | None
    device_pointer: int | None
    host_pointer: int | None
    start: int | None
    nbytes: int | None
    pool: int | None


def attributes_of(address: int) -> PointerAttributes:
    """Return the driver's information about the memory at an address (cuPointerGetAttributes)."""
    kind, answers = _ask(address)
    if kind == "pageable":
        return PointerAttributes(address, kind, None, None, address, None, None, None)
    device_pointer, host_pointer, start, nbytes, pool = answers
    with activated(current_device()):
        device = Device(device_ordinal(address))
    return PointerAttributes(
        address,
        kind,
        device,
        device_pointer or None,
        host_pointer or None,
        start,
        nbytes,
        pool or None,
    )


def memory_kind(address: int) -> MemoryKind:
    """Return the kind of the memory at an address."""
    return _ask(address)[0]


def _ask(address: int) -> tuple[MemoryKind, list[int]]:
    """Return the kind of the memory at an address, and the driver's other answers for `PointerAttributes`."""
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
