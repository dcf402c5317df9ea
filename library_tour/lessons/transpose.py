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
# A warp's 32 floats fill four 32-byte sectors.
SECTORS = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Rotate a picture of whole tiles, for which the counts are exact, and one with partial tiles."""
    for rows, columns in ((64, 128), (45, 70)):
        picture = np.random.default_rng(5).random((rows, columns), np.float32)
        source, target = cuda.to_device(picture), poisoned((columns, rows), np.float32)
        grid = (blocks_for(columns, TILE), blocks_for(rows, TILE))
        launch = answer["rotate"][grid, BLOCK].bind(source, target, rows, columns)
        counted = counters.count(launch, ["sectors/load", "sectors/store", "conflicts"])
        expected = np.ascontiguousarray(np.rot90(picture, -1))
        yield compare(f"a {rows} x {columns} picture is rotated clockwise", target.to_host(), expected)
        if rows % TILE == columns % TILE == 0:
            for kind in ("load", "store"):
                fact = f"a {kind} of a warp touches at most {SECTORS} sectors"
                yield at_most(fact, counted[f"sectors/{kind}"], SECTORS)
            yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)


LESSON = Lesson(
    why="A transpose does no arithmetic. It only moves each element once, so it should run as fast as a copy. On an "
    "H200, the obvious kernel runs at 510 GB/s, 12 % of the copy bandwidth of device memory. The last kernel of this "
    "lesson runs at 4,140 GB/s, or 96 %.\n\n"
    "The difficulty is that rows become columns: whichever way the threads are laid out, either the loads or the "
    "stores go down a column. The remedy is a detour through shared memory. It helps every kernel that reads its input "
    "in one order and writes its output in another.",
    learn=[
        "use a tile in shared memory to coalesce both the loads and the stores of a kernel.",
        "say when reading a tile has bank conflicts, and remove them by padding.",
        "explain why a kernel may still benefit from a different block order once every access is coalesced.",
    ],
    idea="Global memory is fast if each warp reads or writes adjacent elements. **Shared memory** is different. It is "
    "a small memory inside the multiprocessor that all threads of a block share, and it has no sectors. So a block "
    "copies a **tile** of the matrix into shared memory, row by row. Then comes a **barrier**, where the threads of "
    "the block wait for one another. After the barrier, the block reads the tile by columns and writes rows of the "
    "output. The loads and the stores are both coalesced.\n\n"
    "Shared memory has its own rule. Its 4-byte words are spread over 32 **banks**: word `i` is in bank `i % 32`, and "
    "each bank serves one word at a time. If lanes of a warp need different words in the same bank, the read takes "
    "several **wavefronts**, one after another. This is a **bank conflict**. In a tile with rows of 32 elements, each "
    "column lies in a single bank. One more element per row spreads a column over all 32 banks.\n\n"
    "The rule of thumb: change the order of data in shared memory, and if a tile is read by columns, pad each of its "
    "rows by one element.",
    steps=[
        Step(
            name="plain copy",
            shows=["TILE", "BLOCK_ROWS", "copy_plain"],
            text="No transpose yet. This copy uses the same blocks as the kernels that follow, and shows the highest "
            "rate that such a kernel can reach. A block of 32 x 8 threads moves a tile of 32 x 32 elements, so each "
            "thread moves four.",
        ),
        Step(
            name="naive",
            shows=["transpose_naive"],
            text="Only the index of the store changes. The lanes of a warp still read adjacent elements of a row, but "
            "each lane now writes to a different row of the output. Every store touches 32 sectors.",
        ),
        Step(
            name="tile",
            shows=["transpose_tile<0>"],
            text="The kernel is a template, here with a padding of 0. The block reads its tile along rows into shared "
            "memory. After the barrier it writes rows of the output, whose elements are columns of the tile. Loads "
            "and stores are coalesced. However, the 32 elements of a column lie in a single bank, so reading them "
            "takes 32 wavefronts.",
        ),
        Step(
            name="tile, padded by one",
            shows=["transpose_tile<1>"],
            text="The same template with a padding of 1, which makes each row of the tile one element longer. The "
            "elements of a column now lie in 32 different banks, and reading them takes one wavefront.",
        ),
        Step(
            name="4 x 4 in registers",
            shows=["Square", "load_square", "turned", "transpose_registers"],
            text="A different approach, without a tile. Each thread loads four vectors of four elements, 16 bytes "
            "each, so the numbers of rows and columns must be multiples of four. It transposes them by using its "
            "registers in a different order, which takes no instructions, and stores four vectors.",
        ),
        Step(
            name="4 x 4, then a tile",
            shows=["Square", "load_square", "turned", "transpose_vector<false>"],
            text="Both ideas combined. With a tile of 64 x 64 elements, a block reads and writes 256 contiguous bytes "
            "of each row. Instead of padding the rows of the tile, the kernel swizzles it: an exclusive or "
            "permutes groups of four words within each row. The hardware serves a warp's 16-byte access in four passes "
            "of 8 lanes, and the permutation spreads the 8 lanes of a pass over all 32 banks. This also avoids bank "
            "conflicts, and it takes no extra space.",
        ),
        Step(
            name="down the columns",
            shows=["transpose_vector<true>"],
            text="The kernel executes the same instructions, but `blockIdx.x` now counts tiles down the columns of the "
            "input. Blocks with consecutive values of `blockIdx.x` usually run at about the same time, although CUDA "
            "does not guarantee any order. Together they write whole rows of the output. That is faster, because "
            "scattered stores cost the memory more than scattered loads.",
        ),
    ],
    look_at=[
        "Compare the 'store efficiency' of the naive kernel with that of the tile. In the naive kernel, each lane "
        "uses 4 of the 32 bytes in its sector: 12.5 %. With the tile, a warp uses all bytes of its 4 sectors: 100 %.",
        "The naive kernel and the tile without padding are both slow, but for different reasons: the first because of "
        "its sectors, the second because of its bank conflicts. The 'store efficiency' and 'conflicts' columns let you "
        "tell the two causes apart. 'conflicts' counts the additional wavefronts that bank conflicts cause.",
        "The 'down the columns' variant has the same counters as the one before it. Counters do not depend on the "
        "order of the blocks, so only times on a GPU show the difference: on the H200, the rate rises from 4,027 to "
        "4,140 GB/s.",
        "The best variants are faster than the plain copy, because they move 16 bytes per load and store, while the "
        "plain copy moves only 4. The limit is the copy bandwidth of device memory.",
        "The 'copy through a tile' row copies the matrix through shared memory, without transposing it. It shows what "
        "the detour costs.",
    ],
    exercise=Exercise(
        task="Rotate a picture by a quarter turn clockwise: element `(row, column)` goes to row `column` and column "
        "`rows - 1 - row` of the output, which has `columns` rows. A block has 32 x "
        "8 threads, and the grid has one block per tile of 32 x 32 elements. The picture does not necessarily consist "
        "of whole tiles. If it does, no load or store of a warp may touch more than four sectors, and there must be no "
        "bank conflicts.",
        hints=[
            "Read a tile as the padded transpose does. Only the second half of the kernel differs.",
            "Think in rows of the output. A warp writes the part of one output row that comes from one column of the "
            "tile. Which element of the tile does each lane need?",
            "After the barrier, each lane takes row `blockIdx.y * TILE + threadIdx.x` of the input. It writes column "
            "`rows - 1` minus that row of the output.",
        ],
        answer="The tile is loaded along rows of the input and stored along rows of the output, in which the columns "
        "run backwards. A warp that writes backwards touches the same four sectors as one that writes forwards. The "
        "lanes read a column of the tile, so the padding is needed again.",
        check=check,
    ),
    course="The 'course GB/s' column shows rates from lectures on coalescing, for kernels that use the same "
    "techniques. The lectures do not name their card. Compare these rates with one another, not with the rates of "
    "today's cards.",
)
