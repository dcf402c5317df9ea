"""Pools of other processes: this process imports their allocations one by one, and allocates nothing from them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from cuda.bindings.driver import CU_IPC_HANDLE_SIZE, CUresult

from ..devices import find_device
from ..errors import StatusError
from . import sharing, table
from .address_space import space
from .allocations import Allocation
from .pools import FreeBlock, Pool
from .sharing import Handle

if TYPE_CHECKING:
    from ..contexts import Context
    from ..queue.stream import Stream

_FILE = "cudart_py memory pool"


def export(pool: Pool) -> int:
    """Return a new file descriptor, from which other processes learn which pool it is; raise OSError if there is none.

    It is closed by the program.
    """
    descriptor = os.memfd_create(_FILE, os.MFD_CLOEXEC)
    try:
        os.pwrite(descriptor, Handle.own(0, pool.device.ordinal, pool=pool.handle).data, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class ImportedPool(Pool):
    """A pool of another process. The memory counts as used by the device of that process."""

    def __init__(self, source: Handle) -> None:
        super().__init__(find_device(source.device))
        self._source = source
        # The handle of each imported allocation, and the address at which its file begins, keyed by its address.
        self._imported: dict[int, tuple[Handle, int]] = {}

    @classmethod
    def of(cls, descriptor: int) -> ImportedPool:
        """Return the pool that a descriptor from `export` refers to; raise OSError or ValueError if it is none."""
        if _FILE not in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise ValueError("the descriptor does not refer to a pool")
        return cls(Handle.parsed(os.pread(descriptor, CU_IPC_HANDLE_SIZE, 0)))

    def allocate(self, size: int, stream: Stream, *, moves: bool = False) -> NoReturn:
        """Raise CUDA_ERROR_INVALID_VALUE: only the process that created the pool allocates from it."""
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)

    def open(self, handle: Handle, context: Context) -> Allocation:
        """Return an allocation of the pool, at an address in this process; the same again until it is freed.

        Raises OSError or ValueError if it no longer exists or is from another pool, and MemoryError if there is no
        room.
        """
        source = self._source
        if (handle.process, handle.started, handle.pool) != (source.process, source.started, source.pool):
            raise ValueError("the allocation is not from this pool")
        for address, (imported, _) in self._imported.items():
            known = table.known.by_start.get(address)
            if imported == handle and known is not None:
                return known
        start = sharing.map_shared(handle)
        allocation = Allocation(start + handle.offset, handle.size, self.kind, context, pool=self, device=self.device)
        allocation.shadow.initialised = True  # the other process may write it, which no check sees
        table.enter(allocation)
        self._imported[allocation.address] = handle, start
        self.capacities[allocation.address] = allocation.reserved
        self.used += allocation.reserved
        self.reserved += allocation.reserved
        self.used_high, self.reserved_high = max(self.used_high, self.used), max(self.reserved_high, self.reserved)
        return allocation

    def _close(self, block: FreeBlock) -> None:
        _, start = self._imported.pop(block.address)
        space.region.give_back(start)
