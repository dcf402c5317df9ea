"""The lesson of `logical_and`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK = 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Look for numbers above a limit where there are none, one or many; count the atomics."""
    size = 5 * BLOCK - 77
    for places in ([], [size - 1], [3, 40, 70, BLOCK, size - 1]):
        x = np.zeros(size, np.float32)
        x[places] = 2
        found = cuda.zeros(1, np.int32)
        launch = answer["any_above"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(x), 1.0, found, size)
        counted = counters.count(launch, ["atomics"])
        fact = f"{len(places)} numbers above the limit"
        yield compare(f"{fact}: the result", found.to_host(), np.array([bool(places)], np.int32))
        blocks = len({place // BLOCK for place in places})
        yield at_most(f"{fact}: only blocks that have one make an atomic", counted["atomics"], blocks)


LESSON = Lesson(
    learn=[
        "Why the tree of a sum can be used for every operation that is associative and commutative.",
        "What votes are: a barrier at which each thread of a block also learns whether a condition holds for all of "
        "them.",
        "Why a shuffle behind `&&` is wrong, and where it belongs.",
        "What an early exit saves, and what it costs for an array that is read to its end.",
    ],
    steps=[
        Step(
            name="an atomic a thread",
            shows=["and_atomic"],
            text="Every thread combines its truth value with the result by an atomic operation.",
        ),
        Step(
            name="tree, an atomic a block",
            shows=["warp_and", "and_tree"],
            text="The tree is that of a sum, with `&` in place of `+`.",
        ),
        Step(
            name="a block's vote",
            shows=["join", "and_vote"],
            text="`__syncthreads_and()` is a barrier that also joins the truth values of the block's threads. Nobody "
            "writes where there is no zero.",
        ),
        Step(
            name="four loads in flight",
            shows=["all_of", "strided_and", "and_grid<4>"],
            text="A grid of fixed size strides over the array. A thread loads 16 bytes at a time, and has several "
            "loads in flight.",
        ),
        Step(
            name="early exit",
            shows=["strided_and", "and_early<4>"],
            text="A thread that finds a zero says so at once, and all threads read the result so far once a round.",
        ),
        Step(
            name="shuffle behind &&",
            shows=["and_skips_shuffle"],
            text="WRONG: `&&` evaluates its right side only where the left one is true. A lane whose value is false "
            "leaves out the shuffle, and the others read from a lane that does not take part.",
        ),
    ],
    look_at=[
        "The columns 'atomics' and 'instructions': the vote takes half of the tree's instructions.",
        "The note of the last row: the simulator says from which lane the shuffle read, and that this lane took no "
        "part.",
        "The second table, without a GPU: with early exit the number of loads follows the place of the zero. Without "
        "early exit it is always the same. On the H200 the time is shortest where the zero is the first number, and "
        "depends otherwise on when the block that has the zero runs.",
    ],
    exercise=Exercise(
        task="Tell whether any number is above a limit. Every thread that finds one makes an atomic operation so far. "
        "Let only one thread of a block do so, and only in blocks that have such a number. `found` is zero at the "
        "beginning.",
        hints=[
            "There is a barrier that tells all threads whether the condition holds for any of them: "
            "`__syncthreads_or`. All threads of the block must come to it, also those without a number.",
        ],
        answer="The condition of a thread without a number is false. The vote joins the block's conditions, and "
        "thread 0 writes where one holds.",
        check=check,
    ),
    course="The courses give no times for this topic.",
)
