"""Run work in a stream while an array persists in the L2 cache, and leave the cache as it was.

For now, the whole array is marked as persisting, however little of L2 is set aside, and its lines stay in L2
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import cudart_py as cuda


def run_persisting(
    work: Callable[[], object], array: cuda.DeviceArray, stream: cuda.Stream, device: cuda.Device, requested: int
) -> None:
    """Set up to `requested` bytes of L2 aside, call `work`, which queues launches, and restore all settings."""
    device.limits.persisting_l2_cache_size = requested
    with stream.access_policy(array, hit_ratio=1.0, hit="persisting"):
        work()
