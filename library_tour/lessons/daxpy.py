"""The lesson of `daxpy`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, THREADS = 4, 64
# A warp's 32 doubles fill 8 sectors of 32 bytes.
SECTORS = 8


def check(answer: cuda.Module) -> Iterator[Check]:
    """Launch the answer with fewer threads than elements; count sectors where each thread has as many elements."""
    for size in (16 * BLOCKS * THREADS, 5003):
        x, y = np.random.default_rng(5).integers(-99, 100, (2, size)).astype(np.float64)
        device_y = cuda.to_device(y)
        launch = answer["daxpy"][BLOCKS, THREADS].bind(2.0, cuda.to_device(x), device_y, size)
        counted = counters.count(launch, ["sectors/load"])
        yield compare(f"{BLOCKS * THREADS} threads compute all {size:,} elements", device_y.to_host(), 2 * x + y)
        if size % (BLOCKS * THREADS) == 0:
            fact = f"a load of a warp touches {SECTORS} sectors, as those of neighbouring elements do"
            yield at_most(fact, counted["sectors/load"], SECTORS)


LESSON = Lesson(
    learn=[
        "How a grid is cut into blocks so that each thread computes one element, and why the kernel tests its index.",
        "How to tell from bytes and operations that memory bandwidth, and not arithmetic, limits a kernel.",
        "Why a kernel that reaches the speed of a copy cannot be made faster except by moving fewer bytes.",
    ],
    steps=[
        Step(
            name="daxpy",
            shows=["daxpy", "run"],
            text="A thread computes one element. `blocks_for` rounds the number of blocks up, so the last block has "
            "threads with no element; `if (i < n)` keeps those from writing beyond the array. The compiler makes one "
            "fused multiply-add of the line, which rounds once, where NumPy rounds the product and the sum.",
        ),
    ],
    look_at=[
        "Each element moves 24 bytes: 8 bytes of `x` and 8 of `y` are read, and 8 of `y` are written. For these 24 "
        "bytes there are two operations. In the time in which an H200 moves 24 bytes, at 4.8 TB/s, it could do some "
        "170 operations in double precision, at 34 TFLOP/s.",
        "The column 'of limit' compares the kernel with a copy of the device's memory. A value near 100 % says that "
        "neither more threads nor other blocks can help.",
    ],
    exercise=Exercise(
        task="The kernel of the stop needs a thread for each element. Change it so that it computes all `n` elements "
        "with any number of blocks and threads, which is called a grid-stride loop. Neighbouring lanes of a warp must "
        "still read neighbouring elements.",
        hints=[
            "The grid has `gridDim.x * blockDim.x` threads in all. A thread that has computed element `i` continues "
            "with the element that lies this many further on.",
        ],
        answer="In each pass of the loop the whole grid covers a contiguous piece of the arrays, and lanes that are "
        "neighbours read neighbouring elements. If each thread took a contiguous piece instead, a load of a warp would "
        "touch 32 distant sectors. The loop's condition takes the place of the test of the index.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
