"""Find the smallest block size that makes the most warps resident on a multiprocessor."""

from __future__ import annotations

import cudart_py as cuda

WARP, MOST_THREADS = 32, 1024


def smallest_best_block(capability: tuple[int, int], registers: int) -> int:
    """Return a multiple of 32 up to 1,024, for threads with `registers` registers each."""
    best, most = 0, 0
    for threads in range(WARP, MOST_THREADS + 1, WARP):
        warps = cuda.occupancy(capability, threads, registers).blocks * threads // WARP
        if warps > most:
            best, most = threads, warps
    return best
