"""The lesson of `dot_product`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, number_of
from ..stop import Check

BLOCK = 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Find the largest element of each block, in full and in partial blocks; all elements are negative."""
    for size in (2 * BLOCK, 2 * BLOCK - 100, 5):
        x = -1 - np.random.default_rng(5).random(size, np.float32)
        blocks = blocks_for(size, BLOCK)
        largest = poisoned(blocks, np.float32)
        answer["largest"][blocks, BLOCK](cuda.to_device(x), largest, size)
        expected = np.array([x[BLOCK * block : BLOCK * (block + 1)].max() for block in range(blocks)], np.float32)
        case = f"{number_of(blocks, 'block')} over {size:,} elements"
        yield compare(f"the largest element of each block, {case}", largest.to_host(), expected)


LESSON = Lesson(
    why="A dot product reads two arrays once, so it should run at the speed of memory. On an H200, the first version "
    "with shuffles reads at 144 GB/s. With one atomic per block instead of one per warp, it reaches 1,102 GB/s. The "
    "last version reaches 4,491 GB/s, or 97 % of the limit. CuPy's dot product reaches 1,426 GB/s on the same "
    "card.\n\n"
    "This lesson compares two ways to add up the values of a block in a tree: in shared memory and in registers. It "
    "also shows the classic way to hang a GPU: a barrier that not all threads reach.",
    learn=[
        "add up the values of a block in a tree in shared memory, with one barrier per step.",
        "replace most of that tree with shuffles, and say what they save.",
        "tell whether a barrier in a branch or a loop is allowed.",
    ],
    idea="A block can add up its products in a tree: in each step, half of the remaining threads add the sums of the "
    "other half to their own, and after log2 n steps one sum is left. In shared memory, each step needs a barrier, "
    "because a thread reads what another thread has written. Within a warp, a **shuffle** passes a value directly from "
    "register to register. It needs neither memory nor a barrier.\n\n"
    "All threads of a block must reach the same `__syncthreads()`, the same number of times. Only threads that have "
    "returned are exempt. A barrier inside an `if` is allowed if all threads of the block take the same side. "
    "Otherwise the behaviour is undefined: the block may wait forever, or continue with incomplete sums.\n\n"
    "The rule of thumb: keep barriers outside branches, and let a thread without an element contribute a value that "
    "does not change the result.",
    steps=[
        Step(
            name="one atomic per thread",
            shows=["dot_atomic"],
            text="Every thread adds its product to a single total with an atomic.",
        ),
        Step(
            name="tree in shared memory",
            shows=["product", "dot_tree"],
            text="In each step, half of the remaining threads add the sums of the other half. The barrier is outside "
            "the branch, so that all threads reach it. A thread beyond the end contributes a zero.",
        ),
        Step(
            name="shuffles, atomic per warp",
            shows=["product", "warp_sum", "dot_warps"],
            text="Each warp adds up its products in registers, without shared memory and without a barrier. But each "
            "warp then performs an atomic addition.",
        ),
        Step(
            name="shuffles, atomic per block",
            shows=["product", "block_sum", "dot_block"],
            text="The warps write their sums to shared memory, and after one barrier the first warp adds them up.",
        ),
        Step(
            name="four loads of each array",
            shows=["dot_of", "dot_grid<4>"],
            text="A fixed grid strides over the arrays, with vector loads of four elements. Each thread has four such "
            "loads from each array in flight.",
        ),
        Step(
            name="barrier in a branch",
            shows=["dot_in_branch"],
            text="Wrong on purpose. Threads beyond the end of the arrays never reach the barrier in the branch. They "
            "wait at a later one instead.",
            compared_with="tree in shared memory",
        ),
        Step(
            name="barrier in the tree's if",
            shows=["dot_in_tree"],
            text="Wrong on purpose. Only the threads that add reach the barrier.",
            compared_with="tree in shared memory",
        ),
    ],
    look_at=[
        "Compare the 'atomics' and 'wavefronts' columns. The tree and the version with shuffles and one atomic per "
        "block perform the same number of atomics, but the shuffles need only a fifth of the wavefronts.",
        "On an H200, however, these two versions both take 7.8 ms. Something else limits them: with one element per "
        "thread, too few bytes are in flight.",
        "The 'atomics' column counts warp-level instructions. In the first version, such an instruction performs up to "
        "32 additions to the same total, one after another: 2,049 instructions perform 65,539 additions. With one "
        "atomic per warp, a single lane of each warp adds, so 2,056 instructions perform only 2,056 additions. On an "
        "H200, the first version, which is timed with 1/64 of the elements, reads at 4.55 GB/s, and the other at 144 "
        "GB/s.",
        "The version with one atomic per warp takes 59.7 ms, more than seven times as long as the version with one per "
        "block. First count the additions that atomics perform, then everything else.",
        "Read the notes for the last rows. The simulator identifies the barrier at which some threads wait while "
        "others have already gone past it. These kernels run only on the simulator, because a GPU might wait forever.",
    ],
    exercise=Exercise(
        task="The kernel finds the largest element of each block with a tree. Threads beyond the end of the array "
        "return immediately. A barrier does not wait for threads that have returned, and yet the result of the last "
        "block is wrong. Fix the kernel.",
        hints=[
            "Follow the tree in a block with fewer elements than threads. What does the tree read at the indices of "
            "the threads that have returned?",
            "Nothing was written there. Let all threads stay, and let those beyond the end write a value that is "
            "never the largest.",
            "Elements may be negative, so zero is too large. No element is smaller than minus infinity, "
            "`__int_as_float(0xff800000)`.",
        ],
        answer="In the given code, nothing is ever written at the indices of the threads that have returned, so the "
        "tree compares elements with whatever happens to be there. In the solution, all threads stay, and those "
        "beyond the end take part with minus infinity, which never changes a maximum. A zero would be larger than "
        "every negative element.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic.",
)
