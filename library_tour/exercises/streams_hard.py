"""Process an array in pieces, each of which needs a value from the piece before it.

The result is right, but everything is queued in one stream, so nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda

PIECES, BLOCK = 8, 256


def transform(
    kernel: cuda.Kernel,
    source: NDArray[Any],
    target: NDArray[Any],
    on_device: cuda.DeviceArray,
    carry: cuda.DeviceArray,
    streams: Sequence[cuda.Stream],
) -> None:
    """Queue the pieces of a pinned array, whose size is a multiple of the number of pieces."""
    length = source.size // PIECES
    for start in range(0, source.size, length):
        piece = slice(start, start + length)
        part = on_device[piece]
        cuda.memcpy(part, source[piece], stream=streams[0])
        kernel[1, BLOCK, 0, streams[0]](part, carry, length)
        cuda.memcpy(target[piece], part, stream=streams[0])
