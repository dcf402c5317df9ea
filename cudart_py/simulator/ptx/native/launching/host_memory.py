"""Host memory for machine code: zeros at aligned addresses, cleared together before each launch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout import Context

Array = NDArray[Any]

# Enough for the longest vectors.
_ALIGNMENT = 128


def aligned(size: int) -> Array:
    """Return `size` zero bytes at an aligned address."""
    data = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -data.ctypes.data % _ALIGNMENT
    return data[start : start + size]


class Parts:
    """Zero bytes in parts, given the size in bytes of the part to which each word of a context points.

    `addresses` contains the addresses of the parts, which are aligned.
    """

    def __init__(self, sizes: Mapping[Context, int]) -> None:
        starts = [*accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes.values()), initial=0)]
        self._whole = aligned(starts[-1])
        self._parts = {
            word: slice(start, start + size) for (word, size), start in zip(sizes.items(), starts, strict=False)
        }
        address = self._whole.ctypes.data
        self.addresses = {word: address + part.start for word, part in self._parts.items()}
        self.nbytes = len(self._whole)

    def of(self, word: Context, dtype: Any = np.uint8) -> Array:
        """Return the part to which a word points."""
        return self._whole[self._parts[word]].view(dtype)

    def clear(self) -> None:
        """Set all bytes to zero."""
        self._whole.fill(0)
