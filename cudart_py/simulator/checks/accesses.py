"""Memory accesses and their footprints: the pieces of memory that each access touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
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


class Footprint:
    """The pieces of memory that one access touches.

    `index` is a slice or an array of indices of pieces of ``1 << shift`` bytes; the `each` pieces of a lane are
    adjacent in it. `alone` is true if no two lanes can share a piece. `origin` is the offset of piece 0.
    """

    __slots__ = ("access", "alone", "each", "group", "index", "lanes")

    def __init__(self, access: MemoryAccess, origin: int, shift: int) -> None:
        self.access = access
        self.group = access.group
        size, offset, positions = access.size, access.offset, access.positions
        self.each = max(1, size >> shift)
        self.lanes = access.group.n if positions is None else len(positions)
        places = access.address.places
        start = access.address.run_start(size) if size >> shift else -1
        self.alone = start >= 0
        self.index: Any
        if start >= 0:
            first = (start + offset - origin) >> shift
            self.index = slice(first, first + self.lanes * self.each)
            return
        pieces = (places + (offset - origin)) >> shift
        if pieces.__class__ is not ndarray:
            # All lanes touch the same pieces; a write leaves the record of the last lane.
            pieces = np.full(self.lanes, pieces)
        self.index = pieces if self.each == 1 else (pieces[:, None] + np.arange(self.each)).reshape(-1)

    def records(self, time: int) -> Array:
        """Return the record of each piece: its thread, combined with `time`, which is already shifted."""
        notes = self.group.notes
        if notes is None:
            notes = self.group.notes = {}
        key = "records", self.each
        threads: Array | None = notes.get(key)
        if threads is None:
            chunk = self.group.chunk
            threads = self.group.lane_numbers + chunk.first * chunk.threads
            if self.each > 1:
                threads = np.repeat(threads, self.each)
            notes[key] = threads
        if self.access.positions is not None:
            threads = threads.reshape(-1, self.each)[self.access.positions].reshape(-1)
        return threads + time

    def position(self, piece: int) -> int:
        """Return the position in the group of the lane that touches a piece, given as a subscript of `index`."""
        lane = piece // self.each
        positions = self.access.positions
        return lane if positions is None else int(positions[lane])
