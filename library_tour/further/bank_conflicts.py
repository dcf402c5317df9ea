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
        task="Each block of 256 threads sums 256 elements in shared memory with a tree reduction. In each pass, thread "
        "`t` adds the element at `2 * step * t + step` to the one at `2 * step * t`, and then `step` doubles. So the "
        "words that the lanes of a warp access move further apart with every pass. Keep the tree, but remove the bank "
        "conflicts.",
        hints=[
            "The elements may be added in any order. Let adjacent threads add adjacent elements.",
            "Begin with the largest step: thread `t` adds the element at `t + 128` to the one at `t`, and then the one "
            "at `t + 64`.",
        ],
        answer="The step begins at 128 and is halved after each pass. The threads that are still adding are the first "
        "ones of the block, and they access consecutive words. Whole warps also become idle, rather than parts of "
        "every warp.",
        check=check_block_sums,
    ),
    Exercise(
        name="hard",
        task="A block of 32 x 8 threads transposes a tile of 32 x 32 elements through shared memory. It writes the "
        "rows of the tile and reads its columns, and all elements of a column are in the same bank. Remove the "
        "conflicts without padding: the tile must take exactly 4,096 bytes of shared memory. Global loads and stores "
        "must stay coalesced.",
        hints=[
            "Element `(row, column)` need not be stored at `tile[row][column]`, as long as you can find it again.",
            "Rearrange the elements within each row, differently from row to row. A column of the matrix then no "
            "longer lies in a single column of the tile.",
            "`column ^ row` takes each value from 0 to 31 exactly once along a row, and exactly once along a column.",
        ],
        answer="Element `(row, column)` is stored at `tile[row][column ^ row]`. The 32 elements of a row go to 32 "
        "different banks, and so do the 32 elements of a column. This technique is called swizzling. It needs no extra "
        "memory.",
        check=check_transpose_tile,
    ),
]
