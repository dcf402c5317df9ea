"""Process two arrays in two streams."""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda
from library_tour.device_code import blocks_for

BLOCK = 256
# The kernel computes x = A x + C, STEPS times.
A, C, STEPS = 1664525, 1013904223, 4


def both(kernel: cuda.Kernel, left: cuda.DeviceArray, right: cuda.DeviceArray, streams: Sequence[cuda.Stream]) -> None:
    """Queue a kernel for each array, after the earlier and before the later work of the first stream."""
    streams[1].wait(streams[0])
    for array, stream in zip((left, right), streams, strict=True):
        kernel[blocks_for(array.size, BLOCK), BLOCK, 0, stream](array, A, C, STEPS, array.size)
    streams[0].wait(streams[1])
