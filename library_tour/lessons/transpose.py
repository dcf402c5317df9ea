"""The lesson of `transpose`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

TILE, BLOCK = 32, (32, 8)
# A warp's 32 floats fill 4 sectors of 32 bytes.
SECTORS = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Rotate a picture of whole tiles, for which the counts are exact, and one that is not."""
    for rows, columns in ((64, 128), (45, 70)):
        picture = np.random.default_rng(5).random((rows, columns), np.float32)
        source, target = cuda.to_device(picture), poisoned((columns, rows), np.float32)
        grid = (blocks_for(columns, TILE), blocks_for(rows, TILE))
        launch = answer["rotate"][grid, BLOCK].bind(source, target, rows, columns)
        counted = counters.count(launch, ["sectors/load", "sectors/store", "conflicts"])
        expected = np.ascontiguousarray(np.rot90(picture, -1))
        yield compare(f"a picture of {rows} x {columns} is turned clockwise", target.to_host(), expected)
        if rows % TILE == columns % TILE == 0:
            for kind in ("load", "store"):
                yield at_most(f"a {kind} of a warp touches {SECTORS} sectors", counted[f"sectors/{kind}"], SECTORS)
            yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)


LESSON = Lesson(
    learn=[
        "What a coalesced access is: the 32 lanes of a warp touch as few sectors of 32 bytes as their data fills.",
        "How a tile in shared memory makes both the loads and the stores of a transpose coalesced.",
        "What a bank conflict is, and why one column of padding removes it.",
        "Why the order in which blocks run matters once every access is coalesced.",
    ],
    steps=[
        Step(
            name="plain copy",
            shows=["TILE", "BLOCK_ROWS", "copy_plain"],
            text="No transpose yet: this copy has the same blocks, and shows the most that four bytes a thread can "
            "reach. A block of 32 x 8 threads moves a tile of 32 x 32 elements, so each thread moves four.",
        ),
        Step(
            name="naive",
            shows=["transpose_naive"],
            text="Only the index of the store changes. The lanes of a warp still read neighbouring elements of a row, "
            "but now each lane writes to another row of the output, which is another sector of memory.",
        ),
        Step(
            name="tile",
            shows=["transpose_tile<0>"],
            text="The block reads its tile along rows into shared memory. After the barrier it writes rows of the "
            "output, and takes their elements from columns of the tile. Loads and stores are coalesced. The 32 "
            "elements of a column of the tile lie in a single bank, though, so that reading them takes 32 passes.",
        ),
        Step(
            name="tile, padded by one",
            shows=["transpose_tile<1>"],
            text="Each row of the tile is one element longer. The elements of a column then lie in 32 different banks.",
        ),
        Step(
            name="4 x 4 in registers",
            shows=["Square", "load_square", "turned", "transpose_registers"],
            text="Another way with no tile at all: a thread loads four pieces of 16 bytes, transposes them in its "
            "registers, which costs no instruction, and stores four pieces of 16 bytes.",
        ),
        Step(
            name="4 x 4, then a tile",
            shows=["Square", "load_square", "turned", "transpose_vector<false>"],
            text="Both ideas together. A tile of 64 x 64 elements lets a block read and write pieces of rows of 256 "
            "bytes. Instead of padding, words are permuted within their row by an exclusive or.",
        ),
        Step(
            name="down the columns",
            shows=["transpose_vector<true>"],
            text="The same instructions. Blocks start in the order of `blockIdx.x`, which now counts tiles down the "
            "columns of the input, so that whole rows of the output are written at about the same time.",
        ),
    ],
    look_at=[
        "Without a GPU, compare 'store efficiency' of the naive kernel and of the tile: a lane uses 4 of the 32 bytes "
        "of its sector, 12.5 %, or the warp uses all bytes of 4 sectors, 100 %.",
        "The naive kernel and the tile without padding are both slower than the padded tile, for different reasons: "
        "the first for its sectors, the second for its bank conflicts. Two counters tell the causes apart.",
        "The variants with 16 bytes a lane use all bytes that they move, too: the 32 lanes ask for 512 bytes, which "
        "fill 16 sectors.",
        "The variant 'down the columns' has the counters of the one before it. The two differ in the order in which "
        "their blocks run. Counters do not depend on this order, so only the times on a GPU show the difference.",
    ],
    exercise=Exercise(
        task="Rotate a picture by a quarter turn clockwise: element `(row, column)` goes to row `column` and column "
        "`rows - 1 - row` of the output, which has `columns` rows. Make every load and every store of a warp touch "
        "four sectors, without bank conflicts. A block has 32 x 8 threads, and the grid has a block for each tile of "
        "32 x 32 elements; pictures need not consist of whole tiles.",
        hints=[
            "Read a tile as the padded transpose does. Then think in elements of the output: which row of the output "
            "does the warp `threadIdx.y` write, which column does its lane write, and which element of the tile "
            "is that?",
        ],
        answer="The tile is loaded along rows of the input and stored along rows of the output, whose columns run "
        "backwards. A warp that writes backwards touches the same four sectors as one that writes forwards. The lanes "
        "read a column of the tile, so the padding is needed again.",
        check=check,
    ),
    course="The rates in the column of the course are those of a course on coalescing, for the kernels of the same "
    "technique. It does not name the card. Compare them with one another, not with a card of today.",
)
