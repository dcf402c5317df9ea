"""Find the smallest block size that makes the most warps resident on a multiprocessor.

For now, the function assumes that the largest block is the best.
"""

from __future__ import annotations

import cudart_py as cuda

WARP, MOST_THREADS = 32, 1024


def smallest_best_block(capability: tuple[int, int], registers: int) -> int:
    """Return a multiple of 32 up to 1,024, for threads with `registers` registers each."""
    blocks = cuda.occupancy(capability, MOST_THREADS, registers).blocks
    return MOST_THREADS if blocks else MOST_THREADS // 2
