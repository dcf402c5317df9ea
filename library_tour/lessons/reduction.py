"""The lesson of `reduction`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most, number_of
from ..stop import Check

BLOCKS, THREADS = 8, 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum squares that add exactly, one per thread or fewer than there are threads; count the atomics."""
    for size in (BLOCKS * THREADS, BLOCKS * THREADS - 77, 1):
        x = np.random.default_rng(5).integers(-9, 10, size).astype(np.float32)
        total = cuda.zeros(1, np.float32)
        launch = answer["sum_of_squares"][BLOCKS, THREADS].bind(cuda.to_device(x), total, size)
        counted = counters.count(launch, ["atomics"])
        expected = np.array([np.square(x).sum()], np.float32)
        yield compare(f"the sum of {number_of(size, 'square')}", total.to_host(), expected)
        yield at_most(f"{BLOCKS} blocks perform at most {BLOCKS} atomic additions", counted["atomics"], BLOCKS)


LESSON = Lesson(
    why="A sum looks like a job for a simple loop. Launch 536 million threads, each of which adds its element to a "
    "single total, and an H200 takes 943 ms, while NumPy on the host takes 30 ms. The additions are performed one "
    "after another, so the threads spend nearly all their time waiting for each other. The last kernels of this lesson "
    "take 0.48 ms, which is as fast as memory can deliver the elements.\n\n"
    "Sums, minima, norms and dot products are all **reductions**: many elements become one value. They share one "
    "pattern, and this lesson builds it.",
    learn=[
        "explain why additions to a single total are slow, however many threads perform them.",
        "add up the values of a warp with shuffles, and those of a block through shared memory.",
        "keep enough loads in flight to read at full memory bandwidth.",
        "explain why the bits of a float sum depend on the order of additions, and fix that order.",
    ],
    idea="An **atomic** operation reads, modifies and writes a word without interference from other threads. Atomic "
    "additions to the same address are serialised: the hardware performs them one after another.\n\n"
    "A tree needs fewer steps. Add the elements in pairs, then the sums in pairs, and so on: n elements need log2 n "
    "steps, and the additions within a step are independent. Within a warp the tree needs no memory, since a "
    "**shuffle** passes a value from a register of one lane to a register of another. Five steps add 32 values. The "
    "warps of a block exchange their sums through shared memory, with a barrier between writing and reading. One value "
    "per block remains.\n\n"
    "The rule of thumb: add in registers first, then within the warp, then within the block, and only then in global "
    "memory. Each level leaves far fewer values for the next, slower one.",
    steps=[
        Step(
            name="one atomic per element",
            shows=["sum_atomic"],
            text="Every thread adds its element to the total. All of these additions go to the same address.",
        ),
        Step(
            name="one atomic per block",
            shows=["warp_sum", "block_sum", "sum_block"],
            text="Each block first adds up its own elements: those of each warp with shuffles, then the sums of the "
            "warps through shared memory. One thread per block adds the result to the total. A thread without an "
            "element contributes zero instead of returning, because a shuffle that reads from a thread that has "
            "returned gets an undefined value.",
        ),
        Step(
            name="per block, with CUB",
            shows=["sum_block_cub"],
            text="The CUB library provides this block reduction. It takes one line of code and is just as fast.",
        ),
        Step(
            name="fixed grid, vector loads",
            shows=["fold_group", "strided_fold", "sum_grid<1>"],
            text="The grid has only as many blocks as the device can hold at once, and strides over the array. Each "
            "thread loads four elements at a time and adds them to a sum in a register. `Operation` is a struct that "
            "provides the operation and its identity element: `Sum` here, and others in the rows for the minimum and "
            "maximum. Each thread now takes part in the tree once, not once per element.",
        ),
        Step(
            name="four loads in flight",
            shows=["fold_group", "strided_fold", "sum_grid<4>"],
            text="Each thread issues four loads before it uses the first value. The four loads share one wait for "
            "memory.",
        ),
        Step(
            name="two passes",
            shows=["block_fold", "fold_partials"],
            text="Each block stores its sum, and a second launch with one block adds up these sums. There are no "
            "atomics, so the order of additions is the same in every run, and so is every bit of the result.",
        ),
        Step(
            name="two passes, one launch",
            shows=["finished", "sum_once"],
            text="The block that finishes last performs the second pass, which saves a launch. Each block stores its "
            "sum and then increments a counter of finished blocks. The fence between the two makes the sum visible to "
            "the last block. That block reads the sums with `__ldcg`, which bypasses the L1 cache.",
        ),
    ],
    look_at=[
        "The 'atomics' column shows how many atomic instructions the warps execute. The count falls from one per 32 "
        "elements to one per block, and to none with two passes in two launches. The count of the first variant may "
        "look small, but each of these instructions still performs 32 float additions to one address in global memory, "
        "one after another.",
        "With vector loads, which read four elements each, the count in the 'loads' column falls to a quarter.",
        "The 'error' column shows the relative error of a sum of random numbers. A single total is rounded at each "
        "addition. Once it has reached 2^24, adding a number below one no longer changes it: on an H200, the first "
        "variant loses 94 % of the sum. A tree adds values of similar size and stays accurate.",
        "On an H200, the variant with one atomic per block reaches 561 GB/s. A fixed grid with vector loads reaches "
        "4,340 GB/s. With four loads in flight, it reaches 4,453 GB/s, or 96.4 % of the limit.",
    ],
    exercise=Exercise(
        task="Sum the squares of `n` elements with at most one atomic addition per block. A block has 256 threads. "
        "There are at least as many threads as elements, and `total` starts at zero.",
        hints=[
            "Work in the order of the lesson: each warp adds up the values of its lanes, then one warp adds up the "
            "sums of the warps. A thread beyond the end of the array must not return early, because shuffles read from "
            "its lane. Let it contribute zero.",
            "`__shfl_down_sync(0xffffffff, value, step)` returns the value of the lane whose index is larger by "
            "`step`. With steps of 16, 8, 4, 2 and 1, lane 0 gets the sum of its warp.",
            "Lane 0 of each warp stores its sum in an array of 8 elements in shared memory. After `__syncthreads()` "
            "the first warp reads these, with zeros in its other lanes, and shuffles again.",
        ],
        answer="Each warp adds up its values with shuffles and stores the sum. After the barrier, the first warp adds "
        "up these sums with shuffles too, and its lane 0 performs the only atomic addition of the block. No thread "
        "returns early: threads beyond the end contribute zero.",
        check=check,
    ),
    course="The 'course ms' column is from lectures on GPU programming. It shows the time for 256 sums of 2^29 floats "
    "on a T1000 and on its host, divided by 256. The notes below the table discuss the sums that the lectures report.",
)
