"""The device memory that measured work allocates."""

from __future__ import annotations

from ...context.device import Device
from ...memory.pools import MemoryPool


class PeakMemory:
    """A context manager that finds the most memory that arrays take within its block, beyond what they took before.

    `nbytes` is set at the end: bytes of the device's current pool (CU_MEMPOOL_ATTR_USED_MEM_HIGH, which this resets).
    Memory that is allocated in other ways, for example by cuMemAlloc, is not included.
    """

    def __init__(self, device: Device) -> None:
        self._pool = MemoryPool.current(device)
        self._before = 0
        self.nbytes = 0

    def __enter__(self) -> PeakMemory:
        self._before = self._pool.used
        self._pool.reset_high()
        return self

    def __exit__(self, *exception: object) -> None:
        # Arrays from before the block may be freed within it.
        self.nbytes = max(0, self._pool.used_high - self._before)
