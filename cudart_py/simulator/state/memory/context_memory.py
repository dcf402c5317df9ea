"""Memory as the kernels of one context see it: the allocations that they may access, a heap, textures and surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from cuda.bindings.driver import CUlimit
from numpy.typing import NDArray

from . import table
from .address_space import space
from .allocations import HEAP, Allocation

if TYPE_CHECKING:
    from ...ptx.operations.surfaces import Surface
    from ...ptx.operations.textures import Texture
    from ..contexts import Context
    from .records.shadow import ShadowMemory


class ContextMemory:
    """The memory that the kernels of one context may access, with the interface that the PTX machine needs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._region = space.region
        self._extents: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._generation = -1
        self._heap_used = 0
        self.base = space.base
        self.bytes = space.bytes

    @property
    def generation(self) -> int:
        """Return a number that changes whenever the memory that kernels may access changes."""
        return table.generation()

    def extents(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sorted starts and ends of all allocations that the kernels may access."""
        if self._generation != table.generation() or self._extents is None:
            context = self._context
            ranges = [
                (allocation.address, allocation.address + allocation.size)
                for allocation in map(table.live.by_start.__getitem__, table.live.starts)
                if context.reaches(allocation)
            ]
            pairs = np.array(ranges, np.int64).reshape(-1, 2)
            self._extents = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
            self._generation = table.generation()
        return self._extents

    def describe(self, address: int) -> str:
        """Describe where an address is relative to the allocations."""
        return table.describe(address, self._context)

    def is_freed(self, address: int) -> bool:
        """Return whether an address is in an allocation that was freed."""
        return table.is_freed(address)

    def allocate(self, size: int) -> int:
        """Return the address for a kernel's malloc, 0 if the context's heap is exhausted or `size` is not positive."""
        limit = self._context.limits[CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value]
        if size <= 0 or self._heap_used + size > limit:
            return 0
        allocation = Allocation(self._region.open(size), size, HEAP, self._context)
        # It is live but not known, because the host's calls don't accept such addresses.
        table.begin_life(allocation)
        self._heap_used += size
        return allocation.address

    def release(self, address: int) -> bool:
        """Free memory from a kernel's malloc; return whether there was such an allocation."""
        allocation = table.live.by_start.get(address)
        if allocation is None or allocation.kind != HEAP or allocation.context is not self._context:
            return False
        self._heap_used -= allocation.size
        table.free(allocation)
        return True

    def shadow(self, start: int) -> ShadowMemory:
        """Return the shadow memory of the allocation that starts at an address."""
        return table.live.by_start[start].shadow

    def set_condition(self, handle: int, value: int) -> None:
        """Set the condition of a graph that a handle refers to; raise KeyError if there is none."""
        self._context.conditions[handle].value = value

    def texture(self, handle: int) -> Texture:
        """Return the texture object that a handle refers to; raise KeyError if there is none."""
        return self._context.textures[handle]

    def surface(self, handle: int) -> Surface:
        """Return the surface object that a handle refers to; raise KeyError if there is none."""
        return self._context.surfaces[handle]
