"""The writers of memory: those of each byte of shared memory, and the thread that has changed any bytes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.syntax.instructions import Register

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block
    from ..ptx.running.groups import Group
    from ..ptx.running.scheduler import Chunk
    from .moments import LaneGroup, Moment, Write

Array = NDArray[Any]
# The index of the writer of bytes that nothing has written, and the lane of a write that no single lane makes.
NOBODY = -1
# Records are kept in aligned pieces of 256 bytes. Each byte has the number of the access that changed it last (0 if
# none has), the thread, and the index of the place in the program.
_SHIFT = 8
_BYTES = 1 << _SHIFT
_RECORD = np.dtype([("access", np.int64), ("thread", np.int64), ("place", np.int32)])


class Writers:
    """The writers of a chunk's memory.

    For each byte of shared memory, these are the lane that wrote it last and the index of the place in the program, as
    in `WritingPlaces`; for local memory, only whether anything has written the byte.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.lanes = np.full(len(chunk.shared.bytes), NOBODY, np.int32)
        self.places = np.full(len(chunk.shared.bytes), NOBODY, np.int32)
        self.local = np.zeros(len(chunk.local.bytes), np.bool_)


class WriteAccess(NamedTuple):
    """An access that may write, as it was before it happened.

    `where` contains its bytes, one row per lane, and `before` their contents. `path` is its place in the program, as in
    `Group.path`.
    """

    moment: Moment
    write: Write
    where: Array
    before: Array
    path: tuple[int, ...]


class LastWrite(NamedTuple):
    """A group at the instruction that has changed some bytes last, and the thread, counted over the whole grid.

    The group may have executed the instruction at another time. The thread is None if it is not known.
    """

    group: LaneGroup
    thread: int | None


class Atomic(NamedTuple):
    """An atomic with a result that the lanes of a group have executed.

    `found` contains the bytes that each lane has found, one row per lane, or is None if the program does not use the
    result. `is_swap` is true for a compare-and-swap, which writes only if it succeeds.
    """

    lanes: Array
    found: Array | None
    is_swap: bool


def atomic_of(group: Group, block: Block) -> Atomic | None:
    """Return the atomic in a block of stepped code that a group has executed, or None for another instruction."""
    site = block.instructions[0] if block.instructions else None
    form = None if site is None else form_of(site)
    if site is None or form is None or form.row.access != "atom":
        return None
    target, found = site.operands[0], None
    slot = group.code.slot(target.name) if isinstance(target, Register) else None
    if slot is not None and block.live_out >> slot & 1:
        values = np.broadcast_to(group.registers[slot], group.n)
        found = np.ascontiguousarray(values).view(np.uint8).reshape(group.n, -1)
    return Atomic(group.lane_numbers, found, form.operation == "cas")


def _changing_lanes(access: WriteAccess, atomic: Atomic | None) -> Array:
    """Return the lanes of a completed access that have changed memory.

    The lanes of an atomic follow one another, so that each of them leaves the bytes that the next lane at the same
    address finds. Otherwise, these are the lanes whose bytes have changed.
    """
    left = access.write.array[access.where]
    if atomic is None or atomic.found is None:
        return np.asarray((left != access.before).any(axis=1))
    found = atomic.found[np.searchsorted(atomic.lanes, access.write.lanes), : access.write.size]
    order = np.argsort(access.write.places, kind="stable")
    earlier, later = order[:-1], order[1:]
    has_next = access.write.places[earlier] == access.write.places[later]
    left[earlier[has_next]] = found[later[has_next]]
    return np.asarray((left != found).any(axis=1))


class Effect(NamedTuple):
    """The effect of an access.

    `changing` are the rows of the lanes that have changed memory, and `threads` the numbers of their threads in the
    whole grid. `writing` says for each lane whether it has written, and `write` has only these lanes.
    """

    changing: Array
    threads: Array
    writing: Array
    write: Write


def effect_of(access: WriteAccess, atomic: Atomic | None) -> Effect:
    """Return the effect of an access that has happened, perhaps by an atomic."""
    chunk, write = access.moment.chunk, access.write
    changing = _changing_lanes(access, atomic)
    threads = chunk.first * chunk.threads + write.lanes[changing]
    writing = np.ones(len(changing), np.bool_)
    if atomic is not None and atomic.is_swap:
        if atomic.found is not None:
            writing = changing
        elif len(threads) > 1:
            threads[:] = NOBODY
    written = write._replace(places=write.places[writing], lanes=write.lanes[writing])
    return Effect(np.flatnonzero(changing), threads, writing, written)


class _Records:
    """The records of the bytes of an array, in pieces; only pieces that have been written have records."""

    def __init__(self, array: Array) -> None:
        # It is kept, so that its identity is not used again.
        self.array = array
        self._rows: dict[int, int] = {}
        self._records = np.zeros((1, _BYTES), _RECORD)

    def write(self, where: Array, access: int, threads: Array, place: int) -> None:
        """Record an access to some bytes, with one thread per byte."""
        numbers, inverse = np.unique(where >> _SHIFT, return_inverse=True)
        rows = np.array([self._rows.setdefault(number, len(self._rows)) for number in numbers.tolist()])
        while len(self._rows) > len(self._records):
            self._records = np.concatenate([self._records, np.zeros_like(self._records)])
        row = rows[inverse], where & (_BYTES - 1)
        self._records["access"][row] = access
        self._records["thread"][row] = threads
        self._records["place"][row] = place

    def at(self, places: Array) -> Array:
        """Return the records of bytes that have been written."""
        known = [place for place in places.tolist() if place >> _SHIFT in self._rows]
        rows = [self._rows[place >> _SHIFT] for place in known]
        found = self._records[rows, np.array(known, np.int64) & (_BYTES - 1)]
        return found[found["access"] > 0]


class WritingPlaces:
    """The places of the program that have written memory, by index. Each has a group that was there, in `groups`."""

    def __init__(self) -> None:
        self.groups: list[LaneGroup] = []
        self._indices: dict[tuple[int, ...], int] = {}

    def index(self, access: WriteAccess) -> int:
        """Return the index of an access's place."""
        index = self._indices.setdefault(access.path, len(self.groups))
        if index == len(self.groups):
            assert access.moment.running is not None
            self.groups.append(access.moment.running)
        return index


class LastWriters:
    """The last writers of all memory that recorded blocks have changed. Unlike the history, they have no limit."""

    def __init__(self, places: WritingPlaces) -> None:
        # Keyed by the identity of the array.
        self._records: dict[int, _Records] = {}
        self._accesses = 0
        self._places = places

    def note(self, access: WriteAccess, effect: Effect) -> None:
        """Record the threads that have changed memory by an access."""
        if not len(effect.changing):
            return
        self._accesses += 1
        array = access.write.array
        if id(array) not in self._records:
            self._records[id(array)] = _Records(array)
        where = access.where[effect.changing].ravel()
        threads = np.repeat(effect.threads, access.write.size)
        self._records[id(array)].write(where, self._accesses, threads, self._places.index(access))

    def of(self, array: Array, place: int, size: int) -> LastWrite | None:
        """Return the last writer of bytes of an array, or None if no recorded block has changed them."""
        records = self._records.get(id(array))
        if records is None:
            return None
        found = records.at(np.arange(place, place + size))
        if not len(found):
            return None
        latest = found[np.argmax(found["access"])]
        thread = int(latest["thread"])
        return LastWrite(self._places.groups[latest["place"]], None if thread == NOBODY else thread)

    def forget(self, array: Array) -> None:
        """Forget the writers of an array that is used no longer."""
        self._records.pop(id(array), None)
