"""Process two arrays in two streams.

The result is right, but the host waits, and the kernels run one after another.
"""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda
from library_tour.device_code import blocks_for

BLOCK = 256
# The kernel computes x = A x + C, STEPS times.
A, C, STEPS = 1664525, 1013904223, 4


def both(kernel: cuda.Kernel, left: cuda.DeviceArray, right: cuda.DeviceArray, streams: Sequence[cuda.Stream]) -> None:
    """Queue a kernel for each array, after the earlier and before the later work of the first stream."""
    for array, stream in zip((left, right), streams, strict=True):
        streams[0].synchronize()
        kernel[blocks_for(array.size, BLOCK), BLOCK, 0, stream](array, A, C, STEPS, array.size)
        stream.synchronize()
