"""The lesson of `dot_product`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

BLOCK = 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Find the largest number of each block, all of them negative, in whole blocks and in a part of one."""
    for size in (2 * BLOCK, 2 * BLOCK - 100, 5):
        x = -1 - np.random.default_rng(5).random(size, np.float32)
        blocks = blocks_for(size, BLOCK)
        largest = poisoned(blocks, np.float32)
        answer["largest"][blocks, BLOCK](cuda.to_device(x), largest, size)
        expected = np.array([x[BLOCK * block : BLOCK * (block + 1)].max() for block in range(blocks)], np.float32)
        yield compare(f"the largest numbers of {blocks} blocks, of {size:,} in all", largest.to_host(), expected)


LESSON = Lesson(
    learn=[
        "How a block adds its numbers in a tree, in log2 N steps with a barrier each.",
        "What shuffles save: numbers that pass from register to register within a warp need neither shared memory nor "
        "a barrier.",
        "Which threads must come to `__syncthreads()`, and what threads do that have no number.",
    ],
    steps=[
        Step(
            name="an atomic a thread",
            shows=["dot_atomic"],
            text="Every thread adds its product to the one total.",
        ),
        Step(
            name="tree in shared memory",
            shows=["product", "dot_tree"],
            text="In each step half of the threads add the other half's sums. The barrier stands outside the branch, "
            "so that all threads come to it. A thread beyond the end takes part with a zero.",
        ),
        Step(
            name="shuffles, atomic a warp",
            shows=["product", "warp_sum", "dot_warps"],
            text="The tree of a warp runs in registers, without shared memory and without a barrier.",
        ),
        Step(
            name="shuffles, atomic a block",
            shows=["product", "block_sum", "dot_block"],
            text="The sums of the warps are joined through shared memory, with one barrier.",
        ),
        Step(
            name="four loads of each array",
            shows=["dot_of", "dot_grid<4>"],
            text="A fixed grid strides over the arrays by loads of 16 bytes, four from each array in flight.",
        ),
        Step(
            name="barrier in a branch",
            shows=["dot_in_branch"],
            text="WRONG: threads beyond the end do not come to the barrier in the branch, and wait at another one.",
            compared_with="tree in shared memory",
        ),
        Step(
            name="barrier in the tree's if",
            shows=["dot_in_tree"],
            text="WRONG: only the threads that add come to the barrier.",
            compared_with="tree in shared memory",
        ),
    ],
    look_at=[
        "The columns 'atomics' and 'wavefronts': the tree and the shuffles make as few atomics, and the shuffles use "
        "shared memory a fifth as often.",
        "The notes of the last rows: the simulator names the barrier that some threads have passed while others wait. "
        "They run there alone, since a GPU may wait forever.",
        "On a GPU only the last variants come near the bandwidth of reading: what counts is how many bytes are in "
        "flight.",
    ],
    exercise=Exercise(
        task="The kernel finds the largest number of each block by a tree. Threads beyond the end of the array return "
        "at once. A barrier does not wait for threads that have ended, and yet the result of the last block is wrong. "
        "Mend it.",
        hints=[
            "What does the tree read in the places of the threads that have returned? All numbers may be negative.",
        ],
        answer="Nothing is ever written to the places of those threads, and the tree compares with what happens to lie "
        "there. So all threads stay, and those beyond the end bring the neutral element, which is minus infinity for a "
        "maximum. A zero would be larger than every negative number.",
        check=check,
    ),
    course="The courses give no times for this topic.",
)
