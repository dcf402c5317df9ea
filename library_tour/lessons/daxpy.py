"""The lesson of `daxpy`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most, uses_all_bytes
from ..stop import Check

BLOCKS, THREADS = 4, 64
# 32 adjacent doubles fill 8 sectors of 32 bytes.
SECTORS = 8


def check(answer: cuda.Module) -> Iterator[Check]:
    """Launch with fewer threads than elements; count sectors where all threads get the same number of elements."""
    for size in (16 * BLOCKS * THREADS, 5003):
        x, y = np.random.default_rng(5).integers(-99, 100, (2, size)).astype(np.float64)
        device_y = cuda.to_device(y)
        launch = answer["daxpy"][BLOCKS, THREADS].bind(2.0, cuda.to_device(x), device_y, size)
        counted = counters.count(launch, ["sectors/load", "load efficiency"])
        yield compare(f"{BLOCKS * THREADS} threads compute all {size:,} elements", device_y.to_host(), 2 * x + y)
        if size % (BLOCKS * THREADS) == 0:
            fact = f"a warp's load touches {SECTORS} sectors, as for adjacent elements"
            yield at_most(fact, counted["sectors/load"], SECTORS)
            yield uses_all_bytes("load", counted["load efficiency"])


LESSON = Lesson(
    why="How do you know when to stop optimising? On an H200, the kernel in this lesson, a single line of arithmetic, "
    "moves data at 4,343 GB/s. A plain copy within device memory reaches 4,304 GB/s. There is nothing left to gain, "
    "and no amount of tuning would make the kernel faster.\n\n"
    "*daxpy* computes y = a x + y for vectors of doubles. It is the standard example of a memory-bound kernel, and "
    "most kernels are memory-bound.",
    learn=[
        "count the bytes and operations of a kernel, and tell which of the two limits it.",
        "compare a kernel with a copy, and say how much faster it could still become.",
        "write a grid-stride loop, which works with any number of threads.",
    ],
    idea="A kernel can be no faster than the slower of its two tasks: moving the data and doing the arithmetic. For "
    "each element, *daxpy* reads 8 bytes of `x` and 8 of `y`, and writes 8 of `y`. For these 24 bytes, it performs two "
    "operations: a multiplication and an addition. Its **arithmetic intensity** is 1/12 operation per byte.\n\n"
    "In the time that an H200 takes to move 24 bytes at 4.8 TB/s, it could perform some 170 double-precision "
    "operations at 33 TFLOP/s. The kernel needs two, so the arithmetic is free, and memory bandwidth is the "
    "**limit**.\n\n"
    "The kernel below needs one thread per element. A **grid-stride loop** lifts that restriction: a thread computes "
    "several elements, and the distance between them is the number of threads in the grid. The exercise asks for such "
    "a loop.\n\n"
    "The rule of thumb: for a memory-bound kernel, count the bytes, and compare the kernel's rate with that of a copy. "
    "If the kernel is as fast as a copy, only moving fewer bytes can make it faster.",
    steps=[
        Step(
            name="daxpy",
            shows=["daxpy", "run"],
            text="Each thread computes one element. `blocks_for` rounds the number of blocks up, and `if (i < n)` "
            "stops the surplus threads, as in `vector_add`. The compiler turns the statement into one fused "
            "multiply-add, which rounds once, whereas NumPy rounds both the product and the sum. That is why the check "
            "allows a small tolerance. `bind` stores a launch together with its arguments. `measure` runs it, checks "
            "its result and, on a GPU, times it.",
        ),
    ],
    look_at=[
        "The limit for this stop is the rate of a copy within device memory. A copy reads as many bytes as it writes, "
        "and its rate counts both.",
        "On an H200, the kernel reaches 100.9 % of that limit. It can exceed 100 % because memory is slightly faster "
        "when it switches less often between reads and writes. For each element that it writes, *daxpy* reads two "
        "elements, and a copy reads only one.",
    ],
    exercise=Exercise(
        task="The kernel needs one thread per element. Rewrite it with a *grid-stride loop*, which computes all `n` "
        "elements with any number of blocks and threads. Adjacent threads must still read adjacent elements: a warp "
        "that reads 32 adjacent doubles touches 256 bytes, or 8 **sectors**. A sector is the 32-byte unit in which "
        "memory is fetched.",
        hints=[
            "Adjacent threads compute adjacent elements. So which element should a thread compute after its first?",
            "The grid has `gridDim.x * blockDim.x` threads. In one pass, they cover that many consecutive elements.",
            "Replace the test with a loop that starts at the thread's index, runs while `i < n`, and steps by the "
            "number of threads in the grid.",
        ],
        answer="In each pass of the loop, the whole grid covers one contiguous piece of the arrays, and adjacent lanes "
        "read adjacent elements. If each thread took its own contiguous piece instead, a single load by a warp would "
        "touch 32 different sectors. The loop's condition replaces the bounds check.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
