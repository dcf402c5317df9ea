"""The lesson of `launch_shapes`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import load
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

# Rows and columns. The rows of the first consist of whole warps, so its counts are exact.
SHAPES = ((96, 128), (45, 70), (1, 1000), (333, 1))
# Each is too long for one axis of the grid or of the block.
LARGE = ((1_000_000, 3), (3, 100_000_000))
SECTORS, LANES = 4, 32


def check(answer: ModuleType) -> Iterator[Check]:
    """Add matrices of several shapes, count sectors and lanes, and check that launches for long ones are allowed."""
    kernel = load("launch_shapes")["matrix_add"]
    for rows, columns in SHAPES:
        a, b = np.random.default_rng(5).random((2, rows, columns), np.float32)
        total = poisoned((rows, columns), np.float32)
        grid, block = answer.shape(rows, columns)
        launch = kernel[grid, block].bind(cuda.to_device(a), cuda.to_device(b), total, rows, columns)
        counted = counters.count(launch, ["sectors/load", "active lanes"])
        yield compare(f"all elements of {rows} x {columns} are computed", total.to_host(), a + b)
        if columns % LANES == 0:
            yield at_most(f"a warp's load touches {SECTORS} sectors", counted["sectors/load"], SECTORS)
            yield Check(
                f"all {LANES} lanes of a warp are active",
                float(counted["active lanes"]) == LANES,
                f"{float(counted['active lanes']):.1f} are active on average.",
            )
    for rows, columns in LARGE:
        grid, block = answer.shape(rows, columns)
        fact = f"the launch for a matrix of {rows:,} x {columns:,} is allowed and covers it"
        covered = grid[0] * block[0] >= columns and grid[1] * block[1] >= rows
        try:
            kernel.configure(grid, block)  # prepared, and not run
        except ValueError as error:
            yield Check(fact, False, str(error))
        else:
            yield Check(fact, covered, f"a grid of {grid} with blocks of {block} does not cover it")


LESSON = Lesson(
    why="The same kernel, on the same H200, cools an array of cells at 0.13 GB/s or at 2,688 GB/s. Nothing differs but "
    "the two values between the brackets of the launch: one thread in one case, one thread per cell in the other.\n\n"
    "The shape of a block matters as well. Two matrices are added at 3,131 GB/s with blocks of 32 x 8 threads, and at "
    "440 GB/s with blocks of 1 x 256, although both have 256 threads.",
    learn=[
        "choose a grid and a block for data of one, two or three dimensions.",
        "say which threads of a block form a warp.",
        "explain why a block should have a multiple of 32 threads, and why `x` should index neighbouring elements in "
        "memory.",
        "say why few threads leave most of a GPU idle.",
        "name the shapes that are refused.",
    ],
    idea="A grid and a block have up to three dimensions each. That is a convenience for indexing; the hardware "
    "numbers the threads of a block in one line, along x first, then y, then z. 32 consecutive threads of that line "
    "form a **warp**, and its threads are the warp's **lanes**. A warp executes one instruction for all of its lanes "
    "at a time:\n\n"
    "```\n"
    "block of 32 x 2   warp 0: threads 0-31, row y = 0\n"
    "                  warp 1: threads 32-63, row y = 1\n"
    "block of 33       warp 0: threads 0-31\n"
    "                  warp 1: thread 32, and 31 idle lanes\n"
    "block of 3 x 3    warp 0: threads 0-8, and 23 idle lanes\n"
    "```\n\n"
    "Idle lanes cost as much as busy ones. When a warp loads, memory is fetched in **sectors** of 32 bytes. 32 "
    "neighbouring floats lie in 4 sectors; 32 floats of 32 different rows lie in 32 sectors, most of whose bytes are "
    "wasted.\n\n"
    "A block runs on one multiprocessor, and blocks may run in any order. One block therefore leaves 131 of an H200's "
    "132 multiprocessors idle.\n\n"
    "Rule of thumb: 128 or 256 threads per block, 32 or more of them along x, x along the rows of the data, and far "
    "more blocks than multiprocessors.",
    steps=[
        Step(
            name="every thread's number",
            shows=["number_threads"],
            text="Along each axis, a thread's index in the grid is `blockIdx * blockDim + threadIdx`. Its number "
            "counts the blocks first and then the threads within a block; in both, x varies fastest.",
        ),
        Step(
            name="1 thread",
            shows=["cooled", "stride_over", "cool"],
            text="One step of cooling: every cell moves halfway to 20 degrees. `stride_over` is the grid-stride loop "
            "from the exercise of `daxpy`, so the same kernel runs with one thread and with one thread per cell. "
            "`__host__ __device__` compiles `cooled` for both the host and the device. `stride_over` is a "
            "**template**: it accepts any function as its body. Here the body is `[=](unsigned i) { ... }`, a "
            "**lambda**, which is a function without a name that has copies of the variables around it.",
        ),
        Step(
            name="matrix, 32 x 8",
            shows=["matrix_add"],
            text="One thread per element of a matrix. x counts columns, whose elements are neighbours in memory, so "
            "each warp of a 32 x 8 block reads 32 neighbours of one row. The kernel is right for blocks of every "
            "shape, and fast for those whose warps lie along rows.",
            compared_with="every thread's number",
        ),
        Step(
            name="shapes that are refused",
            shows=["REFUSED", "refused"],
            text="Each shape exceeds one limit. cudart-py says which one, before anything reaches the driver. The "
            "driver's own error names no axis.",
        ),
    ],
    look_at=[
        "The rows from '1 thread' to 'one thread per cell' do the same work per cell. A single thread is slow because "
        "it waits hundreds of cycles for each load, and nothing else runs meanwhile.",
        "The column 'active lanes' is counted where there is no GPU. A block of one thread still occupies a warp, with "
        "31 idle lanes. Blocks of 3 x 3 use 9 of 32 lanes.",
        "`matrix, 1 x 256` keeps its lanes busy, and yet it is slow. The column 'sectors/load' says why: each lane "
        "reads a different row.",
        "The picture of threads per block has teeth. A block of 33 threads needs two warps, as many as a block of 64.",
    ],
    exercise=Exercise(
        task="Write `shape(rows: int, columns: int)`. It returns a grid and a block, each as sizes in x and y, with "
        "which the kernel `matrix_add` computes every element of a matrix. If the number of columns is a multiple of "
        "32, all lanes of a warp must be active, and a warp's load must touch four sectors. The launch must also be "
        "allowed for matrices of 1,000,000 x 3 and 3 x 100,000,000 elements.",
        hints=[
            "Which threads form the first warp of a block of 32 x 16? Which elements do they read?",
            "A grid may have 65,535 blocks in y, and more than two billion in x. How many rows does the largest grid "
            "cover with blocks of 32 x 8?",
            "65,535 blocks of 16 rows each cover 1,048,560 rows.",
        ],
        answer="Each row of the block is a warp that lies along a row of the matrix. The grid has at most 65,535 "
        "blocks in y, so blocks of 16 rows cover up to 1,048,560 rows, where blocks of 8 rows end at 524,280.",
        check=check,
    ),
    course="The rates in the column 'course GB/s' are computed from times in lectures on GPU programming: 10 steps "
    "over 5.12 million cells took 4.15 s with 1 thread, 2.06 s with 2, 0.037 s with 256 and 0.0003 s with one thread "
    "per cell. The lectures do not name the card.",
)
