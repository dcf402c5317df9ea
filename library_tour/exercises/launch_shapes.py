"""Choose the grid and the block for a kernel that computes a matrix with one thread per element.

The kernel computes its column from x and its row from y, and does nothing outside the matrix. For now, every element is
computed, but all lanes of a warp are in one column.
"""

from __future__ import annotations

from library_tour.device_code import blocks_for

Extent = tuple[int, int]


def shape(rows: int, columns: int) -> tuple[Extent, Extent]:
    """Return the grid and the block, each as sizes in x and y."""
    block = (1, 256)
    return (columns, blocks_for(rows, block[1])), block
