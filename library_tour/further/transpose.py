"""The further exercises of `transpose`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, at_most
from ..stop import Check, Value

TILE, BLOCK = 32, (32, 8)
SECTORS = 4
COLUMNS = ("sectors/load", "sectors/store", "conflicts")


def check_symmetric_part(answer: cuda.Module) -> Iterator[Check]:
    """Add the transpose of a matrix of whole tiles, for which the counts are exact, and of one with partial tiles."""
    for size in (64, 45):
        matrix = np.random.default_rng(5).integers(0, 100, (size, size)).astype(np.float32)
        out = poisoned(matrix.shape, np.float32)
        blocks = blocks_for(size, TILE)
        launch = answer["add_transpose"][(blocks, blocks), BLOCK].bind(cuda.to_device(matrix), out, size)
        counted = counters.count(launch, COLUMNS)
        yield compare(f"a {size} x {size} matrix plus its transpose", out.to_host(), matrix + matrix.T)
        if size % TILE == 0:
            yield from _coalesced(counted)


def check_in_place(answer: cuda.Module) -> Iterator[Check]:
    """Transpose matrices of whole tiles, and one with partial tiles, in place."""
    for size in (64, 96, 45):
        matrix = np.random.default_rng(5).random((size, size), np.float32)
        on_device = cuda.to_device(matrix)
        blocks = blocks_for(size, TILE)
        counted = counters.count(answer["transpose_in_place"][(blocks, blocks), BLOCK].bind(on_device, size), COLUMNS)
        expected = np.ascontiguousarray(matrix.T)
        yield compare(f"a {size} x {size} matrix is transposed in place", on_device.to_host(), expected)
        if size % TILE == 0:
            yield from _coalesced(counted)


def _coalesced(counted: dict[str, Value]) -> Iterator[Check]:
    for kind in ("load", "store"):
        yield at_most(f"a {kind} of a warp touches at most {SECTORS} sectors", counted[f"sectors/{kind}"], SECTORS)
    yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)


FURTHER = [
    Exercise(
        name="easy",
        task="A kernel adds a square matrix and its transpose. It loads a tile of the matrix into shared memory and "
        "reads it column by column, so all accesses to global memory are coalesced. However, the 32 lanes of a warp "
        "then all read from the same bank. Remove the bank conflicts.",
        hints=[
            "An element of the tile lies in bank `(32 * row + column) % 32`. Which banks do the lanes of a warp use "
            "when they read one column?",
            "With rows of 33 elements, adjacent rows start in adjacent banks.",
        ],
        answer="One unused element at the end of each row of the tile shifts the next row by one bank. The 32 "
        "elements of a column then lie in 32 different banks.",
        check=check_symmetric_part,
    ),
    Exercise(
        name="hard",
        task="Transpose a square matrix in place. In the given kernel, each thread swaps one pair of elements, and "
        "one element of each pair is read and written along a column. Change the kernel so that both are read and "
        "written along rows. A block has 32 x 8 threads, and the grid has one block per tile of 32 x 32 elements. The "
        "matrix does not necessarily consist of whole tiles. If it does, each load and each store of a warp must touch "
        "at most 4 sectors, and there must be no bank conflicts.",
        hints=[
            "A tile and its mirror image swap places, and each is transposed on the way. Which of the two blocks "
            "should do that, and which should do nothing?",
            "Load both tiles into shared memory along rows. After a barrier, store each in the place of the other, "
            "again along rows.",
            "On the diagonal, both tiles are the same. Loading and storing that tile twice does no harm.",
        ],
        answer="The block for the tile in row `y` and column `x` does the work if `x >= y`. It loads that tile and its "
        "mirror image along rows, and waits at a barrier. Then it stores both along rows, while it reads the padded "
        "tiles in shared memory column by column. All blocks below the diagonal return immediately. The barrier makes "
        "this safe: nothing is stored before both tiles are loaded.",
        check=check_in_place,
    ),
]
