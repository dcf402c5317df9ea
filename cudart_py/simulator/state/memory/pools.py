"""Pools: memory of a device from which stream-ordered allocations are taken.

A block that cuMemFreeAsync frees is free for the host at once, and for the device when its stream reaches the free. It
is reused only under the driver's rules: in the same stream, in a stream that waits for the free, or after the device
has reached the free. A synchronization releases free blocks to the device, down to the pool's release threshold.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUmemLocationType, CUmemPool_attribute, CUresult

from ..devices import Device
from ..errors import StatusError
from ..handles import Handles
from ..queue.scheduling import complete_work, predecessors
from ..queue.stream import Stream
from ..queue.work import Work
from . import table
from .address_space import space
from .allocations import DEVICE, Allocation, rounded

if TYPE_CHECKING:
    from ..contexts import Context

_FOLLOW = CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES.value
_OPPORTUNISTIC = CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC.value
_INTERNAL = CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES.value


# The type of a location (CUmemLocationType) and its number, 0 for types that need none.
Location = tuple[int, int]


class FreeBlock:
    """An unused range of a pool's memory, which the piece of work `freed` freed in `stream`."""

    __slots__ = ("address", "capacity", "freed", "stream")

    def __init__(self, address: int, capacity: int, stream: Stream | None, freed: Work | None) -> None:
        self.address = address
        self.capacity = capacity
        self.stream = stream
        self.freed = freed

    @property
    def reached(self) -> bool:
        """Return whether the device has reached the free."""
        return self.freed is None or self.freed.done


class Pool:
    """A pool of memory; `limit` is its maximum size in bytes, 0 for no limit but the device's memory.

    `kind` is that of its allocations. Pools of pinned memory belong to no device on a GPU; here, a device frees them.
    `shareable` says which types of handles for other processes the program may request, as a CUmemAllocationHandleType.
    `location` is the device by default. The driver creates a pool that `is_default`, and programs cannot destroy it.
    `outstanding` says whether the host may free the pool's allocations.
    """

    outstanding = True

    def __init__(
        self,
        device: Device,
        limit: int = 0,
        kind: str = DEVICE,
        shareable: int = 0,
        location: Location | None = None,
        *,
        is_default: bool = False,
    ) -> None:
        self.device = device
        self.limit = limit
        self.kind = kind
        self.shareable = shareable
        self.location = location or (CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE.value, device.ordinal)
        self.is_default = is_default
        self.handle = 0
        self.threshold = 0
        self.reuse = {_FOLLOW: 1, _OPPORTUNISTIC: 1, _INTERNAL: 1}
        self.blocks: list[FreeBlock] = []
        # The former addresses of blocks, with the bytes that queued work still uses.
        self._left: list[FreeBlock] = []
        self.capacities: dict[int, int] = {}  # address -> capacity of each block in use
        self.reserved = self.reserved_high = 0
        self.used = self.used_high = 0
        self.access: set[Device] = set()
        self.destroyed = False

    def allocate(self, size: int, stream: Stream, *, moves: bool = False) -> tuple[Allocation, bool]:
        """Return an allocation of `size` bytes for a stream, in a freed block if the rules allow that.

        With `moves`, a freed block of device memory gets new addresses if possible, so that pointers to the freed
        allocation stay invalid. The host may use the allocation in calls from now on. The second value says whether the
        device may use it at once, too; if not, work that is still queued uses the bytes as the freed allocation. Raises
        CUDA_ERROR_OUT_OF_MEMORY if the pool or the device has no room.
        """
        capacity = rounded(size)
        block = self._reusable(capacity, stream) if self.blocks else None
        if block is None:
            block = self._new_block(capacity, stream)
        elif moves and self.kind == DEVICE:
            self._move(block)
        allocation = Allocation(
            block.address, size, self.kind, stream.context, pool=self, device=self.device, stream=stream
        )
        allocation.reserved = block.capacity
        table.known.add(allocation)
        try:
            self.capacities[block.address] = block.capacity
        except MemoryError:
            table.known.remove(allocation)
            raise
        # From here on, the memory on the host is no longer needed. If it runs out before, the block is still free.
        self.blocks.remove(block)
        self.used += block.capacity
        self.used_high = max(self.used_high, self.used)
        return allocation, block.reached

    def _reusable(self, capacity: int, stream: Stream) -> FreeBlock | None:
        # Blocks of at most twice the size, so that large blocks are kept for large allocations.
        fitting = [block for block in self.blocks if capacity <= block.capacity <= 2 * capacity]
        fitting.sort(key=lambda block: block.capacity)
        for block in fitting:
            if block.stream is stream or (block.reached and self.reuse[_OPPORTUNISTIC]):
                return block
        if self.reuse[_FOLLOW] and stream.tail is not None and fitting:
            before = predecessors(stream.tail)
            for block in fitting:
                if block.reached or block.freed in before:
                    return block
        return None

    def _move(self, block: FreeBlock) -> None:
        """Give a block new addresses, and drop the bytes at the old ones when the device has reached the free."""
        try:
            address = space.region.open(block.capacity)
        except MemoryError:
            return
        self._left.append(FreeBlock(block.address, block.capacity, block.stream, block.freed))
        block.address = address
        self._close_left()

    def reach_frees(self) -> None:
        """Count all frees as reached by the device, because its work has been dropped."""
        for block in (*self.blocks, *self._left):
            block.freed = None
        self._close_left()

    def _close_left(self) -> None:
        for left in self._left:
            if left.reached:
                space.region.close(left.address, left.capacity)
        self._left = [left for left in self._left if not left.reached]

    def _new_block(self, capacity: int, stream: Stream) -> FreeBlock:
        if self.limit and self.reserved + capacity > self.limit:
            self._make_room(capacity, stream, self.limit - self.reserved)
            if self.reserved + capacity > self.limit:
                raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        if self.kind == DEVICE and self.device.used + capacity > self.device.total:
            for pool in pools_of(self.device):
                pool._make_room(capacity, stream, self.device.total - self.device.used)
        block = FreeBlock(0, capacity, None, None)
        if self.kind == DEVICE:
            self.device.take(capacity)
        try:
            block.address = space.region.open(capacity)
            self.blocks.append(block)
        except MemoryError:
            if block.address:
                space.region.close(block.address, capacity)
            self._give(capacity)
            raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
        self.reserved += capacity
        self.reserved_high = max(self.reserved_high, self.reserved)
        return block

    def _close(self, block: FreeBlock) -> None:
        space.region.close(block.address, block.capacity)
        self._give(block.capacity)

    def _give(self, capacity: int) -> None:
        if self.kind == DEVICE:
            self.device.give(capacity)

    def _make_room(self, capacity: int, stream: Stream, room: int) -> None:
        # First release the blocks whose free the device has reached; then wait for the frees that are still queued.
        if room < capacity:
            self.trim(0)
        waiting = [block.freed for block in self.blocks if block.freed is not None and not block.reached]
        if waiting and self.reuse[_INTERNAL] and stream.capture is None:
            complete_work(waiting)
            self.trim(0)

    def give_back(self, allocation: Allocation, stream: Stream | None, freed: Work | None) -> None:
        """Turn the block of an allocation that the host has freed into a free block."""
        capacity = self.capacities[allocation.address]
        self.blocks.append(FreeBlock(allocation.address, capacity, stream, freed))
        del self.capacities[allocation.address]
        self.used -= capacity

    def leave(self, allocation: Allocation) -> None:
        """Forget the block of an allocation, whose bytes remain the host's."""
        capacity = self.capacities.pop(allocation.address)
        self.used -= capacity
        self.reserved -= capacity
        self._give(capacity)

    def trim(self, keep: int) -> None:
        """Release free blocks whose free the device has reached, oldest first, down to `keep` reserved bytes."""
        kept = []
        for block in self.blocks:
            if self.reserved > keep and block.reached:
                self._close(block)
                self.reserved -= block.capacity
            else:
                kept.append(block)
        self.blocks[:] = kept

    def release_excess(self) -> None:
        """Release free memory above the release threshold."""
        if self._left:
            self._close_left()
        if self.blocks and self.reserved > self.threshold:
            self.trim(self.threshold)
        if self.destroyed and not self.reserved:
            self.device.pools.pop(self.handle, None)


