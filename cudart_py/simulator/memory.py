"""Memory: the allocations, who may touch them, and the view of them that a kernel gets.

Two indexes hold the allocations: `known` is what the host's calls may name, `live` what the work of streams may
touch. They differ for stream-ordered memory, which the host has given up when `cuMemFreeAsync` returns and the
device when its stream gets there.
"""

from __future__ import annotations

import bisect
import collections
import ctypes
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from cuda.bindings.driver import CUdeviceptr, CUresult
from numpy.typing import NDArray

from .callers import call_site
from .errors import StatusError
from .region import Region, address_space
from .shadow import Shadow

if TYPE_CHECKING:
    from .contexts import Context
    from .devices import Device
    from .pools import Pool

__all__ = [
    "DEVICE",
    "HEAP",
    "MANAGED",
    "PINNED",
    "REGISTERED",
    "Allocation",
    "allocate",
    "begin_life",
    "describe",
    "end_life",
    "enter",
    "find",
    "forget",
    "free",
    "host_address",
    "known",
    "live",
    "named",
    "note_written",
    "region",
    "window",
]

_identities = itertools.count(1)
_DESCRIBED_FREED = 1024
_NEAR = 1 << 20

DEVICE = "device"
PINNED = "pinned"
REGISTERED = "registered"
MANAGED = "managed"
HEAP = "heap"


