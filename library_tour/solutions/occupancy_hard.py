"""Find how much shared memory each block can use, so that enough blocks are resident on a multiprocessor."""

from __future__ import annotations

import cudart_py as cuda

# More than any multiprocessor has.
TOO_LARGE = 2**20


def largest_tile(capability: tuple[int, int], threads: int, registers: int, blocks: int) -> int:
    """Return bytes per block, or -1 where so many blocks of `threads` threads are not resident at all."""
    fits, too_large = -1, TOO_LARGE
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        if cuda.occupancy(capability, threads, registers, middle).blocks >= blocks:
            fits = middle
        else:
            too_large = middle
    return fits
