"""Run work in a stream while an array persists in the L2 cache, and leave the cache as it was.

So far, the whole array is said to persist, however little room is set aside, and its lines stay in L2 afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import cudart_py as cuda


def run_persisting(
    work: Callable[[], object], array: cuda.DeviceArray, stream: cuda.Stream, device: cuda.Device, room: int
) -> None:
    """Set `room` bytes of L2 aside, call `work`, which queues launches in the stream, and undo what was set."""
    device.limits.persisting_l2_cache_size = room
    with stream.access_policy(array, hit_ratio=1.0, hit="persisting"):
        work()
