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
    """Fill an array with launches of several shapes and with several seeds.

    Of 1,999 numbers with 24 bits, two unrelated arrays share 0.2 on average, at any indices.
    """
    filled = {}
    for seed, grid, block in ((7, 8, 256), (7, 4, 128), (7, 1, 32), (8, 8, 256), (9, 8, 256)):
        out = poisoned(COUNT, np.float32)
        answer["fill"][grid, block](out, seed, COUNT)
        filled[seed, grid, block] = out.to_host()
    first = filled[7, 8, 256]
    yield compare("512 threads draw the same numbers as 2,048 threads", filled[7, 4, 128], first)
    yield compare("32 threads draw the same numbers as 2,048 threads", filled[7, 1, 32], first)
    yield Check("all numbers are greater than 0 and at most 1", bool(((first > 0) & (first <= 1)).all()))
    yield at_most("at most 2 duplicates", COUNT - np.unique(first).size, 2)
    error = abs(float(first.mean(dtype=np.float64)) - 0.5) * np.sqrt(12 * COUNT)
    yield at_most("the mean is 1/2, within 5 standard errors", error, 5)
    for seed in (8, 9):
        shared = np.intersect1d(filled[seed, 8, 256], first).size
        yield at_most(f"seeds 7 and {seed} have at most 4 numbers in common, at any indices", shared, 4)


