"""The lesson of `synchronization`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda
from cudart_py.profiling.metric_names import WAVEFRONTS

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK, WARPS = 256, 8
ROUNDS = 8
# A warp writes its elements once at the start and reads its sums once at the end. In each round it reads at most twice
# and writes once.
ACCESSES = WARPS * (2 + 3 * ROUNDS)
SHARED_LOADS = WAVEFRONTS.format("ld")
# Over all rounds, the number of warps in which at least one thread adds another thread's sum, which the warp must load.
SUMS_READ = sum(WARPS - step // 32 for step in (1, 2, 4, 8, 16, 32, 64, 128))


def check(answer: cuda.Module) -> Iterator[Check]:
    """Compute the running sums of full and partial blocks; count loads and accesses to shared memory."""
    for size in (2 * BLOCK, 3 * BLOCK - 77, 5):
        x = np.random.default_rng(5).integers(-99, 100, size).astype(np.int32)
        out, blocks = poisoned(size, np.int32), blocks_for(size, BLOCK)
        launch = answer["running_sums"][blocks, BLOCK].bind(cuda.to_device(x), out, size)
        metrics = counters.counted(launch)
        counted = counters.values(metrics, ["loads", "wavefronts"])
        expected = np.concatenate([np.cumsum(x[first : first + BLOCK]) for first in range(0, size, BLOCK)])
        yield compare(f"the running sums of {size:,} elements", out.to_host(), expected.astype(np.int32))
        yield at_most("a thread loads only its own element", float(counted["loads"]) / blocks, WARPS)
        fact = f"in {ROUNDS} rounds the warps of a block access shared memory at most {ACCESSES} times"
        yield at_most(fact, float(counted["wavefronts"]) / blocks, ACCESSES)
        if size % BLOCK == 0:
            read = metrics[SHARED_LOADS] / blocks
            fact = f"in {ROUNDS} rounds the warps of a block load sums from shared memory at least {SUMS_READ} times"
            yield Check(fact, read >= SUMS_READ, f"The actual value is {read:g}.")


LESSON = Lesson(
    why="Threads that exchange data must wait for each other, and the wider the barrier, the more it costs. On an "
    "H200, a barrier takes about 2 cycles for a warp, 78 cycles for a block of 1,024 threads and about 1,900 cycles "
    "for the whole grid.\n\n"
    "A missing barrier is worse than a slow one. The result may be right in every test and wrong in production, "
    "because it depends on which warp happens to be faster.",
    learn=[
        "say where a thread must wait before it reads what another thread has written.",
        "choose the narrowest barrier that includes both threads.",
        "explain why blocks of an ordinary launch cannot wait for each other, and choose between several launches and "
        "a cooperative one.",
    ],
    idea="The hardware guarantees no order between threads. A **barrier** is a point that no thread of a group passes "
    "until all of them have reached it. After the barrier, each thread sees everything that the others wrote before "
    "it. There are three kinds of barrier: `__syncwarp()` for a warp, `__syncthreads()` for a block, and the end of a "
    "launch for the whole grid. All threads of the group must reach the barrier, except those that have already "
    "returned: no barrier waits for those.\n\n"
    "Within an ordinary launch, no barrier spans several blocks, because some blocks may start only after others have "
    "finished. A **cooperative launch** guarantees that all blocks are resident at the same time, so the kernel can "
    "use a barrier for the whole grid. A **vote** is different: it tells every lane of a warp which lanes meet a "
    "condition, but it does not make writes visible.\n\n"
    "The rule of thumb: find out which threads exchange data, and use the narrowest barrier that includes them. Place "
    "one barrier between each write and the reads that depend on it, and another before the next write.",
    steps=[
        Step(
            name="__syncthreads()",
            shows=["BLOCK", "reverse_block"],
            text="Each thread stores its element in shared memory and reads the element of another thread. The "
            "barrier between the two waits for all threads of the block and makes their writes visible to the whole "
            "block.",
        ),
        Step(
            name="no __syncthreads()",
            shows=["reverse_hasty"],
            text="Wrong on purpose. The barrier is missing. A warp may read another warp's elements before they are "
            "written. A correct result would be pure luck, so the simulator reports the race whatever the result.",
        ),
        Step(
            name="__syncthreads(), in a branch",
            shows=["reverse_in_branch"],
            text="The barrier is inside a branch. That is allowed here because the condition is the same for all "
            "threads of a block: either all of them reach the barrier, or none of them does.",
            compared_with="__syncthreads()",
        ),
        Step(
            name="_count(), _and(), _or()",
            shows=["block_votes"],
            text="Three more barriers for a block: `__syncthreads_count()`, `__syncthreads_and()` and "
            "`__syncthreads_or()`. They also tell every thread how many threads meet a condition, whether all of them "
            "do, and whether any of them does.",
        ),
        Step(
            name="__syncwarp()",
            shows=["reverse_warp"],
            text="Each warp reverses its own 32 elements. No thread needs another warp's elements, so a barrier for "
            "the warp is enough.",
            compared_with="__syncthreads()",
        ),
        Step(
            name="no __syncwarp()",
            shows=["reverse_warp_hasty"],
            text="Wrong on purpose. The lanes of a warp do not necessarily execute an instruction at the same time, so "
            "they too must wait for each other.",
        ),
        Step(
            name="ballot, all, any",
            shows=["warp_votes"],
            text="A vote tells every lane whether all lanes meet a condition (`__all_sync()`), whether any lane does "
            "(`__any_sync()`), or which lanes do (`__ballot_sync()`, one bit per lane). A vote does not make writes "
            "visible. Use `__syncwarp()` for that.",
        ),
        Step(
            name="one launch per step",
            shows=["smooth", "smooth_step"],
            text="Each element becomes the mean of its two neighbours. At the edge of a block's range, one neighbour "
            "belongs to another block, so each step must wait until the whole previous step is complete. The end of a "
            "launch is the barrier: the next launch starts when all blocks are done.",
        ),
        Step(
            name="cooperative launch",
            shows=["smooth", "Grid", "smooth_steps<Grid>"],
            text="A single kernel performs all steps, and `this_grid().sync()` waits for all blocks. The threads use "
            "a grid-stride loop, because a cooperative launch cannot have more blocks than fit on the device at once.",
        ),
        Step(
            name="block barrier for a grid",
            shows=["smooth", "Block", "smooth_steps<Block>"],
            text="Wrong on purpose. `__syncthreads()` waits only for the threads of one block. Another block, whose "
            "results are read next, may not have finished its step yet.",
        ),
    ],
    look_at=[
        "Four rows say 'caught'. Two of these kernels lack a barrier, and one has a barrier that is too narrow. For "
        "these three, the note below the table gives the line that reads, the line that wrote, and both threads. The "
        "fourth kernel waits for the grid in an ordinary launch. All four run on the simulator only.",
        "On the simulator, 4,101 elements take 129 warps. Each loads the two neighbours of its elements in each of ten "
        "steps: 129 x 2 x 10 = 2,580 loads. The kernels of the second table have 9 blocks of 8 warps, and each warp "
        "loads once: 72 loads.",
        "The launch in the 'more blocks than fit' row is refused before anything runs. The note says how many blocks "
        "of this kernel can be resident at once.",
        "When the stop runs on a GPU, another table shows how many cycles each barrier takes with different numbers of "
        "threads per block. A wider barrier costs more, and the cost of a block's barrier grows with the number of "
        "threads in the block. `__syncwarp()` takes a cycle or two with any block size, because warps do not wait for "
        "one another.",
        "On the H200, ten steps over 67,108,869 elements take 2.13 ms as ten launches and 1.87 ms in one cooperative "
        "launch.",
    ],
    exercise=Exercise(
        task="The kernel replaces each element with the running sum of its block (an inclusive scan): the sum of the "
        "block's elements up to and including that one. It works in place in shared memory, in eight rounds. In each "
        "round, a thread adds the sum of the thread whose index is smaller by 1, 2, 4, ..., 128. All threads reach a "
        "barrier in every round, and yet there is a race, so the results may be right only by chance. Fix the race. "
        "Keep the eight rounds, and read other threads' elements from shared memory. In total, the eight warps of a "
        "block may access shared memory at most 208 times.",
        hints=[
            "In each round, one thread reads `sums[tid - step]`, and another thread overwrites the same element. "
            "Which of the two must come first, and what ensures that order?",
            "Read into a register first. Write to `sums` only after all threads have read. If each thread also keeps "
            "its own sum in a register, a warp needs only one read and one write per round.",
            "Each round needs two barriers: one between its reads and its writes, and one between its writes and the "
            "reads of the next round. Neither barrier may be inside the `if`.",
        ],
        answer="Each round has two dependencies. A sum must be written before it is read in the next round, and the "
        "original barrier ensures that. A sum must also be read before it is overwritten in the same round. So each "
        "thread reads into a register, all of them wait, and then they write. There is one barrier on each side of the "
        "write. Threads beyond the end of the array stay in the loop and contribute zeros. They could also return "
        "before the loop, because no barrier waits for a thread that has returned, and no element of the array needs "
        "their sums.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
