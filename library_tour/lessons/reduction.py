"""The lesson of `reduction`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, THREADS = 8, 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum squares that add exactly, as many as there are threads and not as many; count the atomics."""
    for size in (BLOCKS * THREADS, BLOCKS * THREADS - 77, 1):
        x = np.random.default_rng(5).integers(-9, 10, size).astype(np.float32)
        total = cuda.zeros(1, np.float32)
        launch = answer["sum_of_squares"][BLOCKS, THREADS].bind(cuda.to_device(x), total, size)
        counted = counters.count(launch, ["atomics"])
        expected = np.array([np.square(x).sum()], np.float32)
        yield compare(f"the sum of {size:,} squares", total.to_host(), expected)
        yield at_most(f"{BLOCKS} blocks make {BLOCKS} atomic additions at most", counted["atomics"], BLOCKS)


LESSON = Lesson(
    learn=[
        "Why additions to one total are slow, however many threads make them: they are done one after the other.",
        "How a warp adds 32 numbers in five steps by shuffles, and a block adds its warps' sums in shared memory.",
        "Why few threads with several wide loads in flight read memory faster than many threads with one load each.",
        "Why the order of additions decides the bits of a sum of floats, and how to fix the order.",
    ],
    steps=[
        Step(
            name="an atomic an element",
            shows=["sum_atomic"],
            text="Every thread adds its element to the total. The additions to the one address are done one after "
            "the other.",
        ),
        Step(
            name="an atomic a block",
            shows=["warp_sum", "block_sum", "sum_block"],
            text="A block first adds its own numbers: the lanes of a warp by shuffles, then the warps' sums through "
            "shared memory. One thread of the block adds the result to the total. A thread without an element adds "
            "zero, since all threads must take part in the shuffles.",
        ),
        Step(
            name="the same with CUB",
            shows=["sum_block_cub"],
            text="CUB's block reduction does the same in one line.",
        ),
        Step(
            name="fixed grid, by four",
            shows=["fold_group", "strided_fold", "sum_grid<1>"],
            text="The grid is as large as the device can hold at once, and strides over the array. A thread loads 16 "
            "bytes at a time and adds in a register, so that the tree of shuffles is run once for many numbers.",
        ),
        Step(
            name="four loads in flight",
            shows=["fold_group", "strided_fold", "sum_grid<4>"],
            text="A thread starts four loads before it uses the first value. The memory's latency is then paid once "
            "for four loads.",
        ),
        Step(
            name="two passes",
            shows=["block_fold", "fold_partials"],
            text="Each block stores its sum, and a second launch with one block adds these sums. There are no atomics, "
            "so the order of additions is the same in every run, and so is every bit of the result.",
        ),
        Step(
            name="two passes at once",
            shows=["finished", "sum_once"],
            text="The block that finishes last does the second pass, which saves the second launch. Each block counts "
            "itself as finished; the fence before that makes its sum visible to the last block.",
        ),
    ],
    look_at=[
        "The column 'atomics' falls from one for each warp's instruction, which still adds 32 numbers one after the "
        "other, to one for each block, and to none.",
        "The column 'loads' falls to a quarter with loads of 16 bytes.",
        "The column 'error' for random numbers: a single total is rounded at each addition, and once it has reached "
        "2^24 a number below one no longer changes it. A tree adds numbers of similar size.",
    ],
    exercise=Exercise(
        task="Sum the squares of `n` numbers with at most one atomic addition a block. A block has 256 threads. There "
        "are at least as many threads as numbers, and `total` is zero at the beginning.",
        hints=[
            "`__shfl_down_sync(0xffffffff, value, step)` returns the value of the lane that is `step` further on. "
            "With steps of 16, 8, 4, 2 and 1, lane 0 gets the sum of its warp. An array in shared memory with one "
            "number for each warp joins the warps, after a barrier.",
        ],
        answer="Each warp adds by shuffles and stores its sum; after the barrier the first warp adds these sums in the "
        "same way. No thread returns early: those beyond the end take part with zero.",
        check=check,
    ),
    course="The times in the column of the course are from lectures on GPU programming: 256 sums of 2^29 floats on a "
    "T1000, divided by 256, and the same on its host. The sums that it printed are discussed below the table.",
)
