"""The table of allocations: those that the host's calls may refer to, and those that work in streams may access.

The two indexes, `known` and `live`, differ for stream-ordered memory: it stops being known when `cuMemFreeAsync`
returns, and stops being live when its stream reaches the free.
"""

from __future__ import annotations

import collections
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from cuda.bindings.driver import CUresult

from ..errors import StatusError
from ..fault_reports import put_report
from ..queue.operations import FaultError
from ..queue.runner import runner
from ..queue.stream import UNORDERED_STREAMS, name_of
from ..queue.work import needed
from . import reservations
from .address_space import space
from .allocations import PINNED, Allocation, AllocationRecord, Index, rounded

if TYPE_CHECKING:
    from ..contexts import Context
    from ..queue.stream import Stream

_REMEMBERED = 1024
_NEAR = 1 << 20
# Consecutive allocations are less than this number of bytes apart, because of their alignment.
_GAP = 1024

known = Index()
live = Index()
_SAME_STREAM = "allocate in the stream of the work (stream=s), or make one stream wait for the other"


class _Freed(NamedTuple):
    """The record of a free and the program's line; for a stream-ordered free, the stream and the work's number as well.

    It does not hold the allocation itself, which would keep alive the objects to which the allocation refers.
    """

    record: AllocationRecord
    site: str = ""
    stream: str = ""
    identity: int = 0
    sequence: int = 0


_recently_freed: collections.deque[_Freed] = collections.deque(maxlen=_REMEMBERED)
# The sizes of the host memory that `keep_bytes` has kept, keyed by address.
_kept: dict[int, int] = {}


class _Changes:
    """The count of changes to the memory that kernels may access."""

    def __init__(self) -> None:
        self.generation = 0


_state = _Changes()


def generation() -> int:
    """Return a number that changes whenever the memory that kernels may access changes."""
    return _state.generation


def note_change() -> None:
    """Record that the memory that kernels may access has changed."""
    _state.generation += 1


def allocate(size: int, kind: str, context: Context, *, flags: int = 0, counted: bool = False) -> Allocation:
    """Return a new allocation that is known and live; a `counted` one takes the device's memory.

    Raises CUDA_ERROR_INVALID_VALUE if `size` is not positive, and CUDA_ERROR_OUT_OF_MEMORY if there is no room.
    """
    if size <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if counted:
        context.device.take(rounded(size))
    address = 0
    try:
        address = space.region.open(size)
        allocation = Allocation(address, size, kind, context, flags=flags)
        enter(allocation)
    except MemoryError:
        if address:
            space.region.close(address, size)
        if counted:
            context.device.give(rounded(size))
        raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
    return allocation


def enter(allocation: Allocation) -> None:
    """Make an allocation known and live."""
    known.add(allocation)
    try:
        live.add(allocation)
    except MemoryError:
        known.remove(allocation)
        raise
    note_change()


def forget(allocation: Allocation) -> None:
    """Make an allocation neither known nor live, and leave its bytes untouched."""
    known.remove(allocation)
    live.remove(allocation)
    note_change()
    _remember(allocation)


def free(allocation: Allocation, *, counted: bool = False) -> None:
    """End an allocation and drop its bytes."""
    forget(allocation)
    space.region.close(allocation.address, allocation.size)
    if counted:
        allocation.device.give(allocation.reserved)


def keep_bytes(allocation: Allocation) -> None:
    """End an allocation of host memory and leave its bytes to the host until `drop_bytes`."""
    forget(allocation)
    _kept[allocation.address] = allocation.size


def drop_bytes(address: int) -> None:
    """Drop the bytes that were kept at an address, if there are any."""
    size = _kept.pop(address, None)
    if size is not None:
        space.region.close(address, size)


def begin_life(allocation: Allocation) -> None:
    """Make an allocation live, so that work in streams may access it."""
    live.add(allocation)
    note_change()


def end_life(allocation: Allocation, stream: Stream | None = None) -> None:
    """Make an allocation that the host has freed no longer live; `stream` is the stream whose work does that."""
    live.remove(allocation)
    note_change()
    _remember(allocation, stream)


def _remember(allocation: Allocation, stream: Stream | None = None) -> None:
    """Remember a free for reports, if there is memory for that."""
    with contextlib.suppress(MemoryError):  # because the free itself must not fail
        freed = _Freed(allocation.record, allocation.freed_at)
        if stream is not None and runner.piece is not None:
            freed = freed._replace(stream=str(stream), identity=stream.identity, sequence=runner.piece.work.sequence)
        _recently_freed.append(freed)


def find(address: int, size: int = 1) -> Allocation | None:
    """Return the known allocation that contains `size` bytes at an address, None for other host memory.

    Raises CUDA_ERROR_INVALID_VALUE for null, for bytes past an allocation's end and for freed memory.
    """
    allocation = known.find(address)
    if allocation is not None:
        if address + size > allocation.address + allocation.size:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return allocation
    if address <= 0 or address + size > 1 << 48:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if space.region.contains(address) and not _is_kept(address, size):
        mapped = reservations.describe(address)
        if mapped:
            put_report(f"the call touches {address:#x}: {mapped}")
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return None


def _is_kept(address: int, size: int) -> bool:
    """Return whether `size` bytes at an address are memory that `keep_bytes` has left to the host."""
    return any(start <= address and address + size <= start + kept for start, kept in _kept.items())


