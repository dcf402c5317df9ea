"""Find how much shared memory each block can use, so that enough blocks are resident on a multiprocessor.

So far, the shared memory of an H200's multiprocessor is divided by the number of blocks.
"""

from __future__ import annotations

SHARED_BYTES = 228 * 1024


def largest_tile(capability: tuple[int, int], threads: int, registers: int, blocks: int) -> int:
    """Return bytes per block, or -1 where so many blocks of `threads` threads are not resident at all."""
    return SHARED_BYTES // blocks
