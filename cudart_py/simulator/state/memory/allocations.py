"""Allocations: ranges of bytes that have been requested, and an index of them by address."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from ....host.callers import call_site
from .records.shadow import ShadowMemory

if TYPE_CHECKING:
    from ..contexts import Context
    from ..devices import Device
    from ..queue.stream import Stream
    from ..queue.work import Work
    from .pools import Pool

DEVICE = "device"
PINNED = "pinned"
REGISTERED = "registered"
MANAGED = "managed"
HEAP = "heap"
ARRAY = "array"
# The kinds that take the device's own memory and are allocated by calls of the host.
ON_DEVICE = (DEVICE, ARRAY)

# The driver allocates a device's memory in multiples of this many bytes.
_GRANULARITY = 512

_identities = itertools.count(1)


def rounded(size: int) -> int:
    """Return the number of bytes of device memory that an allocation of `size` bytes takes."""
    return -(-size // _GRANULARITY) * _GRANULARITY


class AllocationRecord(NamedTuple):
    """The record of an allocation after its end; as a string it names the allocation in a report."""

    address: int
    size: int
    kind: str
    ordinal: int
    site: str
    variable: str

    def contains(self, address: int) -> bool:
        """Return whether an address was in the allocation."""
        return self.address <= address < self.address + self.size

    def overlaps(self, allocation: Allocation) -> bool:
        """Return whether another allocation shares bytes with this one."""
        return allocation.address < self.address + self.size and self.address < allocation.end

    def __str__(self) -> str:
        adjective = "" if self.kind == DEVICE else f"{self.kind} "
        where = f" of device {self.ordinal}" if self.ordinal else ""
        what, made = (f"variable {self.variable}", "loaded") if self.variable else ("allocation", "allocated")
        origin = f", {made} at {self.site}" if self.site else ""
        return f"the {self.size}-byte {adjective}{what} at {self.address:#x}{where}{origin}"


class Allocation:
    """A range of bytes that has been requested.

    `kind` is "device", "pinned", "registered", "managed", "array" for a CUDA array, or "heap" for memory from a
    kernel's malloc; `size` is the requested number of bytes.
    """

    __slots__ = (
        "__weakref__",
        "_shadow",
        "access",
        "address",
        "begin",
        "context",
        "device",
        "flags",
        "freed_at",
        "held",
        "identity",
        "kind",
        "pool",
        "reserved",
        "site",
        "size",
        "stream",
        "sync_memops",
        "variable",
    )

    def __init__(
        self,
        address: int,
        size: int,
        kind: str,
        context: Context,
        *,
        flags: int = 0,
        pool: Pool | None = None,
        device: Device | None = None,
        stream: Stream | None = None,
    ) -> None:
        self.address = address
        self.size = size
        self.kind = kind
        self.context = context
        self.device = context.device if device is None else device
        self.flags = flags
        # The value of CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which has no effect.
        self.sync_memops = kind == MANAGED
        # The object that keeps registered memory alive, if the caller passed an object and not only an address.
        self.held: Any = None
        self.pool = pool
        # The devices that may access memory that was mapped here; None for memory that was allocated here.
        self.access: frozenset[Device] | None = None
        # The stream of a stream-ordered allocation, and the work in it that makes the allocation live, or None if it
        # was live at once.
        self.stream = stream
        self.begin: Work | None = None
        self.identity = next(_identities)
        self.reserved = rounded(size)
        # The name of the module's variable that occupies these bytes, "" if none does.
        self.variable = ""
        # The line of the program that requested the allocation, for reports.
        self.site = call_site() if kind != HEAP else "a kernel's malloc"
        # The line of the program that freed it, "" if the checks are off or it has not been freed.
        self.freed_at = ""
        self._shadow: ShadowMemory | None = None

    @property
    def end(self) -> int:
        """Return the address after the last byte."""
        return self.address + self.size

    @property
    def shadow(self) -> ShadowMemory:
        """Return the shadow memory, created on first use; memory that the host can write counts as written."""
        if self._shadow is None:
            self._shadow = ShadowMemory(self.address, self.size, self.on_host)
        return self._shadow

    @property
    def on_host(self) -> bool:
        """Return whether the host may use the address."""
        return self.kind not in (DEVICE, ARRAY, HEAP)

    @property
    def record(self) -> AllocationRecord:
        """Return the record that is kept after the allocation's end."""
        return AllocationRecord(self.address, self.size, self.kind, self.device.ordinal, self.site, self.variable)


class Index:
    """An index, by address, of allocations that don't overlap."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.by_start: dict[int, Allocation] = {}

    def add(self, allocation: Allocation) -> None:
        """Add an allocation, replacing any allocation at the same address."""
        start = allocation.address
        if start in self.by_start:
            self.by_start[start] = allocation
            return
        self.by_start[start] = allocation
        try:
            bisect.insort(self.starts, start)
        except BaseException:  # there is no memory left
            del self.by_start[start]
            raise

    def remove(self, allocation: Allocation) -> None:
        """Remove an allocation, if it is still the one at its address."""
        start = allocation.address
        if self.by_start.get(start) is allocation:
            del self.by_start[start]
            del self.starts[bisect.bisect_left(self.starts, start)]

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that contains an address, or None."""
        starts = self.starts
        index = bisect.bisect_right(starts, address)
        if not index:
            return None
        allocation = self.by_start[starts[index - 1]]
        return allocation if address < allocation.address + allocation.size else None

    def before(self, address: int) -> Allocation | None:
        """Return the last allocation that begins at or before an address, or None."""
        index = bisect.bisect_right(self.starts, address)
        return self.by_start[self.starts[index - 1]] if index else None

    def after(self, address: int) -> Allocation | None:
        """Return the first allocation that begins after an address, or None."""
        index = bisect.bisect_right(self.starts, address)
        return self.by_start[self.starts[index]] if index < len(self.starts) else None