pools: Handles[Pool] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def pools_of(device: Device) -> list[Pool]:
    """Return a device's pools."""
    return [pool for pool in pools if pool.device is device]


def enter_pool(pool: Pool) -> Pool:
    """Add a pool to the pools of its device, under a new handle; return it."""
    pool.handle = pools.add(pool)
    pool.device.pools[pool.handle] = pool
    return pool


def default_pool(device: Device) -> Pool:
    """Return a device's default pool, which the first call creates."""
    if device.default_pool is None:
        device.default_pool = enter_pool(Pool(device, is_default=True))
    return device.default_pool


def current_pool(device: Device) -> Pool:
    """Return the pool from which cuMemAllocAsync allocates."""
    return device.current_pool or default_pool(device)


def free_now(allocation: Allocation) -> None:
    """Free a pool's allocation at once, because all work of its context is done."""
    table.forget(allocation)
    if allocation.pool is not None:
        allocation.pool.give_back(allocation, None, None)
        allocation.pool.release_excess()


def leave_context(context: Context) -> None:
    """Apply the effects that a context's dropped work would have had on its device's pools.

    The memory of pools belongs to no context, so it outlives the contexts that programs create.
    """
    live, known = table.live.by_start, table.known.by_start
    for allocation in {*live.values(), *known.values()}:
        if allocation.pool is None or allocation.context is not context:
            continue
        if known.get(allocation.address) is not allocation:
            table.end_life(allocation)
        elif live.get(allocation.address) is not allocation:
            table.begin_life(allocation)


def end_context(context: Context, in_use: Collection[int] = ()) -> None:
    """Drop the pools of a context's device and everything in them.

    The host may continue to use host memory at the addresses in `in_use`, until `table.drop_bytes`.
    """
    for allocation in list(table.known.by_start.values()):
        if allocation.pool is None or allocation.device is not context.device:
            continue
        if allocation.on_host and allocation.address in in_use:
            table.keep_bytes(allocation)
            allocation.pool.leave(allocation)
        else:
            table.forget(allocation)
            allocation.pool.give_back(allocation, None, None)
    # Allocations that the host has freed, but whose free the device has not reached.
    for allocation in list(table.live.by_start.values()):
        if allocation.pool is not None and allocation.device is context.device:
            table.end_life(allocation)
    for pool in list(context.device.pools.values()):
        pool.reach_frees()
        pool.trim(0)
        pools.remove(pool.handle)
    context.device.pools.clear()
    context.device.default_pool = context.device.current_pool = None
