"""The table of allocations: which of them the host's calls may name, and which the work of streams may touch.

The two indexes, `known` and `live`, differ for stream-ordered memory: it stops being known when `cuMemFreeAsync`
returns, and stops being live when its stream gets there.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUresult

from ..errors import StatusError
from ..queue.operations import FaultError
from .address_space import space
from .allocations import Allocation, AllocationRecord, Index, rounded

if TYPE_CHECKING:
    from ..contexts import Context

__all__ = [
    "allocate",
    "begin_life",
    "describe",
    "end_life",
    "enter",
    "find",
    "forget",
    "free",
    "generation",
    "known",
    "live",
    "note_change",
    "note_written",
    "require_live",
]

_REMEMBERED = 1024
_NEAR = 1 << 20

known = Index()
live = Index()
# Not the allocations themselves, which would keep alive what they belong to.
_recently_freed: collections.deque[AllocationRecord] = collections.deque(maxlen=_REMEMBERED)


class _Changes:
    """The count of changes to what kernels may touch."""

    def __init__(self) -> None:
        self.generation = 0


_state = _Changes()


def generation() -> int:
    """Return a number that changes whenever what kernels may touch does."""
    return _state.generation


def note_change() -> None:
    """Note that what kernels may touch has changed."""
    _state.generation += 1


def allocate(size: int, kind: str, context: Context, *, flags: int = 0, counted: bool = False) -> Allocation:
    """Make an allocation known and live; `counted` ones take the device's memory.

    Raises CUDA_ERROR_INVALID_VALUE for no bytes, CUDA_ERROR_OUT_OF_MEMORY when there is no room.
    """
    if size <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if counted:
        context.device.take(rounded(size))
    try:
        address = space.region.open(size)
    except MemoryError:
        if counted:
            context.device.give(rounded(size))
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    allocation = Allocation(address, size, kind, context, flags=flags)
    enter(allocation)
    return allocation


def enter(allocation: Allocation) -> None:
    """Make an allocation known and live."""
    known.add(allocation)
    live.add(allocation)
    note_change()


def forget(allocation: Allocation) -> None:
    """Make an allocation neither known nor live, its bytes untouched."""
    known.remove(allocation)
    live.remove(allocation)
    _recently_freed.append(allocation.record)
    note_change()


def free(allocation: Allocation, *, counted: bool = False) -> None:
    """End an allocation and drop its bytes."""
    forget(allocation)
    space.region.close(allocation.address, allocation.size)
    if counted:
        allocation.device.give(allocation.reserved)


def begin_life(allocation: Allocation) -> None:
    """Make an allocation live, so that the work of streams may touch it."""
    live.add(allocation)
    note_change()


def end_life(allocation: Allocation) -> None:
    """Make an allocation no longer live, which the host has freed before."""
    live.remove(allocation)
    _recently_freed.append(allocation.record)
    note_change()


def find(address: int, size: int = 1) -> Allocation | None:
    """Return the known allocation that holds `size` bytes at an address, None for other host memory.

    Raises CUDA_ERROR_INVALID_VALUE for null, for bytes past an allocation's end and for what was freed.
    """
    allocation = known.find(address)
    if allocation is not None:
        if address + size > allocation.address + allocation.size:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return allocation
    if address <= 0 or space.region.contains(address) or address + size > 1 << 48:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return None


def require_live(address: int, size: int, what: str) -> None:
    """Raise FaultError for memory that is no longer there when the work that touches it, named by `what`, runs."""
    allocation = live.find(address)
    if allocation is None or address + size > allocation.address + allocation.size:
        raise FaultError(
            CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
            f"{what} of {size} bytes touches {address:#x}: {describe(address)}",
        )


def note_written(address: int, size: int) -> None:
    """Note that a copy or a fill has written a range, for the check of what kernels read."""
    allocation = live.find(address)
    if allocation is not None and not allocation.on_host:
        allocation.shadow.fill(address, size)


def describe(address: int, context: Context | None = None) -> str:
    """Return a text that says where an address lies among the allocations of the process."""
    if address == 0:
        return "the null pointer"
    allocation = live.find(address)
    if allocation is not None:
        text = f"{_bytes(address - allocation.address)} into {allocation.record}"
        if context is not None and not context.reaches(allocation):
            text += f", which device {context.device.ordinal} has no peer access to"
        return text
    for freed in reversed(_recently_freed):
        if freed.address <= address < freed.address + freed.size:
            return f"{_bytes(address - freed.address)} into {freed}, which was freed"
    before = live.before(address)
    after = live.after(address)
    past = address - before.end if before is not None else _NEAR
    short = after.address - address if after is not None else _NEAR
    if before is not None and past < _NEAR and past <= short:
        return f"{_bytes(past)} past the end of {before.record}"
    if after is not None and short < _NEAR:
        return f"{_bytes(short)} before the start of {after.record}"
    if known.find(address) is None and not space.region.contains(address):
        return "host memory that is neither pinned, managed nor registered, or nothing at all"
    return "no allocation is near it"


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
