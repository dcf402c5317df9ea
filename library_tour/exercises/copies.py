"""Copy a pageable array to the device in pieces, through two pinned buffers.

For now, a buffer is refilled even if the copy that reads it is still queued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda


def upload(
    target: cuda.DeviceArray, source: NDArray[Any], buffers: Sequence[NDArray[Any]], stream: cuda.Stream
) -> None:
    """Queue the copies of all pieces; before refilling a buffer, wait for the copy that reads it."""
    length = buffers[0].size
    for piece, start in enumerate(range(0, source.size, length)):
        part = source[start : start + length]
        buffer = buffers[piece % 2][: part.size]
        buffer[:] = part
        cuda.memcpy(target[start : start + length], buffer, stream=stream)
