"""Copy a pageable array to the device, piece by piece through two pinned buffers.

So far, a buffer is filled again while its copy is still queued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda


def upload(
    target: cuda.DeviceArray, source: NDArray[Any], buffers: Sequence[NDArray[Any]], stream: cuda.Stream
) -> None:
    """Queue the copies of all pieces; wait for a copy only before its buffer is filled again."""
    length = buffers[0].size
    for piece, start in enumerate(range(0, source.size, length)):
        part = source[start : start + length]
        buffer = buffers[piece % 2][: part.size]
        buffer[:] = part
        cuda.memcpy(target[start : start + length], buffer, stream=stream)
