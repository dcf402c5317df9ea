"""The lesson of `vector_add`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..device_code import blocks_for, load
from ..lesson import Exercise, Lesson, Step, number_of
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Add vectors that fill their blocks, vectors that end inside a block, and vectors shorter than one block."""
    kernel = load("vector_add")["vector_add"]
    for size in (1024, 1000, 77):
        a, b = np.random.default_rng(5).random((2, size), np.float32)
        with cuda.profile() as profile:
            total = answer.add(kernel, a, b)
        vectors = f"two vectors of {size:,} elements"
        yield compare(f"the sum of {vectors}", total, a + b)
        yield covers(vectors, size, profile.launches)


def covers(vectors: str, size: int, launches: Sequence[cuda.profiling.LaunchProfile]) -> Check:
    """Check that one launch of the kernel has one thread per element, and no more blocks than that takes."""
    fact = f"one launch with just enough blocks adds {vectors}"
    if len(launches) != 1:
        return Check(fact, False, f"The number of launches is {len(launches)}.")
    blocks, threads = prod(launches[0].grid), prod(launches[0].block)
    enough = blocks_for(size, threads)
    found = f"The grid has {number_of(blocks, 'block')} of {threads} threads; the elements need {enough:,}."
    return Check(fact, blocks == enough, found)


LESSON = Lesson(
    why="Adding two vectors is the smallest useful GPU program, and it already holds a surprise. On an H200, a kernel "
    "adds 67 million pairs of floats in 0.33 ms. Copying the input to the device and the sum back takes 33 ms, about "
    "100 times as long.\n\n"
    "So the kernel is rarely the whole story. A GPU pays off when data stays in its memory while many kernels work on "
    "it. This stop goes through one complete computation and times every phase.",
    learn=[
        "name the five phases of a GPU computation: allocate, copy in, launch, copy out, free.",
        "compute a thread's index, and the number of blocks for a given number of elements.",
        "explain why a kernel checks its index before it touches memory.",
        "say why the copies take most of the time if a kernel runs only once.",
    ],
    idea="The host and the device have separate memories. A kernel works on **device memory**, which ordinary host "
    "code cannot read. So the host allocates arrays there, copies the input in, launches the kernel, and copies the "
    "result out. The copies cross the link between host and device. On an H200, this link carries 55 GB/s, and the "
    "device's own memory is about 80 times as fast.\n\n"
    "A launch specifies how many blocks there are, and how many threads each block has. Every thread runs the same "
    "function and finds its own index:\n\n"
    "```\n"
    "block       0                 1                 2\n"
    "thread      0   1 ... 255     0   1 ... 255     0   1 ... 255\n"
    "index       0   1 ... 255   256 257 ... 511   512 513 ... 767\n"
    "```\n\n"
    "All blocks have the same number of threads, so the grid often has more threads than there are elements. The rule "
    "of thumb: round the number of blocks up, and let the surplus threads do nothing.",
    steps=[
        Step(
            name="launch",
            shows=["vector_add"],
            text="The kernel describes the work of one thread. `__global__` makes a C++ function a kernel. `extern "
            '"C"` turns off C++ name mangling, so the host can find the kernel by its plain name. `blockIdx.x * '
            "blockDim.x + threadIdx.x` is the thread's index in the grid. The thread adds the pair of elements at that "
            "index. The bounds check `if (i < n)` stops the surplus threads of the last block.",
        ),
        Step(
            name="all phases",
            shows=["BLOCK", "add"],
            text="This is the host code. `poison` fills the result with values that cannot be right, so that the check "
            "notices any element that no thread has written. The `phase` function measures the time of each phase, and "
            "`blocks_for` computes the number of blocks, rounded up. `kernel[blocks, threads](...)` is the launch; in "
            "C++ it is `kernel<<<blocks, threads>>>(...)`. A launch returns immediately, before the kernel has run. "
            "The copy back to the host waits for the kernel.",
        ),
    ],
    look_at=[
        "The 'MB' column shows how much data each phase allocates, moves or frees. The launch moves the most, because "
        "the kernel reads two vectors and writes one.",
        "On the H200, the launch also has by far the highest rate, 2,462 GB/s, because it uses the device's own "
        "memory. The copies cross the link and reach 28 and 20 GB/s. The lesson `copies` shows what limits them. The "
        "limit given with the table is the rate of a copy within device memory, so it applies only to the launch.",
        "The stop runs the computation twice and times the second run. The first one also pays for one-time setup, "
        "such as loading the kernel onto the device.",
    ],
    exercise=Exercise(
        task="The `add` function copies two vectors to the device, launches the kernel, and returns the sum. The "
        "result is right for 1,024 elements and wrong for 1,000. Fix it for vectors of any length, without changing "
        "the kernel: launch just enough blocks for one thread per element.",
        hints=[
            "How many threads does a grid of `a.size // THREADS` blocks have, and how many elements are there?",
            "1,000 elements need four blocks of 256 threads, because three blocks have only 768 threads.",
            "The division must round up. In Python, `-(-a // b)` does that.",
        ],
        answer="The number of blocks is rounded up, so that the last block covers the rest of the vector. Its surplus "
        "threads do nothing, because the kernel checks its index. The tour's function for this division is "
        "`blocks_for`.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
