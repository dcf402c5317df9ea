"""The lesson of `rand`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

COUNT = 1999


def check(answer: cuda.Module) -> Iterator[Check]:
    """Fill an array with launches of several shapes and with several seeds."""
    filled = {}
    for seed, grid, block in ((7, 8, 256), (7, 4, 128), (7, 1, 32), (8, 8, 256)):
        out = poisoned(COUNT, np.float32)
        answer["fill"][grid, block](out, seed, COUNT)
        filled[seed, grid, block] = out.to_host()
    first = filled[7, 8, 256]
    yield compare("512 threads make the same numbers as 2,048", filled[7, 4, 128], first)
    yield compare("32 threads make the same numbers as 2,048", filled[7, 1, 32], first)
    yield Check("they lie above 0 and up to 1", bool(((first > 0) & (first <= 1)).all()))
    yield at_most("equal numbers among them", COUNT - np.unique(first).size, 2)
    error = abs(float(first.mean(dtype=np.float64)) - 0.5) * np.sqrt(12 * COUNT)
    yield at_most("the mean is 1/2, within so many standard errors", error, 5)
    equal = int((filled[8, 8, 256] == first).sum())
    yield at_most("another seed makes other numbers; equal ones at a place", equal, 2)


LESSON = Lesson(
    learn=[
        "Which generators cuRAND has, and what they differ in: speed, size of the state, quality, and whether a "
        "sequence can be continued from any place.",
        "How many numbers a call should draw.",
        "When to draw numbers in a kernel of your own instead of in memory.",
        "Why quasi-random points integrate better than random ones.",
    ],
    steps=[
        Step(
            name="philox",
            shows=["generator_row", "drawn"],
            text="A `Generator` fills arrays of the device. The test counts the numbers in 64 bins and compares with "
            "what chance allows (chi squared).",
        ),
        Step(
            name="normal, philox",
            shows=["distribution_row"],
            text="Other distributions are computed from uniform numbers; their means and variances are checked.",
        ),
        Step(
            name="in a kernel, xorwow",
            shows=["uniform", "uniform_kernel"],
            text="In a kernel, `curand_init` puts a thread's state at a place of the sequence, and `curand_uniform` "
            "goes on from there. The numbers need no memory.",
        ),
        Step(
            name="in a kernel, philox",
            shows=["uniform_philox"],
            text="Philox computes a number from its place alone, so that its state is a counter and `curand_init` "
            "costs almost nothing. It makes four numbers at once.",
        ),
        Step(
            name="integral, quasi-random",
            shows=["integrand", "integrate", "sobol"],
            text="Points of the Sobol sequence fill the cube evenly: each new one falls into a gap.",
        ),
    ],
    look_at=[
        "The column 'error' of a generator is no error of a computation: good random numbers lie some standard "
        "deviations beside the mean, and not on it.",
        "On an H200, Philox fills memory at 78 % of the rate of writing, and in a kernel at 88 %; MTGP32 at 14 %.",
        "The picture of the rate against the numbers a call: up to some ten thousand numbers a call takes as long as "
        "an empty one.",
        "The picture of the integral: the error falls like 1 / sqrt(n) with random points, and nearly like 1 / n with "
        "quasi-random ones.",
    ],
    exercise=Exercise(
        task="`fill` writes random numbers above 0 and up to 1. A thread has a sequence of its own and continues it "
        "from one of its numbers to the next. So the numbers change with the shape of the launch, and a program gives "
        "other results on a device with more multiprocessors. Make `out[i]` depend on the seed and on i alone.",
        hints=[
            "`curand_init(seed, sequence, offset, &state)`: which of its arguments may depend on the thread?",
        ],
        answer="Element i is the first number of sequence i. For Philox that costs little, since its state is a "
        "counter; a generator such as XORWOW would have to compute its way to each sequence.",
        check=check,
    ),
    course="The courses show these libraries without figures for them.",
)