class Allocation:
    """A range of bytes that was asked for.

    `kind` is "device", "pinned", "registered", "managed", or "heap" for what a kernel's malloc gave; `size` is the
    bytes that were asked for.
    """

    __slots__ = (
        "_shadow",
        "address",
        "context",
        "device",
        "flags",
        "held",
        "identity",
        "kind",
        "pool",
        "reserved",
        "site",
        "size",
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
    ) -> None:
        self.address = address
        self.size = size
        self.kind = kind
        self.context = context
        self.device = context.device if device is None else device
        self.flags = flags
        # What keeps the bytes of registered memory there, where the caller gave more than an address.
        self.held: Any = None
        self.pool = pool
        self.identity = next(_identities)
        self.reserved = -(-size // 512) * 512
        # Where the program is that asked for it, for reports.
        self.site = call_site() if kind != HEAP else "a kernel's malloc"
        self._shadow: Shadow | None = None

    @property
    def end(self) -> int:
        """Return the address after the last byte."""
        return self.address + self.size

    @property
    def shadow(self) -> Shadow:
        """Return the records of who wrote and read it; what the host can write to counts as written."""
        if self._shadow is None:
            self._shadow = Shadow(self.address, self.size, self.on_host)
        return self._shadow

    @property
    def on_host(self) -> bool:
        """Tell whether the host may use the address."""
        return self.kind not in (DEVICE, HEAP)


class Freed(NamedTuple):
    """What is remembered of an allocation that has ended."""

    address: int
    size: int
    kind: str
    ordinal: int
    site: str


class Index:
    """Allocations that don't overlap, by address."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.by_start: dict[int, Allocation] = {}

    def add(self, allocation: Allocation) -> None:
        """Enter an allocation."""
        start = allocation.address
        if start in self.by_start:
            self.by_start[start] = allocation
            return
        starts = self.starts
        if not starts or start > starts[-1]:
            starts.append(start)
        else:
            bisect.insort(starts, start)
        self.by_start[start] = allocation

    def remove(self, allocation: Allocation) -> None:
        """Take an allocation out, if it is still the one at its address."""
        start = allocation.address
        if self.by_start.get(start) is allocation:
            del self.by_start[start]
            del self.starts[bisect.bisect_left(self.starts, start)]

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that an address lies in."""
        starts = self.starts
        index = bisect.bisect_right(starts, address)
        if not index:
            return None
        allocation = self.by_start[starts[index - 1]]
        return allocation if address < allocation.address + allocation.size else None

    def before(self, address: int) -> Allocation | None:
        """Return the last allocation that begins at or before an address."""
        index = bisect.bisect_right(self.starts, address)
        return self.by_start[self.starts[index - 1]] if index else None

    def after(self, address: int) -> Allocation | None:
        """Return the first allocation that begins after an address."""
        index = bisect.bisect_right(self.starts, address)
        return self.by_start[self.starts[index]] if index < len(self.starts) else None


known = Index()
live = Index()
# Not the allocations themselves, which would keep alive what they belong to.
_freed: collections.deque[Freed] = collections.deque(maxlen=_DESCRIBED_FREED)


class _State:
    """What is made at the first use: the reservation and the view over it."""

    def __init__(self) -> None:
        self.region: Region | None = None
        self.base = 0
        self.bytes: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.generation = 0


state = _State()


def region() -> Region:
    """Return the reservation, made at the first call."""
    if state.region is None:
        state.region = Region()
        state.base, state.bytes = address_space()
    return state.region


def allocate(size: int, kind: str, context: Context, *, flags: int = 0, counted: bool = False) -> Allocation:
    """Make an allocation known and live; `counted` ones take the device's memory.

    Raises CUDA_ERROR_INVALID_VALUE for no bytes, CUDA_ERROR_OUT_OF_MEMORY when there is no room.
    """
    if size <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if counted:
        context.device.take(-(-size // 512) * 512)
    try:
        address = region().open(size)
    except MemoryError:
        if counted:
            context.device.give(-(-size // 512) * 512)
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    allocation = Allocation(address, size, kind, context, flags=flags)
    enter(allocation)
    return allocation


def enter(allocation: Allocation) -> None:
    """Make an allocation known and live."""
    known.add(allocation)
    live.add(allocation)
    state.generation += 1


def forget(allocation: Allocation) -> None:
    """Make an allocation neither known nor live, its bytes untouched."""
    known.remove(allocation)
    live.remove(allocation)
    _freed.append(_remembered(allocation))
    state.generation += 1


def free(allocation: Allocation, *, counted: bool = False) -> None:
    """End an allocation and drop its bytes."""
    forget(allocation)
    region().close(allocation.address, allocation.size)
    if counted:
        allocation.device.give(allocation.reserved)


def begin_life(allocation: Allocation) -> None:
    """Give an allocation that the host knows to the work of streams."""
    live.add(allocation)
    state.generation += 1


def end_life(allocation: Allocation) -> None:
    """Take an allocation from the work of streams, which the host had given up before."""
    live.remove(allocation)
    _freed.append(_remembered(allocation))
    state.generation += 1


def find(address: int, size: int = 1) -> Allocation | None:
    """Return the known allocation that holds `size` bytes at an address, None for other host memory.

    Raises CUDA_ERROR_INVALID_VALUE for null, for bytes past an allocation's end and for what was freed.
    """
    allocation = known.find(address)
    if allocation is not None:
        if address + size > allocation.address + allocation.size:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return allocation
    if address <= 0 or region().contains(address) or address + size > 1 << 48:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return None


def note_written(address: int, size: int) -> None:
    """Note that a copy or a fill has written a range, for the check of what kernels read."""
    allocation = live.find(address)
    if allocation is not None and not allocation.on_host:
        allocation.shadow.fill(address, size)


def host_address(value: Any) -> int:
    """Return the address of a host argument: an int, a buffer or None, as the bindings take them."""
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


def window(address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return a view of bytes anywhere in the process that the caller has checked."""
    region()
    return np.ndarray(shape, np.uint8, state.bytes, address - state.base, strides)


def describe(address: int, context: Context | None = None) -> str:
    """Say where an address lies among the allocations of the process."""
    if address == 0:
        return "the null pointer"
    allocation = live.find(address)
    if allocation is not None:
        text = f"{_bytes(address - allocation.address)} into {named(allocation)}"
        if context is not None and not context.reaches(allocation):
            text += f", which device {context.device.ordinal} has no peer access to"
        return text
    for freed in reversed(_freed):
        if freed.address <= address < freed.address + freed.size:
            return f"{_bytes(address - freed.address)} into {_named(*freed)}, which was freed"
    before = live.before(address)
    after = live.after(address)
    past = address - before.end if before is not None else _NEAR
    short = after.address - address if after is not None else _NEAR
    if before is not None and past < _NEAR and past <= short:
        return f"{_bytes(past)} past the end of {named(before)}"
    if after is not None and short < _NEAR:
        return f"{_bytes(short)} before the start of {named(after)}"
    if known.find(address) is None and not region().contains(address):
        return "host memory that is neither pinned, managed nor registered, or nothing at all"
    return "no allocation is near it"


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"


def named(allocation: Allocation) -> str:
    """Name an allocation by its size, kind, address, and where the program asked for it."""
    return _named(*_remembered(allocation))


def _remembered(allocation: Allocation) -> Freed:
    return Freed(allocation.address, allocation.size, allocation.kind, allocation.device.ordinal, allocation.site)


def _named(address: int, size: int, kind: str, ordinal: int, site: str) -> str:
    adjective = "" if kind == DEVICE else f"{kind} "
    where = f" of device {ordinal}" if ordinal else ""
    origin = f", allocated at {site}" if site else ""
    return f"the {size}-byte {adjective}allocation at {address:#x}{where}{origin}"
