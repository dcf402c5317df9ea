"""The lesson of `bank_conflicts`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda
from cudart_py.profiling.metric_names import WAVEFRONTS

from .. import counters
from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

SIDE = 32
SHARED_LOADS = WAVEFRONTS.format("ld")


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum the rows of one tile with a warp; count the loads and bank conflicts, and the bytes of shared memory."""
    tile = np.random.default_rng(5).integers(0, 1000, (SIDE, SIDE)).astype(np.uint32)
    sums = poisoned(SIDE, np.uint32)
    kernel = answer["sum_rows"]
    metrics = counters.counted(kernel[1, SIDE].bind(cuda.to_device(tile), sums))
    counted, read = counters.values(metrics, ["conflicts"]), metrics.get(SHARED_LOADS, 0)
    yield compare("the sums of the rows", sums.to_host(), tile.sum(1, np.uint32))
    fact = f"the warp loads the {SIDE * SIDE:,} elements from shared memory in at least {SIDE} wavefronts"
    yield Check(fact, read >= SIDE, f"The actual number is {read:g}.")
    yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)
    yield at_most("the tile takes no more than its own 4,096 bytes", kernel.attributes.shared_bytes, 4 * SIDE * SIDE)


LESSON = Lesson(
    why="Shared memory is fast because 32 banks deliver words in parallel. When all lanes of a warp read different "
    "words from the same bank, the other 31 banks are idle. On an H200, the kernel in this lesson reads at 28,161 GB/s "
    "in the best case and at 1,044 GB/s in the worst. The only difference is the stride between the lanes.\n\n"
    "A stride of 32 is common: it occurs whenever a warp reads a column of a tile that is 32 elements wide.",
    learn=[
        "tell from an index expression whether an access causes a bank conflict, and whether the conflict is 2-way, "
        "4-way or worse.",
        "recognise strides that cause conflicts and strides that do not.",
        "explain why lanes that read the same word do not conflict.",
    ],
    idea="Shared memory has 32 **banks**. Adjacent 4-byte words are in adjacent banks: word `i` is in bank `i % 32`. "
    "Each bank delivers one word at a time. The hardware splits a warp's read into **wavefronts**, and each wavefront "
    "takes at most one word from each bank. Reads from 32 different banks need one wavefront, which is ideal. If "
    "several lanes read different words from the same bank, they need one wavefront each. That is a **bank conflict**. "
    "It is an n-way conflict if the busiest bank must deliver n different words. Lanes that read the same word share "
    "it at no extra cost.\n\n"
    "The rule of thumb: an odd stride causes no conflicts. With an even stride, the number of ways is the greatest "
    "common divisor of the stride and 32: two for stride 2, four for stride 4, 32 for stride 32.",
    steps=[
        Step(
            name="stride 1",
            shows=["BANKS", "WORDS", "read_stride"],
            text="Lane `i` first reads word `i * stride`. Each of its later reads is 32 words further on, so it goes "
            "to the same bank. With stride 1, each lane reads from a different bank.",
        ),
        Step(
            name="number of ways",
            shows=["ways"],
            text="The number of ways can be computed before anything runs: take the distinct words that the lanes "
            "read, and count how many of them are in each bank. The largest count is the number of ways. With stride "
            "2, the lanes share banks in pairs. With stride 3, no two lanes share a bank, since 3 and 32 have no "
            "common factor. With stride 32, all lanes read from the same bank.",
        ),
    ],
    look_at=[
        "Compare the 'ways' and 'wavefronts' columns. An n-way conflict takes n wavefronts per read, so the two "
        "columns grow almost in proportion. 'wavefronts' also includes the store with which each thread fills its "
        "word, and stores cause no conflicts here. With stride 1, the 264 x 32 warps take 64 + 1 wavefronts each: "
        "549,120. 'conflicts' counts the additional wavefronts that bank conflicts cause.",
        "Stride 3 is as good as stride 1. Only common factors with the number of banks matter.",
        "In the last row, all lanes read the same word. The bank sends it to all of them at once: a **broadcast**.",
        "On the H200, reads with a 2-way conflict take 1.69 times as long as reads with stride 1, and reads with a "
        "32-way conflict take 27 times as long. The factors are smaller than 2 and 32 because even stride 1 reaches "
        "only 84 % of the limit.",
    ],
    exercise=Exercise(
        task="One warp loads a tile of 32 x 32 elements into shared memory. Then each lane sums one row of the tile. "
        "At each step, the lanes read elements that are 32 words apart, all of which are in the same bank. Remove the "
        "conflicts without using more shared memory, that is, without padding.",
        hints=[
            "A lane may add the elements of its row in any order, and the order may differ from lane to lane.",
            "At each step the 32 lanes should read from 32 different columns of the tile.",
            "Let lane `i` begin at column `i`. Where does it go after the last column?",
        ],
        answer="Lane `i` begins at column `i` and wraps around at the end of its row. At every step, the lanes read "
        "from 32 different columns, which are in 32 different banks. The elements are integers, so any order gives the "
        "same sum.",
        check=check,
    ),
    course="One of the lectures on which the tour is based lists the conflicts of these five accesses, in this order: "
    "none, 2-way, none, 32-way, none. It gives no times.",
)
