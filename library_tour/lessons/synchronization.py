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
# A warp writes its numbers at the beginning; in a round it reads twice at most, and writes once.
ACCESSES = WARPS * (1 + 3 * ROUNDS)


def check(answer: cuda.Module) -> Iterator[Check]:
    """Form the running sums of blocks, of which the last is full or not; count loads and accesses to shared memory."""
    for size in (2 * BLOCK, 3 * BLOCK - 77, 5):
        x = np.random.default_rng(5).integers(-99, 100, size).astype(np.int32)
        out, blocks = poisoned(size, np.int32), blocks_for(size, BLOCK)
        launch = answer["running_sums"][blocks, BLOCK].bind(cuda.to_device(x), out, size)
        counted = counters.count(launch, ["loads", "wavefronts"])
        expected = np.concatenate([np.cumsum(x[first : first + BLOCK]) for first in range(0, size, BLOCK)])
        yield compare(f"the running sums of {size:,} numbers", out.to_host(), expected.astype(np.int32))
        yield at_most("a thread loads its own number only", float(counted["loads"]) / blocks, WARPS)
        fact = f"{ROUNDS} rounds make {ACCESSES} accesses of a warp to shared memory at most, in each block"
        yield at_most(fact, float(counted["wavefronts"]) / blocks, ACCESSES)


LESSON = Lesson(
    learn=[
        "Why a thread has to wait before it reads what another thread has written, even in the same warp.",
        "How to choose the narrowest barrier that includes both threads: `__syncwarp()`, `__syncthreads()`, or the end "
        "of a launch.",
        "Why no barrier of an ordinary launch waits for the other blocks, and what a cooperative launch adds.",
    ],
    steps=[
        Step(
            name="__syncthreads()",
            shows=["BLOCK", "reverse_block"],
            text="A thread stores its number in shared memory and reads the number of another thread. The barrier "
            "between the two waits for all threads of the block, and makes what they have written visible to all of "
            "them.",
        ),
        Step(
            name="no __syncthreads()",
            shows=["reverse_hasty"],
            text="WRONG: the barrier is gone. A warp may read the numbers of another warp before these are written. A "
            "right result would be luck, so the simulator reports the race whatever the result is.",
        ),
        Step(
            name="__syncthreads(), in a branch",
            shows=["reverse_in_branch"],
            text="The barrier stands in a branch. That is right here, since the condition is the same for all threads "
            "of a block: either all of them come to the barrier, or none.",
            compared_with="__syncthreads()",
        ),
        Step(
            name="_count(), _and(), _or()",
            shows=["block_votes"],
            text="Three more barriers of the block. Each also tells every thread for how many threads, whether for "
            "all, or whether for any of them a condition holds.",
        ),
        Step(
            name="__syncwarp()",
            shows=["reverse_warp"],
            text="Each warp reverses its own 32 numbers. No thread needs a number of another warp, so it is enough to "
            "wait for the lanes of the warp.",
            compared_with="__syncthreads()",
        ),
        Step(
            name="no __syncwarp()",
            shows=["reverse_warp_hasty"],
            text="WRONG: the lanes of a warp need not execute an instruction at the same time, so that they have to "
            "wait for one another as well.",
        ),
        Step(
            name="ballot, all, any",
            shows=["warp_votes"],
            text="Votes bring the lanes of a warp together and tell each lane the condition of all of them. "
            "`__ballot_sync()` returns one bit a lane. A vote makes no stores visible; that is what `__syncwarp()` is "
            "for.",
        ),
        Step(
            name="a launch a step",
            shows=["smooth", "smooth_step"],
            text="A number at the end of a block's range needs a neighbour from another block, so a step needs the "
            "whole step before. Blocks of an ordinary launch may run one after the other and cannot wait for each "
            "other. The end of the launch is the barrier: the next launch begins when all blocks are done.",
        ),
        Step(
            name="cooperative launch",
            shows=["smooth", "Grid", "smooth_steps<Grid>"],
            text="All steps are in one kernel. A cooperative launch promises that all blocks are on the device at the "
            "same time, and so `this_grid().sync()` can wait for all of them. Threads stride over the numbers, since "
            "the number of blocks is limited.",
        ),
        Step(
            name="block's barrier for a grid",
            shows=["smooth", "Block", "smooth_steps<Block>"],
            text="WRONG: `__syncthreads()` waits for the own block alone. Another block may not have finished the "
            "step yet whose results are read.",
        ),
    ],
    look_at=[
        "Four rows say 'caught'. Each lacks a wait, or has one that is too narrow, and the note below names the line "
        "that reads, the line that wrote, and both threads. These kernels run on the simulator only.",
        "The row 'more blocks than fit' is refused before anything runs: the note says how many blocks of this kernel "
        "can be on the device at once.",
        "On an H200 a wait for a warp takes a cycle or two, for a block of 1,024 threads 78 cycles, and for the whole "
        "grid some 1,900 cycles. The wider the barrier, the more it costs.",
        "On an H200 ten steps over 67,108,869 numbers take 2.13 ms as launches and 1.87 ms in one cooperative launch.",
    ],
    exercise=Exercise(
        task="Replace each number of a block by the sum of the block's numbers up to it. The kernel does so in place, "
        "in eight rounds: a thread adds the sum of the thread that is 1, 2, 4, ... 128 before it. All threads "
        "come to a barrier in every round, and yet there is a race: the results may be right by chance. Mend it, and "
        "keep the eight rounds; the numbers of other threads come from shared memory.",
        hints=[
            "In one round a thread reads `sums[tid - step]`, and another thread overwrites the same place. Which of "
            "the two must come first, and what makes sure of it?",
        ],
        answer="A round has two dependences. A sum must be written before it is read in the next round, which the "
        "barrier of the start ensures. It must also be read before it is overwritten in the same round. So each "
        "thread reads into a register, all of them wait, and then they write; one barrier lies on each side of the "
        "write. Threads beyond the end stay in the loop with a zero, so that all threads come to both barriers.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
