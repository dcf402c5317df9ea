"""Run work in a stream while an array persists in the L2 cache, and leave the cache as it was."""

from __future__ import annotations

from collections.abc import Callable

import cudart_py as cuda


def run_persisting(
    work: Callable[[], object], array: cuda.DeviceArray, stream: cuda.Stream, device: cuda.Device, requested: int
) -> None:
    """Set up to `requested` bytes of L2 aside, call `work`, which queues launches, and restore all settings."""
    before = device.limits.persisting_l2_cache_size
    device.limits.persisting_l2_cache_size = min(requested, device.properties.max_persisting_l2_cache_size)
    # The driver rounds the size up.
    set_aside = device.limits.persisting_l2_cache_size
    try:
        with stream.access_policy(array, hit_ratio=min(1.0, set_aside / array.nbytes), hit="persisting"):
            work()
    finally:
        stream.synchronize()
        device.reset_persisting_l2()
        device.limits.persisting_l2_cache_size = before
