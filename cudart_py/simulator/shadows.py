"""Find the allocations that accesses go to, each with its history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .ptx.instructions import Instruction
    from .shadow import Shadow

__all__ = ["Shadows"]

Array = NDArray[Any]


class Shadows:
    """Look up allocations, each instruction's last one first."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._generation = -1
        self._known: dict[int, tuple[int, int, Shadow]] = {}

    def find(self, site: Instruction, low: int, high: int) -> Shadow | None:
        """Give the shadow of the allocation that holds a range that an instruction touches, None if not one does."""
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
        """Give the number of the allocation that each of some accesses goes to, None if one goes astray."""
        starts, ends = self._memory.extents()
        found: Array = np.searchsorted(starts, addresses, "right") - 1
        if not len(starts) or ((found < 0) | (addresses + size > ends[found])).any():
            return None
        return found
