"""The places in memory that a register's addresses refer to, summarised once for all accesses relative to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..groups import Group
    from .spaces import Space

Array = NDArray[Any]
ndarray = np.ndarray


class Address:
    """Byte offsets in one space for the lanes of a group.

    `seen` are the addresses as the kernel sees them: an array, or a scalar if all lanes share the address. `places` are
    offsets from the start of the space's bytes, as int64: `seen` plus the lanes' `base` in the space, because each
    block has its own shared memory and each lane its own local memory. `low` and `high` bound the addresses, and `bits`
    is their bitwise OR.
    """

    __slots__ = ("_indices", "_runs", "base", "bits", "group", "high", "low", "notes", "places", "space")

    def __init__(self, space: Space, group: Group, seen: Any, base: Any) -> None:
        self.space = space
        self.group = group
        self.base = base
        if seen.__class__ is ndarray:
            seen = seen.view(np.int64) if seen.itemsize == 8 else seen.astype(np.int64)
            self.low, self.high = (int(seen.min()), int(seen.max())) if len(seen) else (0, 0)
            self.bits = int(np.bitwise_or.reduce(seen))
        else:
            seen = int(seen)
            if seen >= 1 << 63:
                seen -= 1 << 64
            self.low = self.high = self.bits = seen
        self.places = seen + base
        # An observer's records about these places.
        self.notes: dict[Any, Any] = {}
        self._indices: dict[int, Any] = {}
        self._runs: dict[int, int] = {}

    @property
    def seen(self) -> Any:
        """Return the addresses as the kernel sees them."""
        return self.places - self.base

    @property
    def parts(self) -> list[tuple[Array | None, Address]]:
        """Return the address as its only part; None means all lanes."""
        return [(None, self)]

    def index(self, shift: int) -> Any:
        """Return the places in units of ``1 << shift`` bytes."""
        index = self._indices.get(shift)
        if index is None:
            index = self._indices[shift] = self.places >> shift if shift else self.places
        return index

    def pieces(self, distance: int, shift: int) -> Any:
        """Return, in units of ``1 << shift`` bytes, the places at a distance in bytes from these."""
        if distance & ((1 << shift) - 1):
            return (self.places + distance) >> shift
        return self.index(shift) + (distance >> shift) if distance else self.index(shift)

    def select(self, positions: Array) -> Address:
        """Return the Address of the lanes at `positions`."""
        return self.moved(positions, 0) if self.places.__class__ is ndarray else self

    def where(self, wanted: Any) -> Address | Mixed:
        """Return the addresses of the lanes for which `wanted` (one value, or one per lane) is not zero."""
        positions = np.flatnonzero(np.broadcast_to(wanted, self.group.n))
        if len(positions) == self.group.n:
            return self
        return Mixed(self.group, [(positions, self.select(positions))] if len(positions) else [])

    def moved(self, positions: Array, distance: Any) -> Address:
        """Return the Address of the places `distance` bytes after the places of the lanes at `positions`."""
        base = self.base.take(positions) if self.base.__class__ is ndarray else self.base
        return Address(self.space, self.group, self.places.take(positions) + distance - base, base)

    def run_start(self, stride: int) -> int:
        """Return the first place if the places increase by `stride` from lane to lane, else -1."""
        start = self._runs.get(stride)
        if start is None:
            start = self._runs[stride] = self._find_run(stride)
        return start

    def _find_run(self, stride: int) -> int:
        places = self.places
        if places.__class__ is not ndarray:
            return -1
        n = len(places)
        first = int(places[0])
        if int(places[-1]) - first != (n - 1) * stride or n < 4:
            return -1
        step = np.subtract(places[1:], places[:-1])
        return first if (step == stride).all() else -1


@dataclass(frozen=True, slots=True)
class Mixed:
    """Generic addresses in several spaces: for each space, the positions of the lanes and their Address."""

    group: Group
    parts: list[tuple[Array, Address]]
