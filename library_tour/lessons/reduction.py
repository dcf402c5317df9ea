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
    """Sum squares that add exactly, one per thread or fewer than there are threads; count the atomics."""
    for size in (BLOCKS * THREADS, BLOCKS * THREADS - 77, 1):
        x = np.random.default_rng(5).integers(-9, 10, size).astype(np.float32)
        total = cuda.zeros(1, np.float32)
        launch = answer["sum_of_squares"][BLOCKS, THREADS].bind(cuda.to_device(x), total, size)
        counted = counters.count(launch, ["atomics"])
        expected = np.array([np.square(x).sum()], np.float32)
        yield compare(f"the sum of {size:,} squares", total.to_host(), expected)
        yield at_most(f"{BLOCKS} blocks make at most {BLOCKS} atomic additions", counted["atomics"], BLOCKS)


LESSON = Lesson(
    why="A sum looks like a job for one loop. Give it to 536 million threads, each of which adds its element to one "
    "total, and an H200 takes 944 ms, while NumPy on the host takes 31 ms. The additions are made one after another, "
    "so the threads only wait for each other. The last kernels of this lesson take 0.48 ms, which is as fast as the "
    "memory delivers the elements.\n\n"
    "Sums, minima, norms and dot products are all **reductions**: many elements become one value. They share one "
    "pattern, and this lesson builds it.",
    learn=[
        "say why additions to one total are slow, however many threads make them.",
        "add up a warp with shuffles, and a block through shared memory.",
        "keep enough loads in flight to read at the full bandwidth of memory.",
        "explain why the order of additions decides the bits of a float sum, and fix that order.",
    ],
    idea="An **atomic** operation reads, changes and writes a word so that no other thread comes between. Atomic "
    "additions to the same address are made one after another.\n\n"
    "A tree needs fewer steps. Add the elements in pairs, then the sums in pairs, and so on: n elements need log2 n "
    "steps, and the additions of one step are independent. Within a warp the tree needs no memory, since a **shuffle** "
    "passes a value from the register of one lane to that of another: 32 values are added in five steps. The warps of "
    "a block exchange their sums through shared memory, after a barrier. What remains is one value per block.\n\n"
    "The rule of thumb: add in registers first, then within the warp, then within the block, and only then in global "
    "memory. Each level leaves far fewer values for the next, slower one.",
    steps=[
        Step(
            name="one atomic per element",
            shows=["sum_atomic"],
            text="Every thread adds its element to the total. All of these additions go to one address.",
        ),
        Step(
            name="one atomic per block",
            shows=["warp_sum", "block_sum", "sum_block"],
            text="A block first adds up its own elements: the lanes of each warp by shuffles, then the sums of the "
            "warps through shared memory. One thread per block adds the result to the total. A thread without an "
            "element adds zero instead of returning: a shuffle that reads from a thread that has returned gets an "
            "undefined value.",
        ),
        Step(
            name="per block, with CUB",
            shows=["sum_block_cub"],
            text="The library CUB has this block reduction ready-made. It takes one line and is as fast.",
        ),
        Step(
            name="fixed grid, vector loads",
            shows=["fold_group", "strided_fold", "sum_grid<1>"],
            text="The grid has only as many blocks as the device can hold at once, and strides over the array. Each "
            "thread loads four elements at a time and adds them to a sum in a register. `Operation` is a structure "
            "such as `Sum`, with the operation and its neutral element; the rows for minimum and maximum use others. "
            "The tree then runs once per thread, instead of once per element.",
        ),
        Step(
            name="four loads in flight",
            shows=["fold_group", "strided_fold", "sum_grid<4>"],
            text="A thread issues four loads before it uses the first value. The four share one wait for memory.",
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
            text="The block that finishes last makes the second pass, which saves a launch. Each block counts itself "
            "as finished. The fence before that makes its sum visible to the last block. That block reads the sums "
            "with `__ldcg`, which bypasses the L1 cache.",
        ),
    ],
    look_at=[
        "The column 'atomics' counts atomic instructions of warps. It falls from one per 32 elements to one per block, "
        "and, with two passes, to none. The first variant's instructions look few, but each of them still makes 32 "
        "additions, one after another.",
        "The column 'loads' falls to a quarter with vector loads, which read four elements each.",
        "The column 'error' is that of a sum of random numbers. A single total is rounded at each addition. Once it "
        "has reached 2^24, a number below one no longer changes it: on the H200 the first variant loses 94 % of the "
        "sum. A tree adds values of similar size and stays accurate.",
        "On the H200, one atomic per block reads 559 GB/s, the fixed grid with vector loads 4,336 GB/s, and four "
        "loads in flight 4,456 GB/s, 96.5 % of the limit.",
    ],
    exercise=Exercise(
        task="Sum the squares of `n` elements with at most one atomic addition per block. A block has 256 threads. "
        "There are at least as many threads as elements, and `total` is zero at the beginning.",
        hints=[
            "Work in the order of the lesson: each warp adds up its lanes, then one warp adds up the sums of the "
            "warps. A thread beyond the end must not return early, because shuffles read from its lane. Let it add "
            "zero.",
            "`__shfl_down_sync(0xffffffff, value, step)` returns the value of the lane that is `step` further on. With "
            "steps of 16, 8, 4, 2 and 1, lane 0 gets the sum of its warp.",
            "Lane 0 of each warp stores its sum in an array of 8 elements in shared memory. After `__syncthreads()` "
            "the first warp reads these, with zeros in its other lanes, and shuffles again.",
        ],
        answer="Each warp adds by shuffles and stores its sum. After the barrier the first warp adds up these sums in "
        "the same way, and its lane 0 makes the only atomic addition of the block. No thread returns early: threads "
        "beyond the end take part with zero.",
        check=check,
    ),
    course="The column 'course ms' is from lectures on GPU programming: 256 sums of 2^29 floats on a T1000 and on its "
    "host, divided by 256. The sums that the lectures print are discussed below the table.",
)
