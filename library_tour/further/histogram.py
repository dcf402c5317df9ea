"""The further exercises of `histogram`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, at_most
from ..stop import Check

BLOCKS, BLOCK = 4, 128
LETTERS, BINS = 26, 8


def check_letters(answer: cuda.Module) -> Iterator[Check]:
    """Count the letters of texts that have other characters too."""
    for size in (4096, 1999):
        text = np.random.default_rng(5).integers(ord("A"), ord("z") + 1, size).astype(np.uint8)
        counts = cuda.zeros(LETTERS, np.uint32)
        launch = answer["count_letters"][BLOCKS, BLOCK].bind(cuda.to_device(text), counts, size)
        counted = counters.count(launch, ["atomics"])
        expected = np.bincount(text, minlength=256)[ord("a") : ord("z") + 1].astype(np.uint32)
        yield compare(f"each lowercase letter among {size:,} characters is counted", counts.to_host(), expected)
        yield at_most(f"{BLOCKS} blocks execute at most {BLOCKS} atomics", counted["atomics"], BLOCKS)


def check_copies(answer: cuda.Module) -> Iterator[Check]:
    """Count random values and equal ones; count the conflicts and the atomics."""
    random = np.random.default_rng(5).integers(0, BINS, 4096).astype(np.int32)
    for kind, values in (("random", random), ("equal", np.full(4096, 3, np.int32)), ("random", random[:1999])):
        counts = cuda.zeros(BINS, np.uint32)
        launch = answer["count"][BLOCKS, BLOCK].bind(cuda.to_device(values), counts, values.size)
        counted = counters.count(launch, ["atomics", "conflicts"])
        expected = np.bincount(values, minlength=BINS).astype(np.uint32)
        yield compare(f"{values.size:,} {kind} values are counted", counts.to_host(), expected)
        yield at_most(f"{kind} values: shared memory has no bank conflicts", counted["conflicts"], 0)
        most = BLOCKS * BINS
        yield at_most(f"{BLOCKS} blocks execute at most {most} atomics on global memory", counted["atomics"], most)


FURTHER = [
    Exercise(
        name="easy",
        task="Count the lowercase letters in a text. Each block counts in shared memory and adds its counts to the "
        "result at the end. The barriers are missing, so counts are lost, or start from memory that has not been set "
        "to zero yet. Add the two barriers that are needed, and no more.",
        hints=[
            "A thread may count a letter before another thread has set the counter for that letter to zero.",
            "A thread may add a counter to the result before all threads have finished counting.",
            "All threads of the block must reach a barrier, even one inside a loop or a branch. Here, both can be "
            "outside.",
        ],
        answer="One barrier separates clearing from counting, and the other separates counting from adding. Both are "
        "outside all branches. No barrier is needed inside the loop, since the counting is atomic.",
        check=check_letters,
    ),
    Exercise(
        name="hard",
        task="Count values from 0 to 7. Each block counts in shared memory. If many values are equal, the lanes of a "
        "warp add to the same word. In general, the hardware performs such additions one after another, and the "
        "simulator counts them as bank conflicts. (An H200 merges them only because each lane adds one and does not "
        "use the result.) Remove all conflicts, whatever the values are. A block has 128 threads and may execute at "
        "most eight atomics on global memory.",
        hints=[
            "There is room for more than one copy of the counters. How many copies does a warp need so that no two "
            "lanes ever use the same word?",
            "One copy per lane avoids equal words. Lay the copies out so that no two lanes use the same bank either.",
            "`count[value][lane]` is in bank `lane`, whatever the value is. At the end, a warp can read and sum the 32 "
            "copies of a counter.",
        ],
        answer="Each lane has its own copy of the eight counters, in its own bank: `copies[value][lane]`. The four "
        "warps of a block share the copies, so the additions stay atomic. At the end, each warp sums the 32 copies of "
        "two counters: its lanes read 32 consecutive words, and one lane adds the sum to the result.",
        check=check_copies,
    ),
]
