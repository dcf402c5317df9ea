"""The lesson of `histogram`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, BLOCK, SIDES = 4, 128, 6


def check(answer: cuda.Module) -> Iterator[Check]:
    """Count the throws of a die, more than there are threads; count the atomics of global memory."""
    for size in (4096, 1999):
        throws = np.random.default_rng(5).integers(0, SIDES, size).astype(np.int32)
        counts = cuda.zeros(SIDES, np.uint32)
        launch = answer["count_throws"][BLOCKS, BLOCK].bind(cuda.to_device(throws), counts, size)
        counted = counters.count(launch, ["atomics"])
        expected = np.bincount(throws, minlength=SIDES).astype(np.uint32)
        yield compare(f"each side of {size:,} throws is counted", counts.to_host(), expected)
        fact = f"{BLOCKS} blocks of {SIDES} counters make {BLOCKS * SIDES} atomic additions to global memory at most"
        yield at_most(fact, counted["atomics"], BLOCKS * SIDES)


LESSON = Lesson(
    learn=[
        "Why `counts[bin]++` by many threads loses counts, and what an atomic addition does about it.",
        "How counters that fewer threads share, or that lie nearer to them, make the atomics faster.",
        "Where barriers belong when a block has counters of its own.",
        "What a thread scope of `cuda::atomic_ref` promises: which threads may use a counter at the same time.",
    ],
    steps=[
        Step(
            name="no atomics",
            shows=["bin_of", "first", "stride", "histogram_racy"],
            text="A thread reads the counter, adds one and stores the sum. Two threads that read the same value both "
            "store the same sum, and one count is lost. The simulator reports the race.",
        ),
        Step(
            name="global atomics",
            shows=["histogram_atomic"],
            text="An atomic addition reads, adds and stores in one piece. All threads of the device share the "
            "counters, and additions to one of them are done one after the other.",
        ),
        Step(
            name="block's own",
            shows=["clear", "merge", "histogram_private"],
            text="Each block counts by itself and adds its counters to the result at the end. One barrier keeps the "
            "threads from counting before the counters are zero, the other from merging before all have counted. "
            "The counters still lie in global memory.",
        ),
        Step(
            name="own, block scope",
            shows=["histogram_scoped"],
            text="`cuda::atomic_ref` says in its type which threads may use the counters at the same time. Those of "
            "the block are enough here.",
        ),
        Step(
            name="shared memory",
            shows=["histogram_shared"],
            text="The block's counters lie in shared memory. Only one line differs from the kernel with counters of "
            "each block in global memory.",
            compared_with="block's own",
        ),
        Step(
            name="four loads in flight",
            shows=["histogram_vector"],
            text="A thread loads 16 bytes at a time and has several loads in flight, until memory bandwidth is the "
            "limit. The times are compared with those of CUB's histogram.",
        ),
    ],
    look_at=[
        "The notes of the first two rows: the simulator names the two lines of the race, or the barrier that is "
        "missing, though the counts may be right by chance.",
        "The column 'atomic sectors' falls when the counters move into shared memory, to what the merging needs.",
        "On a GPU, compare the values that are uniform with those that are all equal: with one counter for all, the "
        "global atomics are slower by far, and the counters in shared memory are not.",
    ],
    exercise=Exercise(
        task="Count how often each side of a die was thrown. Every throw makes an atomic addition to global memory so "
        "far. Let each block count in shared memory first, so that it makes at most six of them.",
        hints=[
            "Counters in shared memory are not zero at the beginning, and there are more threads than counters. At "
            "which two places must all threads of the block wait?",
        ],
        answer="Six threads set the counters to zero; after a barrier all threads count in shared memory, and after a "
        "second one six threads add the block's counters to the result.",
        check=check,
    ),
    course="The course gives no rates for its histogram. It says that the first way is wrong, the second right and "
    "slow, and the last fast, which the rows show.",
)
