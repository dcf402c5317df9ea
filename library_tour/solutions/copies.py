"""Copy a pageable array to the device in pieces, through two pinned buffers."""

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
    copied: list[cuda.Event] = []
    for piece, start in enumerate(range(0, source.size, length)):
        part = source[start : start + length]
        buffer = buffers[piece % 2][: part.size]
        if piece >= 2:
            copied[piece - 2].synchronize()
        buffer[:] = part
        cuda.memcpy(target[start : start + length], buffer, stream=stream)
        copied.append(stream.record())
