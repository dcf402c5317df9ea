"""Choose the grid and the block for a kernel that computes a matrix with one thread per element.

The kernel computes its column from x and its row from y, and does nothing outside the matrix.
"""

from __future__ import annotations

from library_tour.device_code import blocks_for

Extent = tuple[int, int]


def shape(rows: int, columns: int) -> tuple[Extent, Extent]:
    """Return the grid and the block, each as sizes in x and y."""
    # Each row of the block is a warp. With 16 rows per block, 65,535 blocks in y cover more than a million rows.
    block = (32, 16)
    return (blocks_for(columns, block[0]), blocks_for(rows, block[1])), block