LESSON = Lesson(
    why="A simulation is only as good as its random numbers, and often it spends more time on them than on anything "
    "else. On an H200, cuRAND's Philox generator fills memory at 3,624 GB/s, 77 % of the write bandwidth, while MTGP32 "
    "reaches 665 GB/s. In your own kernel, Philox reaches 4,158 GB/s, and there the numbers need not go to memory at "
    "all.\n\n"
    "For integrals, random numbers may not even be the best choice. With 65,536 quasi-random points, the error of this "
    "stop's integral is about 1,900 times smaller than with the same number of random points.",
    learn=[
        "choose a cuRAND generator by its speed, the size of its state, its period, and whether its sequence can start "
        "at any position.",
        "say how many numbers one call should draw.",
        "decide when to draw numbers in your own kernel instead of storing them in memory.",
        "explain why quasi-random points integrate better than random ones.",
    ],
    idea="A **pseudo-random generator** advances a state and derives numbers from it. Threads need independent "
    "sequences, so each thread has its own state. Before its first use, the state must be set to a position in the "
    "sequence. Philox's state is a counter, so that costs almost nothing. For XORWOW, it takes many operations.\n\n"
    "A **quasi-random** sequence, such as the Sobol sequence, does not imitate chance. Each new point falls into a gap "
    "that the others have left. The error of an integral then falls almost as fast as 1/n. With random points, it "
    "falls only as fast as 1/sqrt(n). But quasi-random points are not independent, so the spread of their values says "
    "nothing about the error. To estimate the error, shift all points by a random vector, modulo 1, repeat this with "
    "several vectors, and take the standard error of the integrals.\n\n"
    "The list compares cuRAND's generators. The sizes are those of the states in `curand_kernel.h`. The **period** is "
    "the length of a sequence before it repeats. If a sequence can start at any position, the argument `offset` of "
    "`curand_init` and of `Generator` sets the position. The rates are those at which a call fills memory on an "
    "H200.\n\n"
    "- `philox`: 64 bytes per thread, any position, 3,624 GB/s. The state contains a 128-bit counter, so the "
    "period is at least 2^128.\n"
    "- `xorwow`: 48 bytes per thread, any position, 1,075 GB/s. The period is 2^192 - 2^32. It is cuRAND's default.\n"
    "- `mrg32k3a`: 48 bytes per thread, any position, 1,440 GB/s. The period is 2^191. In a kernel, it reaches only "
    "483 GB/s, and XORWOW 1,457.\n"
    "- `mtgp32`: a Mersenne Twister for GPUs with 4,112 bytes per block, shared by up to 256 threads. It has no "
    "offsets. It reaches 665 GB/s, and its period is 2^11213 - 1.\n"
    "- `mt19937`: the classic Mersenne Twister, which kernels cannot use. It has no offsets. It reaches 3,219 GB/s, "
    "and its period is 2^19937 - 1.\n"
    "- `sobol` and `sobol64`: quasi-random numbers of 32 and 64 bits; 140 and 536 bytes per thread and dimension, any "
    "position, 3,523 and 3,069 GB/s. The first point is 0 in all dimensions. Only `bits` returns that "
    "0: `uniform` returns numbers greater than 0, for this point 1.2e-10 in single precision.\n"
    "- `scrambled_sobol` and `scrambled_sobol64`: the same sizes, any position, 3,523 and 2,828 GB/s. The numbers are "
    "scrambled: each dimension starts at a constant of its own, not at 0.\n\n"
    "The rule of thumb: draw as many numbers per call as memory allows, or draw them in the kernel that uses them. Use "
    "Philox unless you have a reason not to.",
    steps=[
        Step(
            name="philox",
            shows=["drawn", "generator_row[numbers:error]"],
            text="A `Generator` fills arrays on the device. The check counts how many numbers fall into each of 64 "
            "bins, and uses a chi-squared test to decide whether chance explains the differences between the counts.",
        ),
        Step(
            name="normal, philox",
            shows=["DISTRIBUTIONS", "distribution_row[distribution:found]"],
            text="Other distributions are computed from uniformly distributed numbers. `DISTRIBUTIONS` gives the "
            "method of the generator, the dtype, the parameters, and the exact mean and variance with which the stop "
            "compares the numbers.",
        ),
        Step(
            name="in a kernel, xorwow",
            shows=["uniform", "uniform_kernel"],
            text="In a kernel, `curand_init` sets a thread's state to a position in the sequence, and `curand_uniform` "
            "continues from there. A kernel that uses the numbers itself need not store them in memory.",
        ),
        Step(
            name="in a kernel, philox",
            shows=["uniform_philox"],
            text="Philox computes each number from the seed and its position in the sequence alone, so its state is a "
            "counter and `curand_init` costs almost nothing. It produces four numbers at a time.",
        ),
        Step(
            name="Sobol, beside SciPy",
            shows=["quasi_rows[got:different]", "quasi_rows[ours:theirs]"],
            text="The points of Sobol are the same in cuRAND and in SciPy, bit for bit, because both use the direction "
            "numbers of Joe and Kuo. cuRAND stores them coordinate by coordinate. Scrambled points differ, since each "
            "library scrambles in its own way, but they cover the cube about as evenly: the **discrepancy** measures "
            "how far the share of the points in a box differs from its volume.",
        ),
        Step(
            name="integral, quasi-random",
            shows=["integrand", "integrate", "sobol"],
            text="The points of the Sobol sequence fill the cube evenly: each new point falls into a gap.",
        ),
    ],
    look_at=[
        "For a generator, the 'error' column does not show a computational error. It shows by how many standard "
        "deviations chi squared exceeds its mean, which may be a few even for good random numbers.",
        "On an H200, Philox reaches 77 % of the write bandwidth, and 89 % in a kernel. MTGP32 reaches 14 %.",
        "When the stop runs on a GPU, the page with pictures also has a plot of the rate against the number of random "
        "numbers per call. Up to about ten thousand numbers, a call takes as long as an empty one.",
        "In the plot for the integral, on the same page, the error falls as 1/sqrt(n) with random points, and almost "
        "as fast as 1/n with quasi-random points.",
    ],
    exercise=Exercise(
        task="`fill` writes random numbers greater than 0 and at most 1. In the given kernel, each thread has its own "
        "sequence and draws its elements from it one after another. The numbers therefore depend on the launch shape, "
        "and a program gives different results on a device with more multiprocessors. Make `out[i]` depend only on the "
        "seed and on `i`. Different seeds, even adjacent ones, must give unrelated sequences.",
        hints=[
            "`curand_init(seed, sequence, offset, &state)`: which of its arguments may depend on the thread?",
            "None of them. Do not add `i` to the seed either: element `i` of one seed would then be element `i + 1` "
            "of the seed before. If the sequence is `i`, the number depends only on the seed and `i`. What must move "
            "into the loop then?",
        ],
        answer="Element i is the first number of sequence i. For Philox that costs little, because its state is a "
        "counter. XORWOW would need many operations to reach each sequence. The seed is the same for all elements. "
        "With `seed + i` instead, two adjacent seeds would give the same numbers, shifted by one element, and the runs "
        "of a simulation with seeds 1, 2, 3, … would not be independent.",
        check=check,
    ),
    course="The lectures on which the tour is based cover these libraries, but give no figures for them.",
)