def require_live(address: int, size: int, what: str) -> None:
    """Raise FaultError if memory is no longer live when the work that accesses it, named by `what`, runs."""
    allocation = live.find(address)
    if allocation is None or address + size > allocation.address + allocation.size:
        raise FaultError(
            CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
            f"{what} of {size} bytes touches {address:#x}: {describe(address)}",
        )


def note_written(address: int, size: int) -> None:
    """Record that a copy or a fill has written a range, for the check of uninitialised reads."""
    allocation = live.find(address)
    if allocation is not None and not allocation.on_host:
        allocation.shadow.fill(address, size)


def describe(address: int, context: Context | None = None) -> str:
    """Describe where an address is relative to the allocations of the process."""
    if address == 0:
        return "the null pointer"
    early = _not_begun(address)
    if early is not None:
        return (
            f"{_bytes(address - early.address)} into {early.record} in {early.stream}, which has not reached "
            f"the allocation yet, and nothing orders the allocation before this work: {_SAME_STREAM}"
        )
    allocation = live.find(address)
    if allocation is not None:
        text = f"{_bytes(address - allocation.address)} into {allocation.record}"
        if context is not None and not context.reaches(allocation):
            text += f", which {_out_of_reach(allocation, context)}"
        return text
    mapped = reservations.describe(address)
    if mapped:
        return mapped
    freed = _last_free(address)
    if freed is not None:
        text = f"{_bytes(address - freed.record.address)} into {freed.record}, which was freed"
        site = f" at {freed.site}" if freed.site else ""
        elsewhere = _freed_elsewhere(freed, site)
        # The address now refers to the allocation that reuses the freed bytes, unless this work came before the free.
        beside = "" if elsewhere else _beside(address, freed.record)
        return f"{beside}; earlier, it was {text}{site}" if beside else text + (elsewhere or site)
    beside = _beside(address)
    if beside:
        return beside
    if known.find(address) is None and not space.region.contains(address):
        return "an invalid address, or host memory that is neither pinned, managed nor registered"
    return "no allocation is near it"


def unordered_writer(address: int) -> str:
    """Return a clause about work that may still write at an address where nothing has been written, "" for none.

    That is work queued before the current work, in the stream in which the memory was allocated.
    """
    allocation, running = live.find(address), runner.piece
    stream = None if allocation is None else allocation.stream
    if stream is None or stream.tail is None or running is None:
        return ""
    work = running.work
    if not any(
        earlier.stream == stream.identity and earlier.sequence < work.sequence and earlier.operation is not None
        for earlier in needed([stream.tail])
    ):
        return ""
    return (
        f": the memory was allocated in {stream}, and nothing orders the earlier work there before this work in "
        f"{name_of(work.stream)}: {UNORDERED_STREAMS}"
    )


def is_freed(address: int) -> bool:
    """Return whether an address is in an allocation that was freed, and near no other allocation in its place."""
    freed = None if _not_begun(address) or live.find(address) or reservations.describe(address) else _last_free(address)
    return freed is not None and (bool(_freed_elsewhere(freed)) or not _beside(address, freed.record))


def _last_free(address: int) -> _Freed | None:
    """Return the record of the last free of an allocation that contained an address, None if it is not remembered."""
    return next((freed for freed in reversed(_recently_freed) if freed.record.contains(address)), None)


def _out_of_reach(allocation: Allocation, context: Context) -> str:
    """Return why a context's kernels may not access an allocation."""
    device = f"device {context.device.ordinal}"
    if allocation.access is not None:
        return f"{device} may not access: cuMemSetAccess has not been called for it"
    if allocation.kind == PINNED:
        return f"{device} may not access: cuMemPoolSetAccess has not been called for it"
    return f"{device} has no peer access to"


def _beside(address: int, within: AllocationRecord | None = None) -> str:
    """Describe an address relative to the nearest live allocation; return "" if none is near.

    If the address is in the gap between two allocations, the program may have meant either, so both are named. An
    address directly after an allocation is that of an index one too large. With `within`, only allocations that share
    bytes with that allocation are considered.
    """
    found: list[tuple[int, str]] = []
    for allocation in (live.before(address), live.after(address)):
        if allocation is None or (within is not None and not within.overlaps(allocation)):
            continue
        if allocation.address > address:
            short = allocation.address - address
            found.append((short, f"{_bytes(short)} before the start of {allocation.record}"))
        else:
            past = address - allocation.end
            found.append((past, f"{_bytes(past)} after the end of {allocation.record}"))
    (distance, text), *others = sorted(found) or [(_NEAR, "")]
    if others and distance > 0 and others[0][0] < _GAP:
        text += f", and {others[0][1]}"
    return text if distance < _NEAR else ""


def _not_begun(address: int) -> Allocation | None:
    """Return the allocation at an address if the current work uses it before the allocation's stream has reached it.

    Work that was queued before the allocation refers to whatever had the address earlier.
    """
    allocation, running = known.find(address), runner.piece
    if allocation is None or allocation.begin is None or allocation.begin.done or running is None:
        return None
    return allocation if running.work.sequence > allocation.begin.sequence else None


def _freed_elsewhere(freed: _Freed, site: str = "") -> str:
    """Return a phrase about a free in another stream that was queued after the current work, "" for any other free.

    `site` is the end of the phrase for the place of the free.
    """
    running = runner.piece
    if not freed.stream or running is None:
        return ""
    if running.work.stream == freed.identity or running.work.sequence > freed.sequence:
        return ""
    return f" in {freed.stream}{site}, and nothing orders the free after this work: {_SAME_STREAM}"


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
