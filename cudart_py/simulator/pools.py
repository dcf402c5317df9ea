"""Pools: stream-ordered allocation.

A block given back with cuMemFreeAsync is free for the host at once, for the device when its stream gets there. Its
address is given again only by the driver's rules: to the same stream, to a stream that waits for the free, or when the
free has happened; and it is given up to the device at a synchronisation, down to the pool's release threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUmemAccess_flags,
    CUmemAllocationHandleType,
    CUmemAllocationType,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)

from . import memory, work
from .contexts import current, primary
from .devices import Device, find_device
from .errors import StatusError, entry, number
from .handles import Handles
from .memory import Allocation
from .work import Stream, Work

if TYPE_CHECKING:
    from .contexts import Context

__all__ = [
    "Pool",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetMemPool",
    "cuDeviceSetMemPool",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolGetAccess",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "current_pool",
    "default_pool",
    "pools",
]

_FOLLOW = CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES.value
_OPPORTUNISTIC = CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC.value
_INTERNAL = CUmemPool_attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES.value
_THRESHOLD = CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD.value
_RESERVED = CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT.value
_RESERVED_HIGH = CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH.value
_USED = CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT.value
_USED_HIGH = CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH.value
_GRANULARITY = 512


class Block:
    """A range that a pool holds and nobody uses: given back in `stream`, at the piece of work `freed`."""

    __slots__ = ("address", "capacity", "freed", "stream")

    def __init__(self, address: int, capacity: int, stream: Stream | None, freed: Work | None) -> None:
        self.address = address
        self.capacity = capacity
        self.stream = stream
        self.freed = freed

    @property
    def reached(self) -> bool:
        """Tell whether the device has got to the free."""
        return self.freed is None or self.freed.done


class Pool:
    """A pool of a device's memory; `limit` is its greatest size in bytes, 0 for the device's own."""

    def __init__(self, device: Device, limit: int = 0) -> None:
        self.device = device
        self.limit = limit
        self.handle = 0
        self.threshold = 0
        self.reuse = {_FOLLOW: 1, _OPPORTUNISTIC: 1, _INTERNAL: 1}
        self.blocks: list[Block] = []
        self.capacities: dict[int, int] = {}  # address -> capacity of what is in use
        self.reserved = self.reserved_high = 0
        self.used = self.used_high = 0
        self.access: set[Device] = set()
        self.destroyed = False

    def allocate(self, size: int, stream: Stream) -> tuple[Allocation, bool]:
        """Return an allocation of `size` bytes for a stream, a block that was given back where the rules allow.

        The host knows it from now on. The second value tells whether the device may have it at once too;
        otherwise work that is still to come uses the bytes as what was freed.
        """
        capacity = -(-size // _GRANULARITY) * _GRANULARITY
        block = self._reusable(capacity, stream) if self.blocks else None
        if block is None:
            block = self._new_block(capacity, stream)
        else:
            self.blocks.remove(block)
        allocation = Allocation(block.address, size, memory.DEVICE, stream.context, pool=self, device=self.device)
        allocation.reserved = block.capacity
        self.capacities[block.address] = block.capacity
        memory.known.add(allocation)
        self.used += block.capacity
        self.used_high = max(self.used_high, self.used)
        return allocation, block.reached

    def _reusable(self, capacity: int, stream: Stream) -> Block | None:
        # Twice the size at most: a large block is worth more than the bytes it would save.
        fitting = [block for block in self.blocks if capacity <= block.capacity <= 2 * capacity]
        fitting.sort(key=lambda block: block.capacity)
        for block in fitting:
            if block.stream is stream or (block.reached and self.reuse[_OPPORTUNISTIC]):
                return block
        if self.reuse[_FOLLOW] and stream.tail is not None and fitting:
            before = work.predecessors(stream.tail)
            for block in fitting:
                if block.reached or block.freed in before:
                    return block
        return None

    def _new_block(self, capacity: int, stream: Stream) -> Block:
        if self.limit and self.reserved + capacity > self.limit:
            self._make_room(capacity, stream, self.limit - self.reserved)
            if self.reserved + capacity > self.limit:
                raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        if self.device.used + capacity > self.device.total:
            for pool in pools_of(self.device):
                pool._make_room(capacity, stream, self.device.total - self.device.used)
        self.device.take(capacity)
        try:
            address = memory.region().open(capacity)
        except MemoryError:
            self.device.give(capacity)
            raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
        self.reserved += capacity
        self.reserved_high = max(self.reserved_high, self.reserved)
        return Block(address, capacity, None, None)

    def _make_room(self, capacity: int, stream: Stream, room: int) -> None:
        # Blocks in reach go first; then the driver waits for the frees that its streams have still to come to.
        if room < capacity:
            self.trim(0)
        waiting = [block.freed for block in self.blocks if block.freed is not None and not block.reached]
        if waiting and self.reuse[_INTERNAL] and not work.runner.running and stream.capture is None:
            work.complete_work(waiting)
            self.trim(0)

    def give_back(self, allocation: Allocation, stream: Stream | None, freed: Work | None) -> None:
        """Take a block back that the host has given up."""
        capacity = self.capacities.pop(allocation.address)
        self.used -= capacity
        self.blocks.append(Block(allocation.address, capacity, stream, freed))

    def trim(self, keep: int) -> None:
        """Give blocks that the device is done with up to the device, oldest first, until `keep` bytes stay."""
        kept = []
        for block in self.blocks:
            if self.reserved > keep and block.reached:
                memory.region().close(block.address, block.capacity)
                self.device.give(block.capacity)
                self.reserved -= block.capacity
            else:
                kept.append(block)
        self.blocks[:] = kept

    def release_excess(self) -> None:
        """Give up what lies idle above the release threshold."""
        if self.blocks and self.reserved > self.threshold:
            self.trim(self.threshold)
        if self.destroyed and not self.reserved:
            primary(self.device).pools.pop(self.handle, None)


pools: Handles[Pool] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def pools_of(device: Device) -> list[Pool]:
    """Return a device's pools."""
    return [pool for pool in pools if pool.device is device]


