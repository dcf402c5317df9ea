"""The lesson of `bank_conflicts`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

SIDE = 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum the rows of one tile by a warp; count the conflicts, and the shared memory that this takes."""
    tile = np.random.default_rng(5).integers(0, 1000, (SIDE, SIDE)).astype(np.uint32)
    sums = poisoned(SIDE, np.uint32)
    kernel = answer["sum_rows"]
    counted = counters.count(kernel[1, SIDE].bind(cuda.to_device(tile), sums), ["conflicts"])
    yield compare("the sums of the rows", sums.to_host(), tile.sum(1, np.uint32))
    yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)
    yield at_most("the tile takes no more than its own 4,096 bytes", kernel.attributes.shared_bytes, 4 * SIDE * SIDE)


LESSON = Lesson(
    learn=[
        "Shared memory has 32 banks of 4-byte words, and a bank serves one word at a time.",
        "How many ways a conflict has: the largest number of different words that the lanes of a warp read from one "
        "bank.",
        "Why lanes that read the same word do not conflict.",
    ],
    steps=[
        Step(
            name="stride 1",
            shows=["BANKS", "WORDS", "read_stride"],
            text="Lane `i` reads the word `i * stride`, many times. With stride 1 each lane reads from another bank.",
        ),
        Step(
            name="how many ways",
            shows=["ways"],
            text="The conflict can be computed before anything runs: take the different words that the lanes read, "
            "and count how many of them lie in each bank. With stride 2, two lanes share a bank; with stride 3, which "
            "has no factor in common with 32, none do; with stride 32 all lanes read from one bank.",
        ),
    ],
    look_at=[
        "The columns 'ways' and 'wavefronts': a read takes as many wavefronts as the conflict has ways.",
        "Stride 3 is as good as stride 1. Only factors in common with the number of banks matter, so an odd stride has "
        "no conflicts.",
        "In the last row all lanes read one word, which the bank sends to all of them at once.",
        "On a GPU, the column 'slower' compares the times with that of stride 1. It grows with the ways: on the H200 "
        "to 1.7 for 2 ways and to 27 for 32, since stride 1 itself does not quite reach the limit.",
    ],
    exercise=Exercise(
        task="One warp loads a tile of 32 x 32 numbers into shared memory, and then each lane sums a row of it. The "
        "lanes read numbers that are 32 words apart, which all lie in one bank. Remove the conflicts without a larger "
        "tile, so without padding.",
        hints=[
            "The order in which a lane adds the numbers of its row is free, and it may be another one for each lane.",
        ],
        answer="Lane `i` begins in column `i` and wraps around at the end of its row. At every step the lanes then "
        "read from 32 different columns, which are 32 different banks. Whole numbers have the same sum in any order.",
        check=check,
    ),
    course="A lecture of the course gives the conflicts of these five accesses, in their order: none, 2-way, none, "
    "32-way, none. It gives no times.",
)
