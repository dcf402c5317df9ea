"""The further exercises of `bank_conflicts`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..lesson import Exercise, at_most
from ..stop import Check

BLOCK, BLOCKS = 256, 3
SIDE, ROWS = 32, 8


def check_block_sums(answer: cuda.Module) -> Iterator[Check]:
    """Sum the elements of some blocks; count the conflicts."""
    x = np.random.default_rng(5).integers(0, 1000, (BLOCKS, BLOCK)).astype(np.uint32)
    sums = poisoned(BLOCKS, np.uint32)
    counted = counters.count(answer["block_sums"][BLOCKS, BLOCK].bind(cuda.to_device(x), sums), ["conflicts"])
    yield compare(f"the sums of {BLOCKS} blocks", sums.to_host(), x.sum(1, np.uint32))
    yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)


def check_transpose_tile(answer: cuda.Module) -> Iterator[Check]:
    """Transpose one tile; count the conflicts, the sectors and the shared memory."""
    tile = np.random.default_rng(5).integers(0, 1000, (SIDE, SIDE)).astype(np.uint32)
    out = poisoned(tile.shape, np.uint32)
    kernel = answer["transpose_tile"]
    launch = kernel[1, (SIDE, ROWS)].bind(cuda.to_device(tile), out)
    counted = counters.count(launch, ["conflicts", "sectors/load", "sectors/store"])
    yield compare("the tile is transposed", out.to_host(), np.ascontiguousarray(tile.T))
    yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)
    yield at_most("the tile takes no more than its own 4,096 bytes", kernel.attributes.shared_bytes, 4 * SIDE * SIDE)
    for kind in ("load", "store"):
        yield at_most(f"a {kind} of a warp touches at most 4 sectors", counted[f"sectors/{kind}"], 4)


FURTHER = [
    Exercise(
        name="easy",
        task="Each block of 256 threads sums 256 elements in shared memory, as a tree. At each step, thread `t` adds "
        "the element at `2 * step * t + step` to that at `2 * step * t`, and `step` doubles. So with each step, the "
        "lanes of a warp access words that are further apart. Keep the tree, and remove the bank conflicts.",
        hints=[
            "The order in which the elements are added is free. Let neighbouring threads add neighbouring elements.",
            "Begin with the largest step: thread `t` adds the element at `t + 128` to that at `t`, then the one at `t "
            "+ 64`.",
        ],
        answer="The step begins at 128 and halves. The threads that still add are the first ones, and they access "
        "consecutive words. As a bonus, whole warps become idle instead of parts of all warps.",
        check=check_block_sums,
    ),
    Exercise(
        name="hard",
        task="A block of 32 x 8 threads transposes a tile of 32 x 32 elements through shared memory. It writes rows of "
        "the tile and reads columns, which lie in one bank. Remove the conflicts without padding: the tile has exactly "
        "4,096 bytes of shared memory. Loads and stores of global memory stay coalesced.",
        hints=[
            "The element `(row, column)` need not be at `tile[row][column]`. It only has to be found again.",
            "Move the elements of each row, by an amount that differs from row to row. A column of the matrix then no "
            "longer lies in a column of the tile.",
            "`column ^ row` is a different number from 0 to 31 for each column of a row, and for each row of a column.",
        ],
        answer="The element `(row, column)` is kept at `tile[row][column ^ row]`. In a row, the 32 columns go to 32 "
        "banks in some order. In a column, the 32 rows do too. This is called swizzling, and needs no memory.",
        check=check_transpose_tile,
    ),
]