def _enter(pool: Pool) -> Pool:
    pool.handle = pools.add(pool)
    primary(pool.device).pools[pool.handle] = pool
    return pool


def default_pool(device: Device) -> Pool:
    """Return the pool that a device has from the start."""
    if device.default_pool is None:
        device.default_pool = _enter(Pool(device))
    return device.default_pool


def current_pool(device: Device) -> Pool:
    """Return the pool that cuMemAllocAsync takes from."""
    return device.current_pool or default_pool(device)


def free_now(allocation: Allocation) -> None:
    """Give a pool's allocation back after its context's work is done."""
    memory.forget(allocation)
    if allocation.pool is not None:
        allocation.pool.give_back(allocation, None, None)
        allocation.pool.release_excess()


@entry(values=1)
def cuDeviceGetDefaultMemPool(dev: Any) -> Any:
    """Return the pool that a device has from the start, as cuDeviceGetDefaultMemPool."""
    return CUmemoryPool(default_pool(find_device(dev)).handle)


@entry(values=1)
def cuDeviceGetMemPool(dev: Any) -> Any:
    """Return the pool that cuMemAllocAsync takes from, as cuDeviceGetMemPool."""
    return CUmemoryPool(current_pool(find_device(dev)).handle)


@entry()
def cuDeviceSetMemPool(dev: Any, pool: Any) -> None:
    """Choose the pool that cuMemAllocAsync takes from, as cuDeviceSetMemPool."""
    device, chosen = find_device(dev), pools.find(pool)
    if chosen.device is not device:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    device.current_pool = chosen


