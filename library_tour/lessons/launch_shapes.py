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
    """Add matrices of several shapes; count sectors and lanes; check that very long matrices are allowed."""
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
            yield Check(fact, covered, f"A grid of {grid} with blocks of {block} does not cover it.")


LESSON = Lesson(
    why="The same kernel, on the same H200, cools an array of cells at 0.13 GB/s or at 2,688 GB/s. The only difference "
    "is in the two values between the angle brackets of the launch: one thread in one case, one thread per cell in the "
    "other.\n\n"
    "The shape of a block also matters. With blocks of 32 x 8 threads, two matrices are added at 3,135 GB/s. With "
    "blocks of 1 x 256 threads, the rate is only 440 GB/s, although both blocks have 256 threads.",
    learn=[
        "choose a grid and a block for one-, two- or three-dimensional data.",
        "say which threads of a block form a warp.",
        "explain why the number of threads per block should be a multiple of 32, and why `x` should run along adjacent "
        "elements in memory.",
        "explain why a few threads leave most of a GPU idle.",
        "recognise shapes that are refused.",
    ],
    idea="A grid and a block each have up to three dimensions. That is a convenience for indexing: the hardware "
    "numbers the threads of a block consecutively, along x first, then y, then z. Each group of 32 consecutive threads "
    "forms a **warp**, and its threads are the warp's **lanes**. A warp executes one instruction at a time for all of "
    "its lanes:\n\n"
    "```\n"
    "block of 32 x 2   warp 0: threads 0-31, row y = 0\n"
    "                  warp 1: threads 32-63, row y = 1\n"
    "block of 33       warp 0: threads 0-31\n"
    "                  warp 1: thread 32, and 31 idle lanes\n"
    "block of 3 x 3    warp 0: threads 0-8, and 23 idle lanes\n"
    "```\n\n"
    "Idle lanes cost as much as busy ones. Memory is fetched in **sectors** of 32 bytes. If the lanes of a warp load "
    "32 adjacent floats, the warp touches 4 sectors. If they load floats from 32 different rows, it touches 32 sectors "
    "and wastes most of their bytes.\n\n"
    "A block runs on one multiprocessor, and blocks may run in any order. A single block therefore leaves 131 of an "
    "H200's 132 multiprocessors idle.\n\n"
    "The rule of thumb: use 128 or 256 threads per block, at least 32 of them along x. Let x run along the rows of the "
    "data, and launch far more blocks than the device has multiprocessors.",
    steps=[
        Step(
            name="every thread's number",
            shows=["number_threads"],
            text="Along each axis, a thread's index in the grid is `blockIdx * blockDim + threadIdx`. The kernel also "
            "gives each thread a number. It numbers the threads block by block; x varies fastest, both among the "
            "blocks and among the threads of a block.",
        ),
        Step(
            name="1 thread",
            shows=["cooled", "stride_over", "cool"],
            text="One step of cooling moves the temperature of every cell halfway to 20 degrees. `stride_over` is the "
            "grid-stride loop from the `daxpy` exercise, so the same kernel runs with a single thread or with one "
            "thread per cell. A `__device__` function can be called from kernels, and `__host__ __device__` compiles "
            "`cooled` for both the host and the device. `stride_over` is a **template** that accepts any function as "
            "the body of the loop. Here the body is `[=](unsigned i) { ... }`, a **lambda**: an unnamed function that "
            "captures copies of the surrounding variables.",
        ),
        Step(
            name="matrix, 32 x 8",
            shows=["matrix_add"],
            text="One thread per element of a matrix. x is the column index. The elements of a row are adjacent in "
            "memory, so each warp of a 32 x 8 block reads 32 adjacent elements of one row. The kernel is correct for "
            "blocks of any shape, and fast for those whose warps run along rows.",
            compared_with="every thread's number",
        ),
        Step(
            name="shapes that are refused",
            shows=["REFUSED", "refused"],
            text="Each shape violates one limit. cudart-py says which one before the launch reaches the driver. Each "
            "message begins with the name of the kernel, `empty_kernel`. The driver's own error does not identify the "
            "axis.",
        ),
    ],
    look_at=[
        "The kernels in the rows from '1 thread' to 'one thread per cell' do the same work per cell. A single thread "
        "is slow because it waits hundreds of cycles for each load, and nothing else runs in the meantime.",
        "Without a GPU, the 'active lanes' column shows the average number of active lanes per instruction. A block of "
        "one thread still occupies a whole warp, with 31 idle lanes. Blocks of 3 x 3 use 9 of 32 lanes.",
        "`matrix, 1 x 256` keeps its lanes busy, yet it is slow. The 'sectors/load' column shows why: each lane reads "
        "from a different row.",
        "On the page with pictures, the plot of the rate against the threads per block has a sawtooth shape. A block "
        "of 33 threads needs two warps, as many as a block of 64.",
    ],
    exercise=Exercise(
        task="Write `shape(rows: int, columns: int)`. It returns a grid and a block, each as a pair of sizes in x and "
        "y. With this shape, the `matrix_add` kernel must compute every element of a matrix. If the number of columns "
        "is a multiple of 32, all lanes of a warp must be active, and a warp's load must touch only four sectors. The "
        "launch must also be allowed for matrices of 1,000,000 x 3 and 3 x 100,000,000 elements.",
        hints=[
            "Which threads form the first warp of a block of 32 x 16? Which elements do they read?",
            "A grid may have up to 65,535 blocks in y, and more than two billion in x. With blocks of 32 x 8, how many "
            "rows does the largest grid cover?",
            "65,535 blocks of 16 rows cover 1,048,560 rows.",
        ],
        answer="Each row of the block is a warp whose lanes run along a row of the matrix. The grid has at most 65,535 "
        "blocks in y, so blocks of 16 rows cover up to 1,048,560 rows. Blocks of 8 rows would cover only 524,280.",
        check=check,
    ),
    course="The rates in the 'course GB/s' column are computed from times given in lectures on GPU programming: 10 "
    "steps over 5.12 million cells took 4.15 s with 1 thread, 2.06 s with 2, 0.037 s with 256 and 0.0003 s with one "
    "thread per cell. The lectures do not name the card.",
)
