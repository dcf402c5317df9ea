"""The lesson of `coalescing`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK, EACH = 128, 8


def check(answer: cuda.Module) -> Iterator[Check]:
    """Reverse arrays of whole blocks and of a part of one, and no more threads than an eighth of the numbers."""
    for size in (2 * EACH * BLOCK, 1999):
        x = np.arange(size, dtype=np.uint32)
        out = poisoned(size, np.uint32)
        grid = blocks_for(size, EACH * BLOCK)
        counted = counters.count(
            answer["reverse"][grid, BLOCK].bind(cuda.to_device(x), out, size), ["sectors/load", "sectors/store"]
        )
        yield compare(f"{size:,} numbers are reversed", out.to_host(), x[::-1])
        if size % (EACH * BLOCK) == 0:
            for kind in ("load", "store"):
                yield at_most(f"a {kind} of a warp touches 4 sectors", counted[f"sectors/{kind}"], 4)


LESSON = Lesson(
    learn=[
        "That the cost of a load follows from how many sectors the lanes of a warp touch together, and not from their "
        "order.",
        "Why neighbouring numbers belong to neighbouring lanes, and not to one thread.",
        "How to give a thread several numbers and keep its loads coalesced.",
    ],
    steps=[
        Step(
            name="neighbours",
            shows=["thread", "copy_neighbours"],
            text="Each lane copies the number after that of the lane before it: 32 numbers, 128 bytes, 4 sectors.",
        ),
        Step(
            name="neighbours in any order",
            shows=["copy_any_order"],
            text="The lanes take the numbers of the same 4 sectors in another order, which costs nothing.",
        ),
        Step(
            name="8 a thread, contiguous",
            shows=["copy_from", "copy_contiguous<8>"],
            text="A thread copies eight neighbouring numbers, as a loop over an array on a CPU would. At each "
            "step the lanes are eight numbers apart, and each touches a sector of its own.",
        ),
        Step(
            name="8 a thread, block-strided",
            shows=["copy_from", "copy_block_strided<8>"],
            text="The block copies the same numbers. At each step its threads take neighbouring ones, and step by the "
            "width of the block.",
        ),
        Step(
            name="8 a thread, 16 bytes a load",
            shows=["copy_groups<8>"],
            text="The same with loads of four numbers. A warp asks for 512 bytes at once, and uses all of 16 sectors.",
        ),
        Step(
            name="a thread for each column",
            shows=["sum_columns"],
            text="A matrix is stored by rows. Threads that walk down its columns side by side are neighbours at each "
            "step.",
        ),
        Step(
            name="a thread for each row",
            shows=["sum_rows"],
            text="Threads that walk along the rows are a row apart at each step.",
        ),
        Step(
            name="a warp for each row",
            shows=["sum_rows_by_warps"],
            text="A warp walks along a row with its lanes side by side, and adds their sums at the end.",
        ),
    ],
    look_at=[
        "The columns 'sectors/load' and 'load efficiency' belong together: 32 lanes that read one number touch a "
        "single sector, and use 4 of its 32 bytes. That is cheap.",
        "Loads of 16 bytes touch 16 sectors and use all of them: a larger number of sectors is no waste by itself.",
        "On a GPU, compare a thread for each row with a warp for each row: the sums are the same, and so are the bytes "
        "that are asked for. On the H200 the first read 1,010 GB/s and the second about 4,350 GB/s. With eight "
        "numbers a thread it copied 1,110 GB/s where they are contiguous, and 4,120 GB/s where they are block-strided.",
    ],
    exercise=Exercise(
        task="Each thread reverses eight numbers: it reads neighbouring ones and writes them to the other end of the "
        "output, in the other order. Keep eight numbers for each thread, and let every load and store of a warp touch "
        "four sectors.",
        hints=[
            "A block has a piece of `8 * blockDim.x` numbers. Let its threads take neighbouring numbers of the piece, "
            "and step through it by the width of the block.",
        ],
        answer="At each step, neighbouring lanes read neighbouring numbers. They write neighbouring numbers too, in "
        "the other order, and the order within the sectors does not matter.",
        check=check,
    ),
    course="The courses give no figures for this topic. They give a rule: one datum for each thread, and neighbouring "
    "data for neighbouring threads.",
)