@entry(values=1)
def cuMemPoolGetAttribute(pool: Any, attr: Any) -> Any:
    """Return a pool's attribute, byte counts as cuuint64_t, as cuMemPoolGetAttribute."""
    found, key = pools.find(pool), number(attr)
    if key in found.reuse:
        return found.reuse[key]
    counts = {
        _THRESHOLD: found.threshold,
        _RESERVED: found.reserved,
        _RESERVED_HIGH: found.reserved_high,
        _USED: found.used,
        _USED_HIGH: found.used_high,
    }
    if key not in counts:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return cuuint64_t(counts[key])


@entry()
def cuMemPoolSetAttribute(pool: Any, attr: Any, value: Any) -> None:
    """Set a pool's attribute; the high-water marks can only be put back to 0, as cuMemPoolSetAttribute."""
    found, key, wanted = pools.find(pool), number(attr), number(value)
    if key in found.reuse:
        found.reuse[key] = int(bool(wanted))
    elif key == _THRESHOLD and wanted >= 0:
        found.threshold = wanted
    elif key == _RESERVED_HIGH and not wanted:
        found.reserved_high = found.reserved
    elif key == _USED_HIGH and not wanted:
        found.used_high = found.used
    else:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry()
def cuMemPoolTrimTo(pool: Any, minBytesToKeep: Any) -> None:
    """Give up what lies idle until so many bytes stay, as cuMemPoolTrimTo."""
    pools.find(pool).trim(number(minBytesToKeep))


@entry()
def cuMemPoolSetAccess(pool: Any, map: Any, count: Any) -> None:
    """Say which other devices may touch a pool's memory, as cuMemPoolSetAccess."""
    found, descriptions = pools.find(pool), list(map or ())
    if number(count) > len(descriptions):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    given, taken = [], []
    for description in descriptions[: number(count)]:
        device = _device_at(description.location)
        if description.flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
            given.append(device)
        elif description.flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE and device is not found.device:
            taken.append(device)
        else:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    found.access.update(given)
    found.access.difference_update(taken)
    memory.state.generation += 1


@entry(values=1)
def cuMemPoolGetAccess(memPool: Any, location: Any) -> Any:
    """Return what access a device has to a pool's memory, as cuMemPoolGetAccess."""
    found, device = pools.find(memPool), _device_at(location)
    flags = CUmemAccess_flags
    if device is found.device or device in found.access:
        return flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return flags.CU_MEM_ACCESS_FLAGS_PROT_NONE


def _device_at(location: Any) -> Device:
    if location is None or location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return find_device(location.id)


@entry(values=1)
def cuMemPoolCreate(poolProps: Any) -> Any:
    """Make a pool of a device's pinned memory, as cuMemPoolCreate."""
    current()
    if poolProps is None or poolProps.allocType != CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if poolProps.location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    if poolProps.handleTypes != CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    return CUmemoryPool(_enter(Pool(find_device(poolProps.location.id), poolProps.maxSize)).handle)


@entry()
def cuMemPoolDestroy(pool: Any) -> None:
    """End a pool; what it has given out stays until it is freed, as cuMemPoolDestroy."""
    found = pools.find(pool)
    device = found.device
    if found is device.default_pool:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if device.current_pool is found:
        device.current_pool = None
    pools.remove(found.handle)
    found.destroyed = True
    found.threshold = 0
    found.release_excess()


def end_context(context: Context) -> None:
    """Drop all that the pools of a context's device hold."""
    for allocation in list(memory.known.by_start.values()):
        if allocation.pool is not None and allocation.device is context.device:
            memory.forget(allocation)
            allocation.pool.give_back(allocation, None, None)
    # What the host had given up and the device hadn't come to.
    for allocation in list(memory.live.by_start.values()):
        if allocation.pool is not None and allocation.device is context.device:
            memory.end_life(allocation)
    for pool in list(context.pools.values()):
        for block in pool.blocks:
            block.freed = None
        pool.trim(0)
        pools.remove(pool.handle)
    context.device.default_pool = context.device.current_pool = None
