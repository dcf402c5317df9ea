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
    why="Many problems have two levels of parallelism: many prices to compute, and many simulated paths for "
    "each. The same paths, the same arithmetic, and only a different assignment of the work to threads: on an "
    "H200, 64 start values with 65,536 paths each take 207 ms with one thread per start value, 6.6 ms with one "
    "warp each, and 0.38 ms with several blocks each. That is a factor of 548.\n\n"
    "No assignment is best for every shape. With 16,384 start values and the same number of paths in all, one warp "
    "each is as good as several blocks each.",
    learn=[
        "describe a nested simulation: an outer stage of start values, and an inner stage of paths from each of them.",
        "assign two levels of work to threads, warps, blocks and launches.",
        "choose the assignment from the shape of the problem: the number of start values, and the number of "
        "paths from each.",
    ],
    idea="A GPU is busy when every multiprocessor has many warps, and every warp has 32 active lanes. The first needs "
    "tens of thousands of threads in all. The second needs neighbouring lanes to have the same amount of work.\n\n"
    "With two nested levels you choose which of them the threads share. One thread per outer item gives few threads "
    "if there are few outer items. One warp per outer item needs at least 32 inner items. One or more blocks per "
    "outer item need hundreds of inner items. A separate launch per outer item needs enough inner items to fill the "
    "whole device.\n\n"
    "The rule of thumb: give each outer item enough threads to fill the device, but no more threads than it has inner "
    "items.",
    steps=[
        Step(
            name="one thread each",
            shows=["Stages", "sum_of_payoffs", "nested_threads"],
            text="A thread has one start value and simulates all paths from it, one after another. There is nothing "
            "to share and nothing to add up between threads. But with 64 start values only 64 threads work, on a "
            "device that can hold many thousands.",
        ),
        Step(
            name="one warp each",
            shows=["sum_of_payoffs", "nested_warps"],
            text="A warp has one start value. Lane 0 takes the paths 0, 32, 64 and so on, lane 1 the paths 1, 33, "
            "65 and so on, and shuffles add the sums of the lanes. There are 32 times as many threads for the same "
            "start values.",
        ),
        Step(
            name="several blocks each",
            shows=["sum_of_payoffs", "nested_blocks"],
            text="A start value has several blocks: `blockIdx.x` is the start value, and `blockIdx.y` is the block "
            "among those that share its paths. Each block stores its own sum, because blocks cannot wait for one "
            "another. The host adds the sums.",
        ),
        Step(
            name="one launch each",
            shows=["WAYS"],
            text="The kernel of the previous step, launched for one start value after another. This is the approach "
            "without nesting: each launch has only the paths of its own start value to fill the device with.",
        ),
    ],
    look_at=[
        "On the simulator, compare the columns of active lanes. 'one thread each' has 5 active lanes of 32 for "
        "5 start values, and 20 for 40, because the second warp has only 8. 'one warp each' has most lanes active for "
        "140 paths per start value, but few for 7.",
        "On an H200 with 64 start values and 2^22 paths in all, one thread each performs 2 billion steps per second, "
        "one warp each 64 billion, one launch each 678 billion, and several blocks each 1,111 billion.",
        "On an H200 with 16,384 start values and as many paths in all, one thread each performs 517 billion steps per "
        "second, one warp each 1,076 billion and several blocks each 1,111 billion.",
        "All variants simulate the same paths, because the random numbers follow from the index of the path, `outer * "
        "inner + i`.",
    ],
    exercise=Exercise(
        task="Sum the payoffs of random walks: `inner` walks from each of `outer` start values. In the given kernel a "
        "thread handles a whole start value. Distribute the work so that at least 28 lanes of a warp are active on "
        "average, both for 5 start values with 400 walks each and for 700 start values with 3 walks each. The number "
        "of threads is fixed. A walk is determined by its index, so any thread may compute any walk.",
        hints=[
            "One thread per start value suits one of the shapes, and one warp per start value suits the other. "
            "Forget the two levels for a moment: how many walks are there in all?",
            "Let one grid-stride loop run over all walks. To which start value does the walk with a given "
            "index belong?",
            "`walk / inner` is the start value. Several threads add to the same sum now, so the addition must "
            "be atomic.",
        ],
        answer="A grid-stride loop runs over all walks, whichever start value they belong to, and a division finds "
        "the start value. Each thread has the same number of walks, give or take one, for every shape. The price is "
        "one atomic addition and one division per walk. Integers add up to the same sums in any order. Sums of floats "
        "would differ in their last bits from run to run.",
        check=check,
    ),
    course="The lectures give no times for this topic. The start values, 20 + 80 j / m, and the option are those of a "
    "lecture on Monte Carlo methods.",
)
