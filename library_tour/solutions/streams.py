"""Copy an array to the device in pieces, process each piece there, and copy it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda
from library_tour.device_code import blocks_for

PIECES, BLOCK = 8, 256
# The kernel computes x = A x + C, STEPS times.
A, C, STEPS = 1664525, 1013904223, 4


def transform(
    kernel: cuda.Kernel,
    source: NDArray[Any],
    target: NDArray[Any],
    on_device: cuda.DeviceArray,
    streams: Sequence[cuda.Stream],
) -> None:
    """Queue the pieces of a pinned array between the earlier and the later work of the first stream."""
    length = blocks_for(source.size, PIECES)
    for other in streams[1:]:
        other.wait(streams[0])
    for number, start in enumerate(range(0, source.size, length)):
        stream, piece = streams[number % len(streams)], slice(start, start + length)
        part = on_device[piece]
        cuda.memcpy(part, source[piece], stream=stream)
        kernel[blocks_for(part.size, BLOCK), BLOCK, 0, stream](part, A, C, STEPS, part.size)
        cuda.memcpy(target[piece], part, stream=stream)
    for other in streams[1:]:
        streams[0].wait(other)
