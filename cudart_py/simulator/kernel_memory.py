"""Memory as the kernels of one context see it: what they may touch, a heap of their own, and the textures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings.driver import CUlimit
from numpy.typing import NDArray

from . import memory

if TYPE_CHECKING:
    from .contexts import Context
    from .shadow import Shadow

__all__ = ["ContextMemory"]


class ContextMemory:
    """What the kernels of one context may touch: the memory that the PTX machine is given."""

    def __init__(self, context: Context) -> None:
        memory.region()
        self._context = context
        self._extents: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._generation = -1
        self._heap_used = 0
        self.base = memory.state.base
        self.bytes = memory.state.bytes

    @property
    def generation(self) -> int:
        """Return a number that changes at every allocation and free."""
        return memory.state.generation

    def extents(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sorted starts and ends of all that the kernels may touch."""
        if self._generation != memory.state.generation or self._extents is None:
            context = self._context
            ranges = [
                (allocation.address, allocation.address + allocation.size)
                for allocation in map(memory.live.by_start.__getitem__, memory.live.starts)
                if context.reaches(allocation)
            ]
            table = np.array(ranges, np.int64).reshape(-1, 2)
            self._extents = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
            self._generation = memory.state.generation
        return self._extents

    def describe(self, address: int) -> str:
        """Say where an address lies among the allocations."""
        return memory.describe(address, self._context)

    def allocate(self, size: int) -> int:
        """Serve a kernel's malloc: an address, 0 when the context's heap is exhausted."""
        limit = self._context.limits[CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value]
        if size <= 0 or self._heap_used + size > limit:
            return 0
        allocation = memory.Allocation(memory.region().open(size), size, memory.HEAP, self._context)
        # Only kernels know it: the host's calls don't take such addresses.
        memory.live.add(allocation)
        memory.state.generation += 1
        self._heap_used += size
        return allocation.address

    def release(self, address: int) -> bool:
        """Serve a kernel's free; return whether a malloc had given the address."""
        allocation = memory.live.by_start.get(address)
        if allocation is None or allocation.kind != memory.HEAP or allocation.context is not self._context:
            return False
        self._heap_used -= allocation.size
        memory.free(allocation)
        return True

    def shadow(self, start: int) -> Shadow:
        """Return the records of the allocation that starts at an address."""
        return memory.live.by_start[start].shadow

    def texture(self, handle: int) -> Any:
        """Return the texture object of a handle; raise KeyError when there is none."""
        return self._context.textures[handle]
