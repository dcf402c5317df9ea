"""Find the pieces of memory that an access touches, as a slice where lanes lie side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .ptx.addresses import Address
    from .ptx.groups import Group

__all__ = ["Touched"]

Array = NDArray[Any]
ndarray = np.ndarray


class Touched:
    """Hold the pieces that one access by all lanes of a group, or by those at `positions`, touches.

    `index` is a slice or an array over pieces of ``1 << shift`` bytes, each lane's `each` pieces side by side; `alone`
    says that no two lanes share one. `origin` is the place of piece 0.
    """

    __slots__ = ("_positions", "alone", "each", "group", "index", "lanes")

    def __init__(
        self, group: Group, address: Address, offset: int, size: int, origin: int, positions: Array | None, shift: int
    ) -> None:
        self.group = group
        self._positions = positions
        self.each = max(1, size >> shift)
        self.lanes = group.n if positions is None else len(positions)
        places = address.places
        start = address.run_start(size) if size >> shift else -1
        self.alone = start >= 0
        self.index: Any
        if start >= 0:
            first = (start + offset - origin) >> shift
            self.index = slice(first, first + self.lanes * self.each)
            return
        pieces = (places + (offset - origin)) >> shift
        if pieces.__class__ is not ndarray:
            # All lanes touch the same ones: one of each will do for looking, and writing finds the last lane.
            pieces = np.full(self.lanes, pieces)
        self.index = pieces if self.each == 1 else (pieces[:, None] + np.arange(self.each)).reshape(-1)

    def records(self, time: int) -> Array:
        """Give the record of each piece: the thread and the time."""
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
        if self._positions is not None:
            threads = threads.reshape(-1, self.each)[self._positions].reshape(-1)
        return threads + time

    def position(self, piece: int) -> int:
        """Give the position in the group of the lane that a piece of `index` belongs to."""
        lane = piece // self.each
        return lane if self._positions is None else int(self._positions[lane])
