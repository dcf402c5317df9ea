"""Host memory for machine code: zeros at aligned addresses, cleared together before each launch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Enough for the longest vectors.
_ALIGNMENT = 128


def aligned(size: int) -> Array:
    """Return `size` zero bytes at an aligned address."""
    data = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -data.ctypes.data % _ALIGNMENT
    return data[start : start + size]


def parts(*sizes: int) -> tuple[Array, list[Array]]:
    """Return zero bytes, and parts of them with some sizes in bytes, each of which starts at an aligned address."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
    whole = aligned(starts[-1])
    return whole, [whole[start : start + size] for start, size in zip(starts, sizes, strict=False)]
