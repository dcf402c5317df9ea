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
    """Count the throws of a die, with more throws than threads; count the atomics on global memory."""
    for size in (4096, 1999):
        throws = np.random.default_rng(5).integers(0, SIDES, size).astype(np.int32)
        counts = cuda.zeros(SIDES, np.uint32)
        launch = answer["count_throws"][BLOCKS, BLOCK].bind(cuda.to_device(throws), counts, size)
        counted = counters.count(launch, ["atomics"])
        expected = np.bincount(throws, minlength=SIDES).astype(np.uint32)
        yield compare(f"each side is counted in {size:,} throws", counts.to_host(), expected)
        fact = f"{BLOCKS} blocks with {SIDES} counters each: at most {BLOCKS * SIDES} atomic additions to global memory"
        yield at_most(fact, counted["atomics"], BLOCKS * SIDES)


LESSON = Lesson(
    why="A histogram counts how many values fall into each bin. Its loop body is a single line, `counts[bin]++`. Run "
    "in parallel, that line is wrong: on the simulator it counts 10 of 4,096 values. Atomics in global memory give the "
    "right counts, but slowly: 18 GB/s on an H200 for 10 bins. With counters in shared memory and wide loads, the "
    "kernel reaches 4,311 GB/s, 240 times that rate, and memory bandwidth is the limit.\n\n"
    "The same steps apply wherever many threads update a few memory locations: counters, queues, sums by key.",
    learn=[
        "explain why `counts[bin]++` loses counts when many threads execute it.",
        "speed up atomics by giving each block its own counters in shared memory (privatisation).",
        "place the two barriers that such counters need.",
        "choose the scope of a `cuda::atomic_ref`.",
    ],
    idea="`counts[bin]++` is three steps: read the counter, add one, store the result. If two threads read the same "
    "value, both store the same result, and one count is lost. Such a conflict is a **data race**. An atomic addition "
    "makes the three steps indivisible.\n\n"
    "Atomics on the same address are executed one after another, so their speed depends on how many threads share a "
    "counter and how far away it is. Counters in global memory are updated in the L2 cache, which all multiprocessors "
    "share. Counters in shared memory are updated inside the multiprocessor, and only the threads of one block compete "
    "for them.\n\n"
    "The rule of thumb: give each block its own counters in shared memory, and merge them once at the end. Two "
    "barriers separate the phases: clear, count, merge.",
    steps=[
        Step(
            name="no atomics",
            shows=["bin_of", "first", "stride", "histogram_racy"],
            text="Each thread reads the counter, adds one and stores the result. Counts are lost, and the simulator "
            "reports the race.",
        ),
        Step(
            name="global atomics",
            shows=["histogram_atomic"],
            text="An atomic addition reads, adds and stores as one indivisible operation. All threads of the grid "
            "share the counters, so many additions wait for one another.",
        ),
        Step(
            name="private counters",
            shows=["clear", "merge", "histogram_private"],
            text="Each block has its own counters and adds them to the result at the end. The first barrier keeps "
            "threads from counting before the counters are zero. The second keeps them from merging before all threads "
            "have finished counting. The counters are still in global memory.",
        ),
        Step(
            name="block scope",
            shows=["histogram_scoped"],
            text="The same private counters, updated through `cuda::atomic_ref`. Its type specifies the **scope**: the "
            "threads that may use the counter at the same time. Here the scope only has to include the threads of the "
            "block.",
        ),
        Step(
            name="shared memory",
            shows=["histogram_shared"],
            text="The private counters are now in shared memory. Only one line differs from the kernel with private "
            "counters in global memory.",
            compared_with="private counters",
        ),
        Step(
            name="four loads in flight",
            shows=["histogram_vector"],
            text="Each thread loads four values at a time and has several such loads in flight. Memory bandwidth is "
            "now the limit.",
        ),
    ],
    look_at=[
        "Read the notes on 'no atomics' and 'no barriers'. For each race, the simulator reports both accesses and "
        "their source lines, even if the counts happen to be right.",
        "The number in the 'atomic sectors' column falls when the counters move into shared memory. Only the merge "
        "remains, since shared-memory atomics are not counted in this column. With 'four loads in flight', 16 of the "
        "65 blocks count all values, so only these add to the result. The others still clear and read their counters, "
        "and each thread executes more instructions to set up its loops, so the number of instructions does not fall.",
        "On a GPU, compare the columns for evenly spread values with those for equal values, where all threads update "
        "the same counter. On the H200, the kernel with global atomics drops from 18 to 5 GB/s. The kernel with "
        "counters in shared memory stays at 2,460 GB/s. If lanes of a warp add one to the same counter in shared "
        "memory and do not use the result, the hardware merges their additions. All other atomic additions to one word "
        "of shared memory are performed one after another. The simulator counts even the merged ones as bank "
        "conflicts.",
        "On the H200, the three scopes differ by at most a few percent, and all are slower than `atomicAdd` on the "
        "same counters. A narrow scope gives the compiler and the hardware more freedom, but does not guarantee more "
        "speed.",
        "The 'fetch_sub' row removes half of the values from the counts again. The 'fetch_and' row finds the empty "
        "bins: a mask begins with all bits set, and each value clears the bit of its bin. 'CUB's BlockHistogram' is "
        "CUB's algorithm for one block.",
    ],
    exercise=Exercise(
        task="Count how often each side of a die came up. For now, the kernel performs one atomic addition to "
        "global memory per throw. Let each block count in shared memory first, so that it performs at most six atomic "
        "additions to global memory.",
        hints=[
            "Follow the three phases of the lesson: clear, count, merge.",
            "Shared memory does not start out as zero. There are six counters and more threads than that: which "
            "threads clear them, and which merge them?",
            "All threads of the block must wait twice: after clearing and before merging. Put `__syncthreads()` where "
            "every thread reaches it, not inside an `if`.",
        ],
        answer="Six threads set the counters to zero. After a barrier, all threads count in shared memory. After a "
        "second barrier, six threads add the block's counters to the result.",
        check=check,
    ),
    course="The lectures on which the tour is based give no rates for their histogram. They say that the first version "
    "is wrong, the second is right but slow, and the last is fast. The rows show the same.",
)
