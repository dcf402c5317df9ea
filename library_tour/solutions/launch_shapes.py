"""Choose the grid and the block with which a kernel computes a matrix, a thread for each element.

The kernel finds its column from x and its row from y, and does nothing beyond the matrix.
"""

from __future__ import annotations

from library_tour.device_code import blocks_for

Extent = tuple[int, int]


def shape(rows: int, columns: int) -> tuple[Extent, Extent]:
    """Return the grid and the block, each with its sizes in x and y."""
    # A row of the block is a warp. There are 16 of them, so that 65,535 blocks in y cover a million rows.
    block = (32, 16)
    return (blocks_for(columns, block[0]), blocks_for(rows, block[1])), block
