"""The lesson of `monte_carlo`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

POINTS = 3001


def mixed(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return what the exercise's `mix` makes of numbers."""
    first = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    second = (first ^ first >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return second ^ second >> np.uint32(16)


def inside(points: int) -> int:
    """Return how many of the first points are in the quarter circle."""
    x, y = (mixed(np.arange(2 * points, dtype=np.uint32)) >> 8).astype(np.uint64).reshape(points, 2).T
    return int(np.count_nonzero(x * x + y * y < 2**48))


def check(answer: cuda.Module) -> Iterator[Check]:
    """Count with several numbers of threads, and in two launches."""
    expected = np.array([inside(POINTS)], np.uint32)
    for blocks, threads in ((1, 32), (3, 64), (32, 128)):
        total = cuda.zeros(1, np.uint32)
        answer["count_inside"][blocks, threads](0, POINTS, total)
        yield compare(f"{blocks * threads:,} threads count {POINTS:,} points", total.to_host(), expected)
    total = cuda.zeros(1, np.uint32)
    for first, points in ((0, 1000), (1000, POINTS - 1000)):
        answer["count_inside"][3, 64](first, points, total)
    yield compare("two launches try the same points as one", total.to_host(), expected)


LESSON = Lesson(
    learn=[
        "How a price is estimated as the mean of many simulated payoffs, and how wide its 95 % interval is.",
        "Why random numbers that are a function of an index suit a GPU: they need no memory, and any thread can "
        "compute those of any path.",
        "How to tell the error of few paths, which falls as one over the root of their number, from the error of the "
        "scheme, which more paths do not reduce.",
    ],
    steps=[
        Step(
            name="Random numbers in registers",
            shows=["product", "philox", "in_one_to_two", "normal_pair"],
            text="`philox` mixes a counter and a key in ten rounds, and returns four integers that look random. It has "
            "no state. The transform of Box and Muller makes two normal numbers of two integers, the radius and the "
            "angle of a point in the plane.",
        ),
        Step(
            name="Euler",
            shows=["Option", "Euler", "payoff", "price"],
            text="A thread simulates a path step by step. The counter consists of the path's index and the step, so "
            "that the path is the same whichever thread computes it. Payoffs and their squares are added in the "
            "thread's registers, then in the block, and each block stores two sums: the mean and its interval follow "
            "from them.",
        ),
        Step(
            name="Euler, fast math",
            shows=["SCHEMES"],
            text="The same kernel, compiled with `--use_fast_math`: logarithms, roots, sines and cosines are computed "
            "by approximate instructions. Their errors are far smaller than the interval.",
        ),
        Step(
            name="exact steps",
            shows=["LogSteps"],
            text="Only the scheme changes. The logarithm of the price makes steps that are exact for any length, and "
            "one exponential at the end gives the price.",
        ),
    ],
    look_at=[
        "The column '±' is half the width of the 95 % interval. Both schemes use the same random numbers, so that "
        "their estimates are off in the same direction.",
        "The exact price is 6.6348, but Euler's scheme with 100 steps has a mean of 6.63202. With 2^24 paths the "
        "interval is ± 0.0038, which still hides the difference of 0.0028.",
        "In the picture of errors, the half interval is a line with a slope of -1/2: four times as many paths halve "
        "it.",
        "An H200 took 3.2 ms for 2^24 paths without fast math and 1.5 ms with it. Nothing is read from memory; the "
        "limit is the number of instructions, about 19 for each step.",
    ],
    exercise=Exercise(
        task="Count how many random points of a square lie in its quarter circle. Each thread has a sequence of random "
        "numbers of its own, so that the count depends on the number of threads, and a second launch tries the same "
        "points again. Make the points a function of their index: point `i` has the coordinates `coordinate(2 * i)` "
        "and `coordinate(2 * i + 1)`. A launch takes `points` points from `first` on, and must give the same count "
        "with any number of threads.",
        hints=[
            "What does a thread have to know of the points that come before its own?",
        ],
        answer="Nothing has to be known of other points, so the state is gone. The loop's index, plus `first`, says "
        "which point it is, and the point's index says which random numbers are its own. A simulation can therefore be "
        "continued, repeated or spread over devices without sharing a random number twice.",
        check=check,
    ),
    course="The courses give no times for this topic. The option is that of a lecture on Monte Carlo methods: a start "
    "value and a strike of 50, a rate of 0.1, a volatility of 0.2, one year and 100 steps.",
)
