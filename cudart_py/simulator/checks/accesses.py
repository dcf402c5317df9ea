"""Memory accesses, the rules for checking them, and their footprints: the pieces of memory that each one touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..state.memory.records.shadow import BLOCK_SCOPE, STRONG

if TYPE_CHECKING:
    from ..ptx.compiling.forms import Form
    from ..ptx.running.groups import Group
    from ..ptx.running.memory.addresses import Address
    from ..ptx.syntax.instructions import Instruction

Array = NDArray[Any]
ndarray = np.ndarray


class MemoryAccess(NamedTuple):
    """An instruction's access to memory, with the arguments of `Observer.access`.

    `positions` has the positions in the group of the lanes that make the access; None means all lanes. If a load writes
    only one register, `register` is a pair: the register's index among the instruction's registers, and the index of
    the first byte written in it. None means all registers.
    """

    group: Group
    kind: str
    address: Address
    offset: int
    size: int
    site: Instruction
    values: tuple[Any, ...]
    positions: Array | None = None
    register: tuple[int, int] | None = None

    @property
    def low(self) -> int:
        """The offset of the first byte that any lane touches."""
        return self.address.low + self.offset

    @property
    def high(self) -> int:
        """The offset after the last byte that any lane touches."""
        return self.address.high + self.offset + self.size

    @property
    def outside(self) -> bool:
        """Whether a part is outside the space's variables: a fault, or an access to memory of CUDA's headers."""
        return self.low < self.address.space.first or self.high > (self.address.space.size or 0)

    @property
    def part_of_register(self) -> tuple[int, int] | None:
        """The index of the single register that a load writes, and a mask of its written bytes; None for all."""
        if self.register is None:
            return None
        number, first = self.register
        return number, ((1 << self.size) - 1) << first

    def part(self, address: Address, some: Array) -> MemoryAccess:
        """Return the part of the access that the lanes `some`, an array of indices, make to this address."""
        chosen = tuple(v[some] if v.__class__ is ndarray else v for v in self.values)
        positions = some if self.positions is None else self.positions[some]
        return self._replace(address=address, values=chosen, positions=positions)


class AccessRules(NamedTuple):
    """The facts about an instruction that decide how one kind of its accesses is checked.

    `strength` is 0 for a plain access, or the flags in the record of a strong one. A `read_only` load is of data that
    the launch itself doesn't write (`ld.global.nc`, constants). A `cached` load goes through a texture or a surface,
    and therefore races with all earlier writes of the launch, ordered or not. An `exempt` load fetches a guess for a
    compare-and-swap, and doesn't race with strong writes. A load that `lasts` beyond its instruction is not recorded
    with the others, because `BulkCopies` keeps track of its end.
    """

    strength: int
    read_only: bool
    cached: bool
    exempt: bool
    lasts: bool


def strength_of(form: Form, kind: str) -> int:
    """Return the flags in the record of a strong access, or 0 for a plain access.

    A bulk reduction updates each element atomically, but its reads of the source are plain.
    """
    if not form.strong and not (kind != "ld" and "reduce" in form.words):
        return 0
    return STRONG | BLOCK_SCOPE if form.scope == "cta" else STRONG


class Footprint:
    """The pieces of memory that one access touches.

    `index` is a slice or an array of indices of pieces of ``1 << shift`` bytes; the `each` pieces of a lane are
    adjacent in it. `distinct` selects the same pieces, but if all lanes of several have the same address, it selects
    each piece only once, and `same` is true. `alone` is true if no two lanes can share a piece. `origin` is the offset
    of piece 0.
    """

    __slots__ = ("_index", "access", "alone", "distinct", "each", "group", "lanes", "same")

    def __init__(self, access: MemoryAccess, origin: int, shift: int) -> None:
        self.access = access
        self.group = access.group
        size, address, positions = access.size, access.address, access.positions
        self.each = max(1, size >> shift)
        self.lanes = access.group.n if positions is None else len(positions)
        distance = access.offset - origin
        self._index: Any = None
        self.distinct: Any
        if address.places.__class__ is not ndarray:
            self.same = self.lanes > 1
            self.alone = not self.same
            first = (address.places + distance) >> shift
            self.distinct = slice(first, first + self.each)
            return
        self.same = False
        start = address.run_start(size) if size >> shift else -1
        self.alone = start >= 0
        if self.alone:
            first = (start + distance) >> shift
            self.distinct = slice(first, first + self.lanes * self.each)
        else:
            pieces = address.pieces(distance, shift)
            self.distinct = pieces if self.each == 1 else (pieces[:, None] + np.arange(self.each)).reshape(-1)

    @property
    def index(self) -> Any:
        """The pieces of each lane; a write leaves the record of the last lane that touches a piece."""
        if self._index is None:
            self._index = self.distinct
            if self.same:
                self._index = self.for_lanes(np.arange(self.distinct.start, self.distinct.stop))
        return self._index

    def for_lanes(self, known: Array) -> Array:
        """Return the information on each piece of `index`, given that on the pieces of `distinct`."""
        return np.tile(known, self.lanes) if self.same else known

    def records(self, time: int) -> Array:
        """Return the record of each piece of `index`: its thread, combined with `time`, which is already shifted."""
        return self._threads() + time

    def unique(self, time: int) -> tuple[Any, Array | None, Array]:
        """Return pieces of `distinct`, and the records of the first and of the last lane at each of them.

        If it is known which lanes share pieces, each piece is returned once. Otherwise, the records of the first lanes
        are None.
        """
        threads = self._threads()
        if self.same:
            return self.distinct, threads[: self.each] + time, threads[-self.each :] + time
        sharing = None if self.alone else self.access.address.notes.get(self._sharing)
        if not sharing:
            return self.distinct, None, threads + time
        first, last = sharing
        return self.distinct[last], threads[first] + time, threads[last] + time

    @property
    def may_share(self) -> bool:
        """Whether lanes may share pieces, but it is not known which."""
        if self.alone or self.same or self.lanes == 1:
            return False
        return bool(self.access.address.notes.get(self._sharing, ()) == ())

    def find_sharing(self, table: Array, left: Array, remains: Array) -> Array | None:
        """Find out which lanes share pieces, and return the subscripts in `distinct` of each piece's last lane.

        `left` are the records that the lanes have left in a table, and `remains` says whose these are. The result is
        None if no lanes share pieces, or so few that the search is worthwhile only for another access relative to the
        same address.
        """
        notes, index, key = self.access.address.notes, self.distinct, self._sharing
        count = np.count_nonzero(remains)
        if count == len(index):
            notes[key] = None
        elif key not in notes and 2 * count > len(index):
            notes[key] = ()
        else:
            last = np.flatnonzero(remains)
            table[index[::-1]] = np.arange(len(index) - 1, -1, -1)
            notes[key] = table[index[last]], last
            table[index[last]] = left[last]
            return last
        return None

    @property
    def _sharing(self) -> tuple[str, int]:
        """The key of the information on lanes that share pieces, among the notes of an address.

        The value is the subscripts of the first and of the last lane at each piece, () if they are not known yet, or
        None if no lanes share pieces. All accesses with as many pieces per lane have the same.
        """
        return "sharing", self.each

    def _threads(self) -> Array:
        """Return the thread of each piece of `index`."""
        notes = self.group.notes
        if notes is None:
            notes = self.group.notes = {}
        key = "threads", self.each
        threads: Array | None = notes.get(key)
        if threads is None:
            chunk = self.group.chunk
            threads = self.group.lane_numbers + chunk.first * chunk.threads
            if self.each > 1:
                threads = np.repeat(threads, self.each)
            notes[key] = threads
        if self.access.positions is not None:
            threads = threads.reshape(-1, self.each)[self.access.positions].reshape(-1)
        return threads

    def position(self, piece: int) -> int:
        """Return the position in the group of the lane that touches a piece, given as a subscript of `index`."""
        lane = piece // self.each
        positions = self.access.positions
        return lane if positions is None else int(positions[lane])
