"""The lesson of `variables`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, BLOCK = 5, 128
NO_TICKET = 2**32 - 1


def check(answer: cuda.Module) -> Iterator[Check]:
    """Launch the answer several times; all tickets together are those from zero on, each of them once."""
    rng = np.random.default_rng(5)
    given: list[int] = []
    for size in (BLOCKS * BLOCK, 333, 1):
        wants = rng.integers(0, 3, size).astype(np.int32)
        tickets = cuda.full(size, NO_TICKET, np.uint32)
        launch = answer["take_tickets"][BLOCKS, BLOCK].bind(cuda.to_device(wants), tickets, size)
        counted = counters.count(launch, ["atomics"])
        got = tickets.to_host()
        yield compare(f"{size:,} people: those who want a ticket have one", got != NO_TICKET, wants > 0)
        given += got[got != NO_TICKET].tolist()
        fact = f"{size:,} people: the tickets of all launches so far are numbered from 0 on, without gaps"
        yield compare(fact, np.sort(np.array(given)), np.arange(len(given)))
        yield at_most(f"{BLOCKS} blocks make {BLOCKS} atomic additions to global memory", counted["atomics"], BLOCKS)
        found = int(answer.symbol("next_ticket").to_host())
        yield Check("the host finds the number of the next ticket", found == len(given), f"{found}, not {len(given)}")


LESSON = Lesson(
    learn=[
        "Which threads see a variable: its own, those of its block, or all threads and the host.",
        "How long a variable lasts: as long as its thread, its block, or its module.",
        "Why a value that is used often belongs in a register, whatever memory it comes from.",
        "How much shared memory a block may have, and what it costs in blocks that run at the same time.",
    ],
    steps=[
        Step(
            name="__device__ array",
            shows=["states", "next", "place", "steps_device"],
            text="A thread computes many steps of a sequence of random numbers, and keeps its number in an array in "
            "global memory: a load and a store at each step. All threads and the host see the array, which is more "
            "than the steps need. `volatile` keeps the compiler from using a register instead.",
        ),
        Step(
            name="dynamic shared memory",
            shows=["next", "place", "steps_dynamic"],
            text="The number is kept in shared memory, which is a part of the multiprocessor and is seen by the block. "
            "Only the launch says how large `extern __shared__` is.",
        ),
        Step(
            name="static shared memory",
            shows=["next", "place", "steps_static<256>"],
            text="The size is known to the compiler. It is as fast, and ends at 48 KiB.",
        ),
        Step(
            name="register",
            shows=["next", "place", "steps_register"],
            text="A local variable, which the compiler keeps in a register. Memory is touched twice in all: to read "
            "the seed, and to store the result.",
        ),
        Step(
            name="shared, never written",
            shows=["reverse", "reverse_unset"],
            text="`reverse` shows what a block's variable is good for: a thread reads what another one has written, "
            "behind a barrier. `reverse_unset` reads it before anyone has written, and gets what an earlier block left "
            "there. It is wrong on purpose, and the simulator says so.",
        ),
        Step(
            name="variables that last",
            shows=["threads_so_far", "count_threads", "coefficients", "line", "lifetimes"],
            text="A `__device__` variable keeps its value from launch to launch. The host reads and writes it through "
            "`module.symbol`, and a module that is loaded again has a variable of its own. A `__constant__` variable "
            "is written by the host alone.",
        ),
    ],
    look_at=[
        "The columns 'loads' and 'wavefronts': a `__device__` array costs loads from global memory at each step, "
        "shared memory costs wavefronts, which are its passes, and a register costs neither.",
        "On an H200 the steps take 22 ms in a `__device__` array, 1.5 ms in shared memory of either kind, and 1.2 ms "
        "in registers.",
        "The table 'Who sees a variable, and how long it lasts' has a check behind every row.",
        "The last table: blocks of 256 threads on one multiprocessor. On an H200 8 blocks fit if each has 16 KiB of "
        "shared memory, 4 with 48 KiB, and one with 227 KiB.",
    ],
    exercise=Exercise(
        task="Each person with `wants[i] > 0` takes a ticket. The numbers begin at 0 when the module is loaded, go on "
        "from launch to launch, and none is left out or given twice; who gets which number does not matter. "
        "`next_ticket` holds the number of the next one after each launch, where the host reads it. A block may make "
        "one atomic addition to global memory. So far, tickets begin at 0 in every block.",
        hints=[
            "Three variables are needed: a person's place among those of the block, the number of tickets that the "
            "block takes, and the number of the next ticket of all. Who sees each of them, and how long must it last?",
        ],
        answer="The place is a local variable. The block's count and its first number are `__shared__`, with a barrier "
        "between what one thread writes and the others read. `next_ticket` is a `__device__` variable, which outlasts "
        "the launch: one thread of each block adds the block's count to it, and the atomic addition returns the "
        "block's first number.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
