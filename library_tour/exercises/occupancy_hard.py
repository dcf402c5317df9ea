"""Find how much shared memory each block can use while enough blocks remain resident on a multiprocessor.

For now, the function divides the shared memory of an H200's multiprocessor by the number of blocks.
"""

from __future__ import annotations

SHARED_BYTES = 228 * 1024


def largest_tile(capability: tuple[int, int], threads: int, registers: int, blocks: int) -> int:
    """Return bytes per block, or -1 if that many blocks of `threads` threads are never resident."""
    return SHARED_BYTES // blocks
