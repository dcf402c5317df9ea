"""The lesson of `logical_and`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most, number_of
from ..stop import Check

BLOCK = 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Look for elements above a limit in arrays with none, one or several; count the atomics."""
    size = 5 * BLOCK - 77
    for above in ([], [size - 1], [3, 40, 70, BLOCK, size - 1]):
        x = np.zeros(size, np.float32)
        x[above] = 2
        found = cuda.zeros(1, np.int32)
        launch = answer["any_above"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(x), 1.0, found, size)
        counted = counters.count(launch, ["atomics"])
        fact = f"{number_of(len(above), 'element')} above the limit"
        yield compare(f"{fact}: the result", found.to_host(), np.array([bool(above)], np.int32))
        blocks = len({index // BLOCK for index in above})
        yield at_most(f"{fact}: only blocks that contain one execute an atomic", counted["atomics"], blocks)


LESSON = Lesson(
    why="Are all elements of an array true? A reduction tree can answer that, just as it computes a sum, but the "
    "hardware has something faster for truth values: a vote. On an H200, a kernel with a tree and one atomic per block "
    "reads at 916 GB/s, and a kernel with one vote per block reads at 1,633 GB/s. A kernel with a fixed grid, votes "
    "and several loads in flight reads at 4,446 GB/s, 96 % of the limit.\n\n"
    "The question also allows an early exit, since a single zero settles it. And it invites a mistake that no compiler "
    "reports: a shuffle after `&&`.",
    learn=[
        "use a reduction tree with any operation that is associative and commutative.",
        "combine the truth values of a block at a barrier, with a vote.",
        "explain why a shuffle after `&&` is wrong.",
        "say what an early exit saves, and what it costs if the array is read to the end.",
    ],
    idea="A reduction needs an operation for which the order does not matter: it must be **associative** and "
    "**commutative**. A logical AND is both, so the tree of shuffles and shared memory works with `&` in place of "
    "`+`.\n\n"
    "For truth values, a block has a shortcut. `__syncthreads_and(value)` is a barrier that also tells each thread "
    "whether the value is true for all threads of the block. One instruction replaces the tree. Only blocks that "
    "contain a zero then write to the result.\n\n"
    "The rule of thumb: combine truth values with votes, and let all lanes execute each shuffle, in a separate "
    "statement.",
    steps=[
        Step(
            name="one atomic per thread",
            shows=["and_atomic"],
            text="Every thread uses an atomic operation to combine its truth value with the result.",
        ),
        Step(
            name="tree, one atomic per block",
            shows=["warp_and", "and_tree"],
            text="The reduction tree of a sum, with `&` in place of `+`.",
        ),
        Step(
            name="one vote per block",
            shows=["join", "and_vote"],
            text="`__syncthreads_and()` combines the truth values of the block at a barrier. Thread 0 writes only if "
            "the block contains a zero.",
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
            text="A thread that finds a zero sets the result to false immediately. In each round, all threads also "
            "read the result so far, and they return once it is false.",
        ),
        Step(
            name="shuffle after &&",
            shows=["and_skips_shuffle"],
            text="Wrong on purpose. `&&` evaluates its right operand only if the left one is true. A lane whose value "
            "is false skips the shuffle, so other lanes read from a lane that does not take part. The result of such a "
            "read is undefined.",
        ),
    ],
    look_at=[
        "Compare the 'atomics' and 'instructions' columns. The vote takes half as many instructions as the tree, and "
        "only blocks with a zero execute an atomic.",
        "Read the note on the last row. In it, the simulator identifies the lane that the shuffle read from, and "
        "reports that this lane did not take part.",
        "The second table shows the effect of the early exit. Without a GPU, it shows the number of loads. With the "
        "early exit, this number depends on the position of the zero. Without the early exit, the kernel always reads "
        "the whole array. On the H200, the kernel finishes after 0.08 ms instead of 0.97 ms if the first element is "
        "zero. If the zero is elsewhere, the gain depends on when the block that finds it runs.",
        "For an array without a zero, the early exit costs little on the H200: the kernel reads at 4,366 instead of "
        "4,446 GB/s.",
    ],
    exercise=Exercise(
        task="Determine whether any element is above a limit. For now, every thread that finds one executes an atomic "
        "operation. Let only one thread per block do so, and only in blocks that contain such an element. `found` is "
        "initially zero.",
        hints=[
            "There is a barrier that tells all threads of a block whether a condition holds for any of them.",
            "It is `__syncthreads_or(condition)`. It combines the conditions of all threads of the block that have not "
            "returned, and all of these threads must reach it.",
            "What should a thread without an element pass as its condition? Which thread writes, and when?",
        ],
        answer="A thread without an element passes false. The vote combines the conditions of the block, and thread 0 "
        "writes if any of them is true.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic.",
)
