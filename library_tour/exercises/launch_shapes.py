"""Choose the grid and the block with which a kernel computes a matrix, a thread for each element.

The kernel finds its column from x and its row from y, and does nothing beyond the matrix. Every element is computed so
far, but the lanes of a warp lie in one column.
"""

from __future__ import annotations

from library_tour.device_code import blocks_for

Extent = tuple[int, int]


def shape(rows: int, columns: int) -> tuple[Extent, Extent]:
    """Return the grid and the block, each with its sizes in x and y."""
    block = (1, 256)
    return (columns, blocks_for(rows, block[1])), block
