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

# Rows and columns: the first is made of whole warps, so that its counts are exact.
SHAPES = ((96, 128), (45, 70), (1, 1000), (333, 1))
# Each is too long for one axis of the grid or of the block.
LARGE = ((1_000_000, 3), (3, 100_000_000))
SECTORS, LANES = 4, 32


def check(answer: ModuleType) -> Iterator[Check]:
    """Add matrices of several shapes, count sectors and lanes, and ask whether a launch over long ones is allowed."""
    kernel = load("launch_shapes")["matrix_add"]
    for rows, columns in SHAPES:
        a, b = np.random.default_rng(5).random((2, rows, columns), np.float32)
        total = poisoned((rows, columns), np.float32)
        grid, block = answer.shape(rows, columns)
        launch = kernel[grid, block].bind(cuda.to_device(a), cuda.to_device(b), total, rows, columns)
        counted = counters.count(launch, ["sectors/load", "active lanes"])
        yield compare(f"all elements of {rows} x {columns} are computed", total.to_host(), a + b)
        if columns % LANES == 0:
            yield at_most(f"a load of a warp touches {SECTORS} sectors", counted["sectors/load"], SECTORS)
            yield Check(
                f"all {LANES} lanes of a warp have an element",
                float(counted["active lanes"]) == LANES,
                f"{float(counted['active lanes']):.1f} have one on average.",
            )
    for rows, columns in LARGE:
        grid, block = answer.shape(rows, columns)
        fact = f"a matrix of {rows:,} x {columns:,} is covered by a launch that is allowed"
        covered = grid[0] * block[0] >= columns and grid[1] * block[1] >= rows
        try:
            kernel.configure(grid, block)  # prepared, and not run
        except ValueError as error:
            yield Check(fact, False, str(error))
        else:
            yield Check(fact, covered, f"a grid of {grid} with blocks of {block} does not cover it")


LESSON = Lesson(
    learn=[
        "A launch has a grid of blocks and a block of threads, with up to three dimensions each, and threads are "
        "numbered along x first.",
        "Why a block should have a multiple of 32 threads, and why x should run along neighbours in memory.",
        "Why few threads leave most of a GPU idle, however long each of them works.",
        "Which shapes are refused: more than 1,024 threads in a block or 64 of them in z, and more than 65,535 blocks "
        "in y or z.",
    ],
    steps=[
        Step(
            name="every thread's number",
            shows=["number_threads"],
            text="The place of a thread in the grid along each axis is `blockIdx * blockDim + threadIdx`. Its number "
            "counts blocks first and then threads, both with x fastest. 32 threads with consecutive numbers of a block "
            "make a warp.",
        ),
        Step(
            name="1 thread",
            shows=["cooled", "stride_over", "cool"],
            text="One step of cooling. `stride_over` shares `n` places among any number of threads, so that the same "
            "kernel runs with one thread and with a thread for each cell. `cooled` is one function for the "
            "host and for the device.",
        ),
        Step(
            name="matrix, 32 x 8",
            shows=["matrix_add"],
            text="A thread for each element of a matrix. x counts columns, whose elements are neighbours in memory, "
            "so a warp of a block of 32 x 8 threads reads 32 neighbours of one row. The kernel "
            "is right with every shape of block, and fast with those whose warps lie along rows.",
            compared_with="every thread's number",
        ),
        Step(
            name="shapes that are refused",
            shows=["REFUSED", "refused"],
            text="Each shape exceeds one limit. The toolkit says which, before anything reaches the driver; the "
            "driver's own answer names no axis.",
        ),
    ],
    look_at=[
        "The rows from '1 thread' to 'a thread a cell' do the same work. On an H200 they reached from 0.13 to "
        "about 2,650 GB/s: a single thread waits for each of its loads before it starts the next one.",
        "The column 'active lanes', counted where there is no GPU: a block of one thread still takes a warp, of which "
        "31 lanes are idle, and blocks of 3 x 3 use 9 lanes of 32.",
        "'matrix, 1 x 256' keeps its lanes busy, and yet it is slow: each lane reads another row, which the column "
        "'sectors/load' shows.",
        "The picture of threads a block has teeth: a block of 33 threads costs two warps, as one of 64 does.",
    ],
    exercise=Exercise(
        task="Write `shape(rows: int, columns: int)`, which returns the grid and the block, each with its sizes in x "
        "and y, with which the kernel `matrix_add` computes every element of a matrix. Where rows consist of whole "
        "groups of 32 elements, every lane of a warp has an element, and a load touches four sectors. The launch must "
        "be allowed for a matrix of 1,000,000 x 3 elements, too, and for one of 3 x 100,000,000.",
        hints=[
            "Which threads make the first warp of a block of 32 x 16? How many rows does the largest grid cover with "
            "blocks of 32 x 8?",
        ],
        answer="A row of the block is a warp along a row of the matrix. The grid has at most 65,535 blocks in y, so "
        "blocks of 16 rows reach 1,048,560 rows, where blocks of 8 reach 524,280. In x the grid may have more than two "
        "billion blocks.",
        check=check,
    ),
    course="The rates in the column of the course are computed from the times of lectures on GPU programming: 10 steps "
    "over 5.12 million cells took 4.15 s with 1 thread, 2.06 s with 2, 0.037 s with 256 and 0.0003 s with a thread for "
    "each cell. The lectures do not name the card.",
)
