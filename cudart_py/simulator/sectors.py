"""Count the 32-byte sectors of global memory that the lanes of warps touch together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_sectors", "run_sectors"]

Array = NDArray[Any]
SECTOR = 32


def run_sectors(start: int, size: int, warps: int) -> int:
    """Count for full warps whose lanes lie side by side from byte `start` on, `size` bytes each."""
    # A warp's bytes are a multiple of a sector, so that all warps lie alike.
    each: int = (start % SECTOR + 32 * size + SECTOR - 1) // SECTOR
    return warps * each


def count_sectors(rows: Array) -> int:
    """Count the different sectors of each row of byte places, and give their sum.

    An access is aligned and at most 16 bytes, so it lies in one sector.
    """
    sectors = rows >> 5
    before, after = sectors[:, :-1], sectors[:, 1:]
    if (after < before).any():
        sectors = np.sort(sectors, axis=1)
        before, after = sectors[:, :-1], sectors[:, 1:]
    return len(sectors) + int(np.count_nonzero(after != before))
