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
    """Look for elements above a limit among none, one or many such elements; count the atomics."""
    size = 5 * BLOCK - 77
    for above in ([], [size - 1], [3, 40, 70, BLOCK, size - 1]):
        x = np.zeros(size, np.float32)
        x[above] = 2
        found = cuda.zeros(1, np.int32)
        launch = answer["any_above"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(x), 1.0, found, size)
        counted = counters.count(launch, ["atomics"])
        fact = f"{len(above)} elements above the limit"
        yield compare(f"{fact}: the result", found.to_host(), np.array([bool(above)], np.int32))
        blocks = len({index // BLOCK for index in above})
        yield at_most(f"{fact}: only blocks with one make an atomic operation", counted["atomics"], blocks)


LESSON = Lesson(
    why="Are all elements of an array true? The tree of a sum answers it, but the hardware has something faster for "
    "truth values: a vote. On an H200 a tree with one atomic per block reads 915 GB/s, a vote per block 1,633 GB/s, "
    "and a fixed grid with votes and several loads in flight 4,437 GB/s, 96 % of the limit.\n\n"
    "The question also allows an early exit, since one zero settles it. And it invites a mistake that no compiler "
    "reports: a shuffle after `&&`.",
    learn=[
        "apply the tree of a sum to any operation that is associative and commutative.",
        "use a vote of the block to combine truth values at a barrier.",
        "explain why a shuffle after `&&` is wrong.",
        "say what an early exit saves, and what it costs an array that is read to its end.",
    ],
    idea="A reduction needs an operation whose order does not matter: it must be **associative** and **commutative**. "
    "A logical and is both. So the tree of shuffles and shared memory works with `&` in place of `+`.\n\n"
    "For truth values a block has a shortcut. `__syncthreads_and(value)` is a barrier that also tells each thread "
    "whether the value is true for all threads of the block. One instruction replaces the tree. Then only blocks that "
    "have a zero write to the result.\n\n"
    "The rule of thumb: combine truth values by votes. And execute each shuffle with all lanes, in a statement of its "
    "own.",
    steps=[
        Step(
            name="one atomic per thread",
            shows=["and_atomic"],
            text="Every thread combines its truth value with the result by an atomic operation.",
        ),
        Step(
            name="tree, one atomic per block",
            shows=["warp_and", "and_tree"],
            text="The tree of a sum, with `&` in place of `+`.",
        ),
        Step(
            name="one vote per block",
            shows=["join", "and_vote"],
            text="`__syncthreads_and()` combines the truth values of the block at a barrier. Thread 0 writes only if "
            "the block has a zero.",
        ),
        Step(
            name="four loads in flight",
            shows=["all_of", "strided_and", "and_grid<4>"],
            text="A grid of fixed size strides over the array. Each thread loads four elements at a time and has "
            "several such loads in flight.",
        ),
        Step(
            name="early exit",
            shows=["strided_and", "and_early<4>"],
            text="A thread that finds a zero writes at once. In each round all threads also read the result so far, "
            "and return once it is false.",
        ),
        Step(
            name="shuffle after &&",
            shows=["and_skips_shuffle"],
            text="WRONG: `&&` evaluates its right side only if the left one is true. A lane whose value is false skips "
            "the shuffle, and other lanes read from a lane that does not take part. The result of such a read is "
            "undefined.",
        ),
    ],
    look_at=[
        "Compare 'atomics' and 'instructions'. The vote takes half the instructions of the tree, and only blocks with "
        "a zero make an atomic.",
        "Read the note of the last row. The simulator says from which lane the shuffle read, and that this lane took "
        "no part.",
        "The second table shows the early exit. Without a GPU it counts loads: they follow the position of the zero, "
        "while the kernel without early exit always reads everything. On the H200 a zero in the first element ends the "
        "kernel after 0.08 ms instead of 0.97 ms. Elsewhere the gain depends on when the block with the zero runs.",
        "For an array without a zero, the early exit costs little on the H200: 4,366 instead of 4,437 GB/s.",
    ],
    exercise=Exercise(
        task="Tell whether any element is above a limit. So far every thread that finds one makes an atomic operation. "
        "Let only one thread per block do so, and only in blocks that have such an element. `found` is zero at the "
        "beginning.",
        hints=[
            "There is a barrier that tells all threads of a block whether a condition holds for any of them.",
            "It is `__syncthreads_or(condition)`. It combines the conditions of all threads of the block that have not "
            "returned, and all of these must reach it.",
            "What is the condition of a thread without an element? Which thread writes, and when?",
        ],
        answer="The condition of a thread without an element is false. The vote combines the conditions of the block, "
        "and thread 0 writes if any of them holds.",
        check=check,
    ),
    course="The lectures give no times for this topic.",
)
