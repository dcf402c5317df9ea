"""The lesson of `synchronization`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK, WARPS = 256, 8
ROUNDS = 8
# A warp writes its elements at the beginning. In each round it reads at most twice and writes once.
ACCESSES = WARPS * (1 + 3 * ROUNDS)


def check(answer: cuda.Module) -> Iterator[Check]:
    """Form the running sums of full and partial blocks; count loads and accesses to shared memory."""
    for size in (2 * BLOCK, 3 * BLOCK - 77, 5):
        x = np.random.default_rng(5).integers(-99, 100, size).astype(np.int32)
        out, blocks = poisoned(size, np.int32), blocks_for(size, BLOCK)
        launch = answer["running_sums"][blocks, BLOCK].bind(cuda.to_device(x), out, size)
        counted = counters.count(launch, ["loads", "wavefronts"])
        expected = np.concatenate([np.cumsum(x[first : first + BLOCK]) for first in range(0, size, BLOCK)])
        yield compare(f"the running sums of {size:,} elements", out.to_host(), expected.astype(np.int32))
        yield at_most("a thread loads only its own element", float(counted["loads"]) / blocks, WARPS)
        fact = f"in {ROUNDS} rounds the warps of a block access shared memory at most {ACCESSES} times"
        yield at_most(fact, float(counted["wavefronts"]) / blocks, ACCESSES)


LESSON = Lesson(
    why="Threads that exchange data must wait for each other, and the wider the barrier, the more it costs. On an H200 "
    "a barrier for a warp takes about 2 cycles, one for a block of 1,024 threads 78 cycles, and one for the whole grid "
    "about 1,900 cycles.\n\n"
    "A missing barrier is worse than a slow one. The result may be right in every test and wrong in production, "
    "because it depends on which warp happens to be faster.",
    learn=[
        "say where a thread must wait before it reads what another thread has written.",
        "choose the narrowest barrier that includes both threads.",
        "explain why blocks of an ordinary launch cannot wait for each other, and choose between several launches and "
        "a cooperative one.",
    ],
    idea="The hardware promises no order between threads. A **barrier** is a point that no thread of a group passes "
    "before all of them have reached it, and after it each thread sees what the others wrote before. There are three: "
    "`__syncwarp()` for a warp, `__syncthreads()` for a block, and the end of a launch for the whole grid. All "
    "threads of the group must reach the barrier, except those that have returned: no barrier waits for them.\n\n"
    "No barrier in an ordinary launch spans blocks, since a block may start only when another one has ended. A "
    "**cooperative launch** promises that all blocks are on the device at the same time, so its kernel may wait for "
    "the grid. A **vote** is something else: it tells each lane the conditions of all lanes, but makes no writes "
    "visible.\n\n"
    "The rule of thumb: find out which threads exchange data, and use the narrowest barrier that includes them, once "
    "between each write and the reads of it, and once before the next write.",
    steps=[
        Step(
            name="__syncthreads()",
            shows=["BLOCK", "reverse_block"],
            text="Each thread stores its element in shared memory and reads the element of another thread. The barrier "
            "between the two waits for all threads of the block and makes their writes visible to all of them.",
        ),
        Step(
            name="no __syncthreads()",
            shows=["reverse_hasty"],
            text="WRONG: the barrier is gone. A warp may read elements of another warp before they are written. A "
            "right result would be luck, so the simulator reports the race whatever the result is.",
        ),
        Step(
            name="__syncthreads(), in a branch",
            shows=["reverse_in_branch"],
            text="The barrier stands in a branch. That is allowed here, since the condition is the same for all "
            "threads of a block: either all of them reach the barrier, or none.",
            compared_with="__syncthreads()",
        ),
        Step(
            name="_count(), _and(), _or()",
            shows=["block_votes"],
            text="Three more barriers for a block: `__syncthreads_count()` and its siblings. They also tell every "
            "thread for how many threads a condition holds, whether it holds for all, and whether it holds for any.",
        ),
        Step(
            name="__syncwarp()",
            shows=["reverse_warp"],
            text="Each warp reverses its own 32 elements. No thread needs an element of another warp, so a barrier for "
            "the warp is enough.",
            compared_with="__syncthreads()",
        ),
        Step(
            name="no __syncwarp()",
            shows=["reverse_warp_hasty"],
            text="WRONG: the lanes of a warp need not execute an instruction at the same time, so they too must wait "
            "for each other.",
        ),
        Step(
            name="ballot, all, any",
            shows=["warp_votes"],
            text="Votes tell each lane the conditions of all lanes. `__ballot_sync()` returns one bit per lane. A vote "
            "makes no writes visible. That takes a `__syncwarp()`.",
        ),
        Step(
            name="one launch per step",
            shows=["smooth", "smooth_step"],
            text="Each element becomes the mean of its neighbours. At the end of a block's range a neighbour belongs "
            "to another block, so each step needs all results of the step before. The end of a launch is the barrier: "
            "the next launch begins when all blocks are done.",
        ),
        Step(
            name="cooperative launch",
            shows=["smooth", "Grid", "smooth_steps<Grid>"],
            text="All steps are in one kernel, and `this_grid().sync()` waits for all blocks. The threads stride over "
            "the elements, because a cooperative launch has only as many blocks as the device holds at once.",
        ),
        Step(
            name="block barrier for a grid",
            shows=["smooth", "Block", "smooth_steps<Block>"],
            text="WRONG: `__syncthreads()` waits for the threads of one block. Another block, whose results are read "
            "next, may not have finished its step.",
        ),
    ],
    look_at=[
        "Four rows say 'caught'. Each lacks a barrier or has one that is too narrow. The note below the table names "
        "the line that reads, the line that wrote, and both threads. These kernels run on the simulator only.",
        "The row 'more blocks than fit' is refused before anything runs. Its note says how many blocks of this kernel "
        "can be resident at once.",
        "On a GPU there is a table with the cycles of each barrier by the threads of a block. A wider barrier costs "
        "more, and a barrier for a block costs more the more threads the block has.",
        "On the H200 ten steps over 67,108,869 elements take 2.13 ms as launches and 1.87 ms in one cooperative "
        "launch.",
    ],
    exercise=Exercise(
        task="The kernel replaces each element by the running sum of its block: the sum of all elements up to it. It "
        "works in place, in eight rounds. In each round a thread adds the sum of the thread that is 1, 2, 4, ... 128 "
        "places before it. All threads reach a barrier in every round, and yet there is a race, so the results may be "
        "right by chance. Fix it. Keep the eight rounds, and take the elements of other threads from shared memory.",
        hints=[
            "In one round a thread reads `sums[tid - step]`, and another thread overwrites the same element. Which of "
            "the two must come first, and what ensures it?",
            "Read into a register first. Write to `sums` only when all threads have read.",
            "Two barriers per round are needed: one between reading and writing, one between writing and the reads of "
            "the next round. Neither may be inside the `if`.",
        ],
        answer="A round has two dependences. A sum must be written before it is read in the next round, which the "
        "barrier in the original ensures. It must also be read before it is overwritten in the same round. So each "
        "thread reads into a register, all of them wait, and then they write. One barrier lies on each side of the "
        "write. Threads beyond the end stay in the loop with a zero. They could also return before it, since no "
        "barrier waits for a thread that has returned, and no element of the array needs their sums.",
        check=check,
    ),
    course="The lectures give no figures for this topic.",
)
