"""Bring a process into the state in which its times no longer depend on what ran before.

On an H200 the shortest time between two kernels of a graph is 0.18 us longer once a process has used several
streams than before, and stays so. Without this the same kernel would be faster in the first measurement of a
process than in the last.
"""

from __future__ import annotations

import functools

import numpy as np

from .blocking import hold_kernel
from .device import Device, activated
from .host_memory import pinned_empty
from .stream import Stream, legacy_default

__all__ = ["settle"]


@functools.cache
def settle(device: Device) -> tuple[Stream, ...]:
    """Run a kernel in three streams of a device beside the one that is measured, and keep them; once a process."""
    with activated(device):
        # None that legacy work would have to wait for.
        streams = (legacy_default, Stream(non_blocking=True), Stream(non_blocking=True))
        state = pinned_empty(2, np.uint32, mapped=True)
        state[:] = 0
        for stream in streams:
            # Nobody has to let go of ticket 0: the kernel ends at once.
            hold_kernel(device)[1, 1, 0, stream](state, 0, 0)
            stream.synchronize()
    return streams
