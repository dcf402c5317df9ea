"""Block-cyclic layouts of matrices on a grid of workers, as in ScaLAPACK and cuBLASMp, and their redistribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .checks import poison
from .inputs import repeated

Array = NDArray[Any]
Floats = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class BlockCyclic:
    """The layout of a matrix of `shape` in blocks of shape `block` on `grid`, which has rows and columns of workers.

    Blocks are dealt round-robin to the rows and to the columns of the grid. Workers are numbered row by row.
    """

    shape: tuple[int, int]
    block: tuple[int, int]
    grid: tuple[int, int]

    def place(self, worker: int) -> tuple[int, int]:
        """Return a worker's row and column in the grid."""
        return divmod(worker, self.grid[1])

    def indices(self, worker: int) -> tuple[Indices, Indices]:
        """Return the indices of the matrix rows and columns that a worker holds, in ascending order."""
        row, column = (
            np.flatnonzero(np.arange(size) // block % workers == position)
            for size, block, workers, position in zip(
                self.shape, self.block, self.grid, self.place(worker), strict=True
            )
        )
        return row, column

    def part_shape(self, worker: int) -> tuple[int, int]:
        """Return how many rows and columns a worker holds."""
        rows, columns = self.indices(worker)
        return rows.size, columns.size

    def part(self, matrix: Array, worker: int) -> Array:
        """Return a worker's part of a matrix, a copy."""
        return matrix[np.ix_(*self.indices(worker))]


# The layouts of A, B and C.
Layouts = tuple[BlockCyclic, BlockCyclic, BlockCyclic]


class Blocks:
    """A worker's parts of A, B and C = A B in device memory, and the stream in which it computes."""

    def __init__(self, device: cuda.Device, number: int, layouts: Layouts) -> None:
        self.device, self.number, self.layouts = device, number, layouts
        with device:
            self.compute = cuda.Stream(non_blocking=True)
            self.a, self.b, self.c = (cuda.zeros(layout.part_shape(number), np.float32) for layout in layouts)
            device.synchronize()

    def take(self, a: Floats, b: Floats) -> None:
        """Copy this worker's blocks of the operands to the device, and poison its blocks of the product."""
        with self.device:
            for layout, array, matrix in zip(self.layouts, (self.a, self.b), (a, b), strict=False):
                array.copy_from(layout.part(matrix, self.number))
            poison(self.c)
            self.device.synchronize()

    def fill(self, block: Floats) -> None:
        """Fill A and B by repeating the elements of a block."""
        with self.device:
            for operand in (self.a, self.b):
                operand.reshape(-1).copy_from(repeated(block, operand.size))
            self.device.synchronize()

    def result(self) -> Floats:
        """Wait for all work on the device, then return this worker's blocks of the product."""
        with self.device:
            self.device.synchronize()
            return self.c.to_host()


def strips(shape: tuple[int, int], workers: int) -> BlockCyclic:
    """Return the layout in which each worker has one strip of whole rows."""
    return BlockCyclic(shape, (max(1, -(-shape[0] // workers)), shape[1]), (workers, 1))


def near_square(workers: int) -> tuple[int, int]:
    """Return the grid of all workers whose sides differ least, with more rows than columns."""
    columns = max(number for number in range(1, math.isqrt(workers) + 1) if workers % number == 0)
    return workers // columns, columns


def pieces(part: Array, worker: int, source: BlockCyclic, target: BlockCyclic) -> list[Array]:
    """Return the pieces that a worker sends to each worker, itself included, to change the layout to `target`."""
    return [part[_shared(source, worker, target, other)] for other in range(math.prod(target.grid))]


def joined(received: Sequence[Array], worker: int, source: BlockCyclic, target: BlockCyclic) -> Array:
    """Return a worker's part in the layout `target`, joined from the pieces of all workers in their order."""
    part = np.empty(target.part_shape(worker), received[0].dtype)
    for other, piece in enumerate(received):
        part[_shared(target, worker, source, other)] = piece
    return part


def _shared(own: BlockCyclic, worker: int, others: BlockCyclic, other: int) -> tuple[Indices, ...]:
    """Return the rows and columns of a worker's part that belong to another worker's part of another layout."""
    return np.ix_(
        *(
            np.flatnonzero(np.isin(mine, theirs, assume_unique=True))
            for mine, theirs in zip(own.indices(worker), others.indices(other), strict=True)
        )
    )
