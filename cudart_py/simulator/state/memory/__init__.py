"""Memory: the address space, the allocations in it, and the records of their bytes."""

from .address_space import space
from .allocations import ARRAY, DEVICE, HEAP, MANAGED, ON_DEVICE, PINNED, REGISTERED, Allocation, rounded
from .table import (
    allocate,
    begin_life,
    describe,
    drop_bytes,
    end_life,
    enter,
    find,
    forget,
    free,
    keep_bytes,
    known,
    live,
    note_change,
    note_written,
    require_live,
)

__all__ = [
    "ARRAY",
    "DEVICE",
    "HEAP",
    "MANAGED",
    "ON_DEVICE",
    "PINNED",
    "REGISTERED",
    "Allocation",
    "allocate",
    "begin_life",
    "describe",
    "drop_bytes",
    "end_life",
    "enter",
    "find",
    "forget",
    "free",
    "keep_bytes",
    "known",
    "live",
    "note_change",
    "note_written",
    "require_live",
    "rounded",
    "space",
]
