"""The further exercises of `heat`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, at_most, number_of
from ..stop import Check

BLOCK = (32, 8)
ROD_BLOCK, WARP = 256, 32
# Warp-level loads per block: one for each warp's own cells, and two for the halo.
ROD_LOADS = ROD_BLOCK // WARP + 2

Floats = NDArray[np.float32]


def check_edges(answer: cuda.Module) -> Iterator[Check]:
    """Take one step on plates of several shapes, one of which has a single row."""
    for rows, columns in ((64, 96), (45, 70), (1, 33)):
        # Multiples of 4, so that a quarter of a sum is exact.
        plate = 4 * np.random.default_rng(5).integers(0, 100, (rows, columns)).astype(np.float32)
        out = poisoned(plate.shape, np.float32)
        grid = (blocks_for(columns, BLOCK[0]), blocks_for(rows, BLOCK[1]))
        answer["step"][grid, BLOCK](cuda.to_device(plate), out, rows, columns)
        around = np.pad(plate, 1, mode="edge")
        expected = (around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]) / np.float32(4)
        yield compare(f"a step of a plate of {rows} x {columns}", out.to_host(), expected)


def _after_a_step(rod: Floats) -> Floats:
    ends = np.pad(rod, 1, mode="edge")
    return (ends[:-2] + 2 * rod + ends[2:]) / np.float32(4)


def check_two_steps(answer: cuda.Module) -> Iterator[Check]:
    """Take two steps on rods that fill their blocks, counting the loads, and on rods that do not."""
    for size in (4 * ROD_BLOCK, 1001, 258, 1):
        # Multiples of 16, so that a sixteenth of a sum is exact.
        rod = 16 * np.random.default_rng(5).integers(0, 100, size).astype(np.float32)
        out = poisoned(size, np.float32)
        blocks = blocks_for(size, ROD_BLOCK)
        launch = answer["two_steps"][blocks, ROD_BLOCK].bind(cuda.to_device(rod), out, size)
        counted = counters.count(launch, ["loads"])
        expected = _after_a_step(_after_a_step(rod))
        yield compare(f"two steps of a rod of {number_of(size, 'cell')}", out.to_host(), expected)
        if size % ROD_BLOCK == 0:
            fact = f"the warps of a block perform at most {ROD_LOADS} loads"
            yield at_most(fact, float(counted["loads"]) / blocks, ROD_LOADS)


FURTHER = [
    Exercise(
        name="easy",
        task="In a step, each cell of a plate becomes the average of its four neighbours. The edges are insulated: "
        "where a neighbour is outside the plate, the cell itself takes its place. The kernel finds the neighbours by "
        "their index in memory, so it uses the last cell of the row above as the left neighbour of the first cell of "
        "a row. Handle the four edges correctly.",
        hints=[
            "The index in memory does not show whether a neighbour is in the same row. The row and the column do.",
            "`max(column - 1, 0)` is the column of the left neighbour, or of the cell itself at the left edge.",
        ],
        answer="Each neighbour's row or column is first clamped to the plate, and only then turned into an index. At "
        "an edge, the result is the cell itself, which is what insulation means. No branch is needed.",
        check=check_edges,
    ),
    Exercise(
        name="hard",
        task="In a step, each cell of a rod becomes `(left + 2 cell + right) / 4`. At the ends, the cell itself takes "
        "the place of a missing neighbour. The kernel takes two steps in one launch, and each thread loads all the "
        "cells that it needs from global memory. Let a block of 256 threads load its cells and the halo only once: the "
        "warps of a block may perform at most ten loads. The rod may have any number of cells.",
        hints=[
            "A block's 256 cells after two steps depend on 258 cells after one step, and 260 cells of the input.",
            "Use two arrays in shared memory: one for the 260 cells, and one for the 258 cells after the first step. "
            "Where do barriers belong?",
            "Do not take a first step for a cell beyond the end. Clamp the index to the rod each time before you look "
            "up a cell.",
        ],
        answer="The block loads 260 cells, computes 258 cells after the first step, and 256 after the second, with a "
        "barrier between the stages. At each border, two blocks load the same four cells and compute the first step "
        "of the same two. That is the price of reading the rod once for two steps, and it is small as long as the "
        "block is much larger than the halo.",
        check=check_two_steps,
    ),
]
