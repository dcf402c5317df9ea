"""The shadow table, which finds the shadow memory of the allocation that an access touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..ptx.syntax.instructions import Instruction
    from ..state.memory.records.shadow import ShadowMemory

Array = NDArray[Any]


class ShadowTable:
    """A lookup of shadow memory by address, which tries the last allocation of each instruction first."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._generation = -1
        self._known: dict[int, tuple[int, int, ShadowMemory]] = {}

    def find(self, site: Instruction, low: int, high: int) -> ShadowMemory | None:
        """Return the shadow memory of the allocation that contains the range of an access, or None if none does."""
        if self._generation != self._memory.generation:
            self._generation = self._memory.generation
            self._known.clear()
        known = self._known.get(id(site))
        if known is None or low < known[0] or high > known[1]:
            starts, ends = self._memory.extents()
            index = int(np.searchsorted(starts, low, "right")) - 1
            if index < 0 or high > ends[index]:
                return None
            start = int(starts[index])
            known = self._known[id(site)] = start, int(ends[index]), self._memory.shadow(start)
        return known[2]

    def owners(self, addresses: Array, size: int) -> Array | None:
        """Return the index of each access's allocation, or None if any access is outside all allocations."""
        starts, ends = self._memory.extents()
        found: Array = np.searchsorted(starts, addresses, "right") - 1
        if not len(starts) or ((found < 0) | (addresses > ends[found] - size)).any():
            return None
        return found
