"""The places in memory that a register's addresses refer to, summarised once for all accesses relative to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..groups import Group
    from .spaces import Space

Array = NDArray[Any]


class Address:
    """Byte offsets in one space for the lanes of a group.

    `places` contains offsets from the start of the space's bytes: an int64 array, or an int if all lanes share the
    offset. `low` and `high` bound the addresses as the kernel sees them, and `bits` is the bitwise OR of these
    addresses. A place exceeds its address by the lane's base in the space, because each block has its own shared memory
    and each lane its own local memory.
    """

    __slots__ = ("_indices", "_runs", "base", "bits", "group", "high", "low", "notes", "places", "space")

    def __init__(self, space: Space, group: Group, places: Any, low: int, high: int, bits: int) -> None:
        self.space = space
        self.group = group
        self.places = places
        self.low = low
        self.high = high
        self.bits = bits
        # The lanes' bases if they differ from the group's own bases in this space, else None.
        self.base: Any = None
        # An observer's records about these places.
        self.notes: dict[Any, Any] = {}
        self._indices: dict[int, Any] = {}
        self._runs: dict[int, int] = {}

    def index(self, shift: int) -> Any:
        """Return the places in units of ``1 << shift`` bytes."""
        index = self._indices.get(shift)
        if index is None:
            index = self._indices[shift] = self.places >> shift if shift else self.places
        return index

    def select(self, positions: Array) -> Address:
        """Return the Address of the lanes at `positions`."""
        places = self.places
        if places.__class__ is not np.ndarray:
            return self
        # The bounds of all lanes may be too wide for a part, so the part's bounds are computed from its own places.
        chosen = places.take(positions)
        shift = self.low - int(places.min())
        low, high = int(chosen.min()) + shift, int(chosen.max()) + shift
        part = Address(self.space, self.group, chosen, low, high, self.bits)
        if self.base is not None:
            part.base = self.base.take(positions)
        return part

    def where(self, wanted: Any) -> Address | Mixed:
        """Return the addresses of the lanes for which `wanted` (one value, or one per lane) is not zero."""
        positions = np.flatnonzero(np.broadcast_to(wanted, self.group.n))
        if len(positions) == self.group.n:
            return self
        return Mixed(self.group, [(positions, self.select(positions))] if len(positions) else [])

    def moved(self, positions: Array, distance: Array) -> Address:
        """Return the Address of the places `distance` bytes after the places of the lanes at `positions`."""
        high = self.high + int(distance.max())
        part = Address(self.space, self.group, self.places.take(positions) + distance, self.low, high, self.bits)
        if self.base is not None:
            part.base = self.base.take(positions)
        return part

    def run_start(self, stride: int) -> int:
        """Return the first place if the places increase by `stride` from lane to lane, else -1."""
        start = self._runs.get(stride)
        if start is None:
            start = self._runs[stride] = self._find_run(stride)
        return start

    def _find_run(self, stride: int) -> int:
        places = self.places
        if places.__class__ is not np.ndarray:
            return -1
        n = len(places)
        first = int(places[0])
        if int(places[-1]) - first != (n - 1) * stride or n < 4:
            return -1
        step = np.subtract(places[1:], places[:-1])
        return first if (step == stride).all() else -1


class Mixed:
    """Generic addresses in several spaces: for each space, the positions of the lanes and their Address."""

    __slots__ = ("group", "parts")

    def __init__(self, group: Group, parts: list[tuple[Array, Address]]) -> None:
        self.group = group
        self.parts = parts
