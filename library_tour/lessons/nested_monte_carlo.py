"""The lesson of `nested_monte_carlo`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step
from ..stop import Check
from .monte_carlo import mixed

BLOCKS, THREADS = 4, 128
WORDS = 8
LEAST_LANES = 28


def payoffs(outer: int, inner: int) -> NDArray[np.int32]:
    """Return the sums of the payoffs of the exercise's walks, one for each start value."""
    bits = mixed(np.arange(outer * inner * WORDS, dtype=np.uint32)).view(np.uint8)
    steps = np.unpackbits(bits).reshape(outer, inner, 32 * WORDS)
    ends = np.arange(outer)[:, None] + (2 * steps.astype(np.int32) - 1).sum(axis=2)
    sums: NDArray[np.int32] = np.maximum(ends, 0).sum(axis=1).astype(np.int32)
    return sums


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum the walks of few start values, and few walks from many; count the lanes that have something to do."""
    for outer, inner in ((5, 400), (700, 3), (1, 1)):
        sums = cuda.zeros(outer, np.int32)
        launch = answer["sum_payoffs"][BLOCKS, THREADS].bind(sums, outer, inner)
        counted = counters.count(launch, ["active lanes"])
        shape = f"{outer} x {inner} walks"
        yield compare(f"{shape} are summed", sums.to_host(), payoffs(outer, inner))
        if outer > 1:
            lanes = float(counted["active lanes"])
            fact = f"{shape}: at least {LEAST_LANES} lanes of 32 are active"
            yield Check(fact, lanes >= LEAST_LANES, f"There were {lanes:.1f}.")


LESSON = Lesson(
    learn=[
        "What a nested simulation is: an outer stage of start values, and an inner stage of paths from each of them.",
        "In which ways the two stages can be given to threads, warps, blocks and launches.",
        "Why the best way depends on the shape of the problem: how many start values there are, and how many paths "
        "from each.",
    ],
    steps=[
        Step(
            name="a thread each",
            shows=["Stages", "sum_of_payoffs", "nested_threads"],
            text="A thread has a start value and simulates all paths from it, one after the other. There is nothing to "
            "share and nothing to add up between threads. With 64 start values, though, only 64 threads work, on a "
            "device that can hold many thousands.",
        ),
        Step(
            name="a warp each",
            shows=["sum_of_payoffs", "nested_warps"],
            text="A warp has a start value. Lane 0 takes the paths 0, 32, 64 and so on, lane 1 the paths 1, 33, 65, "
            "and shuffles add the lanes' sums. There are 32 times as many threads for the same start values.",
        ),
        Step(
            name="blocks each",
            shows=["sum_of_payoffs", "nested_blocks"],
            text="A start value has several blocks: `blockIdx.x` is the start value, and `blockIdx.y` the block among "
            "those that share its paths. A block stores its own sum, since blocks do not wait for one another. The "
            "host adds the blocks' sums.",
        ),
        Step(
            name="a launch each",
            shows=["WAYS"],
            text="The kernel is that of the step before, launched for one start value after the other. This is the way "
            "without nesting: each launch has only the paths of its own start value to fill the device with.",
        ),
    ],
    look_at=[
        "Without a GPU, compare the columns of active lanes. 'a thread each' has 5 active lanes of 32 for 5 start "
        "values, and 20 for 40: the second warp has only 8. A warp each has most lanes active for 140 paths from a "
        "start value, but few for 7.",
        "On an H200 with 64 start values and 2^22 paths in all, 'a thread each' made 2 billion steps in a second, a "
        "warp each 64, a launch each about 680, and blocks each about 1,000.",
        "With 16,384 start values and as many paths in all, a thread each made 517 billion steps in a second there, "
        "and a warp and blocks each about 1,100.",
        "All ways simulate the same paths, because the random numbers follow from the path's index, "
        "`outer * inner + i`.",
    ],
    exercise=Exercise(
        task="Sum the payoffs of random walks: `inner` walks from each of `outer` start values. A thread has a whole "
        "start value. Give the work to the threads so that at least 28 lanes of a warp are active on average, for 5 "
        "start values with 400 walks each as well as for 700 start values with 3 walks each. The number of threads is "
        "fixed; walks are chosen by index, so any thread may compute any walk.",
        hints=[
            "A thread for each start value suits one shape, a warp for each the other one. Forget the two stages for "
            "a moment: how many walks are there in all, and to which start value does the walk with a given index "
            "belong?",
        ],
        answer="The threads stride over all walks, whichever start value these belong to, and a division finds the "
        "start value. Each thread has the same number of walks, give or take one, for every shape. The price is an "
        "atomic addition for each walk, and a division. Integers add to the same sums in any order; sums of floats "
        "would differ in their last bits from run to run.",
        check=check,
    ),
    course="The courses give no times for this topic. The start values, 20 + 80 j / m, and the option are those of a "
    "lecture on Monte Carlo methods.",
)
