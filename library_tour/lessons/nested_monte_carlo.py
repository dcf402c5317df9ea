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
    """Return the sums of the payoffs of the walks in the exercise, one per start value."""
    bits = mixed(np.arange(outer * inner * WORDS, dtype=np.uint32)).view(np.uint8)
    steps = np.unpackbits(bits).reshape(outer, inner, 32 * WORDS)
    ends = np.arange(outer)[:, None] + (2 * steps.astype(np.int32) - 1).sum(axis=2)
    sums: NDArray[np.int32] = np.maximum(ends, 0).sum(axis=1).astype(np.int32)
    return sums


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum many walks from few start values and few walks from many; count the active lanes."""
    for outer, inner in ((5, 400), (700, 3), (1, 1)):
        sums = cuda.zeros(outer, np.int32)
        launch = answer["sum_payoffs"][BLOCKS, THREADS].bind(sums, outer, inner)
        counted = counters.count(launch, ["active lanes"])
        shape = f"{outer} x {inner} walks"
        yield compare(f"{shape} are summed", sums.to_host(), payoffs(outer, inner))
        if outer > 1:
            lanes = float(counted["active lanes"])
            fact = f"{shape}: at least {LEAST_LANES} lanes of 32 are active on average"
            yield Check(fact, lanes >= LEAST_LANES, f"There were {lanes:.1f}.")


LESSON = Lesson(
    why="Many problems have two levels of parallelism: many prices to compute, and many simulated paths for each "
    "price. The paths and the arithmetic can stay the same while the assignment of work to threads varies. On an H200, "
    "64 start values with 65,536 paths each take 207 ms with one thread per start value, 6.6 ms with one warp each, "
    "and 0.38 ms with several blocks each. That is a factor of 548.\n\n"
    "No assignment is best for every problem. With 16,384 start values and the same total number of paths, one warp "
    "each is nearly as fast as several blocks each.",
    learn=[
        "describe a nested simulation: an outer stage of start values, and an inner stage of paths from each.",
        "assign two levels of work to threads, warps, blocks and launches.",
        "choose the assignment according to the shape of the problem: the number of start values, and the number of "
        "paths from each.",
    ],
    idea="A GPU is fully busy when every multiprocessor has many warps, and every warp has 32 active lanes. The first "
    "condition requires tens of thousands of threads in total. The second requires the lanes of a warp to have the "
    "same amount of work.\n\n"
    "With two nested levels, you choose how many threads share an outer item. One thread per outer item yields few "
    "threads if there are few outer items. One warp per outer item needs at least 32 inner items. One or more blocks "
    "per outer item need hundreds of inner items. A separate launch per outer item needs enough inner items to fill "
    "the whole device.\n\n"
    "The rule of thumb: give each outer item enough threads to fill the device, but no more threads than it has inner "
    "items.",
    steps=[
        Step(
            name="one thread each",
            shows=["Stages", "sum_of_payoffs", "nested_threads"],
            text="Each thread handles one start value and simulates all paths from it, one after another. The threads "
            "share nothing, and their results need not be combined. But with 64 start values only 64 threads do any "
            "work, on a device that can hold many thousands.",
        ),
        Step(
            name="one warp each",
            shows=["sum_of_payoffs", "nested_warps"],
            text="Each warp handles one start value. Lane 0 takes paths 0, 32, 64 and so on, and lane 1 takes paths 1, "
            "33, 65 and so on. Shuffles then add up the sums of the lanes. The same start values now keep 32 times as "
            "many threads busy.",
        ),
        Step(
            name="several blocks each",
            shows=["sum_of_payoffs", "nested_blocks"],
            text="Several blocks share a start value: `blockIdx.x` is the index of the start value, and `blockIdx.y` "
            "numbers the blocks that share its paths. Each block stores its own sum, because blocks cannot wait for "
            "one another. The host adds the sums.",
        ),
        Step(
            name="one launch each",
            shows=["WAYS"],
            text="The kernel of the previous step, launched once per start value. This is the approach without "
            "nesting: each launch has only the paths of a single start value with which to fill the device.",
        ),
    ],
    look_at=[
        "On the simulator, compare the two columns of active lanes. For 'one thread each', 5 of 32 lanes are active "
        "with 5 start values. With 40 start values, 20 are active on average, because the second warp has only 8 "
        "active lanes. For 'one warp each', most lanes are active with 140 paths per start value, but few with 7.",
        "On an H200 with 64 start values and 2^22 paths in total, several blocks each reach 1.11 trillion steps per "
        "second. One launch each reaches 678 billion, one warp each 64 billion, and one thread each only 2 billion: 64 "
        "threads leave the device almost idle.",
        "On an H200 with 16,384 start values and the same total number of paths, one warp each is almost enough: it "
        "reaches 1.08 trillion steps per second, and several blocks each reach 1.11 trillion. One thread each reaches "
        "517 billion.",
        "All variants simulate the same paths, because the index of a path, `outer * inner + i`, determines its random "
        "numbers.",
    ],
    exercise=Exercise(
        task="Sum the payoffs of random walks: `inner` walks from each of `outer` start values. In the given kernel, "
        "one thread handles all walks from a start value. Distribute the work so that at least 28 lanes per warp are "
        "active on average, both for 5 start values with 400 walks each and for 700 start values with 3 walks each. "
        "The number of threads is fixed. A walk is determined by its index, so any thread may compute any walk.",
        hints=[
            "One thread per start value suits one of the shapes, and one warp per start value suits the other. Forget "
            "the two levels for a moment: how many walks are there in total?",
            "Use a single grid-stride loop over all walks. To which start value does the walk with a given index "
            "belong?",
            "`walk / inner` is the start value. Several threads now add to the same sum, so the addition must be "
            "atomic.",
        ],
        answer="A grid-stride loop runs over all walks, whichever start value they belong to, and a division finds the "
        "start value. Each thread has the same number of walks, give or take one, whatever the shape. The price is one "
        "atomic addition and one division per walk. Integer sums are the same in any order. Float sums would differ in "
        "their last bits from run to run.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic. The start values, 20 + 80 j / m, and "
    "the option come from a lecture on Monte Carlo methods.",
)
