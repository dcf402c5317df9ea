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
    """Return what `mix` of the exercise returns for each element."""
    first = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    second = (first ^ first >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return second ^ second >> np.uint32(16)


def inside(points: int) -> int:
    """Return how many of the first `points` points lie in the quarter circle."""
    x, y = (mixed(np.arange(2 * points, dtype=np.uint32)) >> 8).astype(np.uint64).reshape(points, 2).T
    return int(np.count_nonzero(x * x + y * y < 2**48))


def check(answer: cuda.Module) -> Iterator[Check]:
    """Count with different numbers of threads, and in two launches."""
    expected = np.array([inside(POINTS)], np.uint32)
    for blocks, threads in ((1, 32), (3, 64), (32, 128)):
        total = cuda.zeros(1, np.uint32)
        answer["count_inside"][blocks, threads](0, POINTS, total)
        yield compare(f"{blocks * threads:,} threads count {POINTS:,} points", total.to_host(), expected)
    total = cuda.zeros(1, np.uint32)
    for first, points in ((0, 1000), (1000, POINTS - 1000)):
        answer["count_inside"][3, 64](first, points, total)
    yield compare("two launches count the same points as one", total.to_host(), expected)


LESSON = Lesson(
    why="A Monte Carlo simulation reads almost nothing and computes a lot, and every path is independent of the "
    "others. No workload suits a GPU better. An H200 simulates 2^24 paths of 100 steps in 1.5 ms, or more than 1.1 "
    "trillion steps per second, with a fresh random number for each step.\n\n"
    "Two things make this possible. The random numbers never touch memory: each thread computes them in registers, "
    "from the index of the path. And the compiler is allowed to use approximate functions, which doubles the speed and "
    "adds an error far below the statistical one.",
    learn=[
        "estimate a price as the mean of many simulated payoffs, and compute its 95 % confidence interval.",
        "explain why random numbers that are a function of an index suit a GPU.",
        "distinguish the statistical error, which falls as one over the square root of the number of paths, from the "
        "scheme's discretisation error, which more paths do not reduce.",
    ],
    idea="The option in this lesson is a European call. At the end of a year, at T = 1, it pays the amount by which "
    "the price S of a share exceeds the **strike** K, or nothing: its **payoff** is max(S - K, 0). The share price "
    "follows dS = S (r dt + sigma dW), where dW is normally distributed with variance dt. Initially S = 50, and K = "
    "50, r = 0.1 and sigma = 0.2. A step of length dt multiplies S by one of these factors, where z is a normally "
    "distributed random number:\n\n"
    "```\n"
    "Euler:  1 + r dt + sigma sqrt(dt) z\n"
    "exact:  e^((r - sigma^2 / 2) dt + sigma sqrt(dt) z)\n"
    "```\n\n"
    "Most random number generators have a **state**: each number is computed from the previous one. With "
    "thousands of threads, each needs its own state, and the result depends on how many threads there are. A "
    "**counter-based** generator has no state. It mixes a counter and a key until the result looks random. If the "
    "counter consists of the path's index and the step, any thread can compute any path, in any order, and always gets "
    "the same numbers.\n\n"
    "The estimated price is the mean of the discounted payoffs. The host discounts them: it multiplies their mean by "
    "e^(-r T). The estimate's standard error is the standard deviation of the payoffs divided by the square root of "
    "the number of paths. Half the width of a 95 % confidence interval is 1.96 times the standard error.\n\n"
    "The rule of thumb: four times as many paths halve the interval. Only a better scheme or shorter steps reduce the "
    "bias.",
    steps=[
        Step(
            name="random numbers in registers",
            shows=["product", "philox", "in_one_to_two", "normal_pair"],
            text="`philox` mixes a counter and a key in ten rounds and returns four integers that look random. It "
            "has no state. The Box-Muller transform turns two integers into two normally distributed numbers, using "
            "the radius and the angle of a point in the plane.",
        ),
        Step(
            name="Euler",
            shows=["Option", "Euler", "payoff", "price"],
            text="A thread simulates a path step by step. The counter consists of the index of the path and the step, "
            "so the path is the same whichever thread computes it. Each thread adds up its payoffs and their squares "
            "in registers, and these sums are then added within the block. Each block stores two sums, from which the "
            "host computes the mean and its interval.",
        ),
        Step(
            name="Euler, fast math",
            shows=["SCHEMES"],
            text="The same kernel, compiled with `--use_fast_math`. Logarithms, roots, sines and cosines are computed "
            "with approximate instructions. Their errors are far smaller than the interval.",
        ),
        Step(
            name="exact steps",
            shows=["LogSteps"],
            text="Only the scheme changes. The kernel now simulates the logarithm of the price, whose steps are exact "
            "however long they are, and one exponential at the end gives the price.",
        ),
    ],
    look_at=[
        "The '±' column shows half the width of the 95 % interval. Both schemes use the same random numbers, so their "
        "estimates are off in the same direction.",
        "The exact price is 6.6348, but Euler's scheme with 100 steps converges to 6.63202. With 2^24 paths the "
        "interval is ± 0.0038, which still hides the bias of 0.0028.",
        "In the error plot, on the page with pictures, half the width of the interval forms a line with a slope of "
        "-1/2: four times as many paths halve it.",
        "An H200 takes 3.2 ms for 2^24 paths without fast math and 1.5 ms with it. Nothing is read from memory, so the "
        "limit is the instruction rate. With fast math, a step takes about 19 instructions.",
        "Without a GPU, the 'registers' column shows how many registers the assembler has given each thread.",
    ],
    exercise=Exercise(
        task="Count how many random points in a square lie inside the quarter circle inscribed in it. In the given "
        "kernel, each thread has its own sequence of random numbers, so the count depends on the number of threads, "
        "and a second launch tests the same points again. Make the points a function of their index: point `i` has the "
        "coordinates `coordinate(2 * i)` and `coordinate(2 * i + 1)`. A launch tests `points` points, beginning with "
        "point `first`, and must give the same count with any number of threads.",
        hints=[
            "What does a thread have to know about the points that come before its own?",
            "Nothing, so `state` can go. Which number in the loop identifies a point, and what must be added "
            "to it for a second launch?",
        ],
        answer="A point does not depend on other points, so the state is gone. The loop index plus `first` identifies "
        "the point, and the index of the point determines its random numbers. A simulation can therefore be continued, "
        "or spread over several devices, without using a random number twice, and it can be repeated exactly.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic. The option is the one from a lecture "
    "on Monte Carlo methods: a spot price and a strike of 50, an interest rate of 0.1, a volatility of 0.2, one year "
    "and 100 steps.",
)
