"""Find how much shared memory each block can use while enough blocks remain resident on a multiprocessor."""

from __future__ import annotations

import cudart_py as cuda

# More than any multiprocessor has.
TOO_LARGE = 2**20


def largest_tile(capability: tuple[int, int], threads: int, registers: int, blocks: int) -> int:
    """Return bytes per block, or -1 if that many blocks of `threads` threads are never resident."""
    fits, too_large = -1, TOO_LARGE
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        if cuda.occupancy(capability, threads, registers, middle).blocks >= blocks:
            fits = middle
        else:
            too_large = middle
    return fits
