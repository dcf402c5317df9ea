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
    yield compare("512 threads draw the same numbers as 2,048", filled[7, 4, 128], first)
    yield compare("32 threads draw the same numbers as 2,048", filled[7, 1, 32], first)
    yield Check("all are greater than 0 and at most 1", bool(((first > 0) & (first <= 1)).all()))
    yield at_most("at most 2 duplicates", COUNT - np.unique(first).size, 2)
    error = abs(float(first.mean(dtype=np.float64)) - 0.5) * np.sqrt(12 * COUNT)
    yield at_most("the mean is 1/2, within 5 standard errors", error, 5)
    equal = int((filled[8, 8, 256] == first).sum())
    yield at_most("another seed draws other numbers; at most 2 are equal", equal, 2)


LESSON = Lesson(
    why="A simulation is only as good as its random numbers, and often it spends more time on them than on anything "
    "else. On an H200, cuRAND's Philox generator fills memory at 3,626 GB/s, 78 % of the write bandwidth, while "
    "MTGP32 reaches 665 GB/s. In a kernel of your own, Philox reaches 4,137 GB/s, and there the numbers need not go "
    "to memory at all.\n\n"
    "And for integrals you may not want random numbers. With 65,536 quasi-random points the error of this stop's "
    "integral is about 1,900 times smaller than with as many random ones.",
    learn=[
        "choose a cuRAND generator by speed, size of its state, quality, and whether a sequence can start at "
        "any place.",
        "say how many numbers one call should draw.",
        "decide when to draw numbers in your own kernel instead of storing them in memory.",
        "explain why quasi-random points integrate better than random ones.",
    ],
    idea="A **pseudo-random generator** advances a state and derives numbers from it. Threads need independent "
    "sequences, so each has a state of its own, and a state must be placed in the sequence before its first use. For "
    "Philox the state is a counter, so that costs almost nothing; for XORWOW it takes many operations.\n\n"
    "A **quasi-random** sequence such as Sobol's does not imitate chance. Each new point falls into a gap that the "
    "others have left. The error of an integral then falls nearly like 1/n, where random points give 1/sqrt(n).\n\n"
    "The rule of thumb: draw as many numbers per call as memory allows, or draw them in the kernel that uses them; "
    "take Philox unless you have a reason not to.",
    steps=[
        Step(
            name="philox",
            shows=["generator_row", "drawn"],
            text="A `Generator` fills arrays on the device. The test counts the numbers in 64 bins and compares the "
            "counts with what chance allows (chi squared).",
        ),
        Step(
            name="normal, philox",
            shows=["distribution_row"],
            text="Other distributions are computed from uniform numbers. Their means and variances are checked.",
        ),
        Step(
            name="in a kernel, xorwow",
            shows=["uniform", "uniform_kernel"],
            text="In a kernel, `curand_init` puts the state of a thread at a place in the sequence, and "
            "`curand_uniform` goes on from there. The numbers need no memory.",
        ),
        Step(
            name="in a kernel, philox",
            shows=["uniform_philox"],
            text="Philox computes a number only from its place in the sequence, so its state is a counter and "
            "`curand_init` costs almost nothing. It produces four numbers at a time.",
        ),
        Step(
            name="integral, quasi-random",
            shows=["integrand", "integrate", "sobol"],
            text="Points of the Sobol sequence fill the cube evenly: each new point falls into a gap.",
        ),
    ],
    look_at=[
        "The column 'error' of a generator is not a computational error. Good random numbers deviate from the "
        "mean by up to a few standard deviations.",
        "On an H200, Philox runs at 78 % of the write bandwidth, and in a kernel at 88 %. MTGP32 runs at 14 %.",
        "On a GPU, a picture shows the rate against the numbers per call. Up to some ten thousand numbers, a "
        "call takes as long as an empty one.",
        "In the picture of the integral, the error falls like 1/sqrt(n) with random points, and nearly like "
        "1/n with quasi-random ones.",
    ],
    exercise=Exercise(
        task="`fill` writes random numbers greater than 0 and at most 1. In the given kernel each thread has a "
        "sequence of its own and continues it from one of its elements to the next. The numbers therefore change with "
        "the shape of the launch, and a program gives different results on a device with more multiprocessors. Make "
        "`out[i]` depend only on the seed and on i.",
        hints=[
            "`curand_init(seed, sequence, offset, &state)`: which of its arguments may depend on the thread?",
            "None of them. If the sequence is i, the number follows from i. What must move into the loop then?",
        ],
        answer="Element i is the first number of sequence i. For Philox that costs little, because its state is a "
        "counter. A generator such as XORWOW would have to compute its way to each sequence.",
        check=check,
    ),
    course="The lectures show these libraries but give no figures for them.",
)
