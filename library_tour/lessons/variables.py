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
    """Launch the answer several times; the tickets of all launches are numbered from 0, without repetitions."""
    rng = np.random.default_rng(5)
    given: list[int] = []
    for size in (BLOCKS * BLOCK, 333, 1):
        wants = rng.integers(0, 3, size).astype(np.int32)
        tickets = cuda.full(size, NO_TICKET, np.uint32)
        launch = answer["take_tickets"][BLOCKS, BLOCK].bind(cuda.to_device(wants), tickets, size)
        counted = counters.count(launch, ["atomics"])
        got = tickets.to_host()
        people = f"{size:,} {'person' if size == 1 else 'people'}"
        fact = f"{people}: everyone who wants a ticket gets one, and no one else does"
        yield compare(fact, got != NO_TICKET, wants > 0)
        given += got[got != NO_TICKET].tolist()
        fact = f"{people}: the tickets of all launches so far are numbered from 0 without gaps"
        yield compare(fact, np.sort(np.array(given)), np.arange(len(given)))
        yield at_most(
            f"{BLOCKS} blocks perform at most {BLOCKS} atomic additions to global memory", counted["atomics"], BLOCKS
        )
        found = int(answer.symbol("next_ticket").to_host())
        yield Check(
            "the host reads the number of the next ticket", found == len(given), f"It reads {found}, not {len(given)}."
        )


LESSON = Lesson(
    why="Each thread needs one integer for its work. Keep it in a register, and 16,384 steps per thread take 1.2 ms on "
    "a fully occupied H200. Keep it in shared memory, and they take 1.5 ms. Keep it in a `__device__` array, and the "
    "same arithmetic takes 22 ms.\n\n"
    "Speed comes at a price: a register belongs to one thread and disappears with it. Each kind of variable is a "
    "different trade-off between speed, scope and lifetime. This stop shows all of them.",
    learn=[
        "say who can access a variable: one thread, the threads of one block, or all threads and the host.",
        "say how long a variable lives: as long as its thread, its block or its module.",
        "choose the right kind of variable for a value.",
        "compute how many blocks fit on a multiprocessor, given the shared memory per block.",
    ],
    idea="Arithmetic works only on registers. A variable in memory must be loaded first and stored again after each "
    "change. So it matters how far away that memory is:\n\n"
    "```\n"
    "kind          memory                 seen by            lives as long as\n"
    "local         register               its thread         its thread\n"
    "__shared__    in the multiprocessor  its block          its block\n"
    "__device__    device memory          all threads, host  its module\n"
    "__constant__  device memory, cached  all threads, host  its module\n"
    "```\n\n"
    "A **module** is compiled device code that has been loaded. Its `__device__` and `__constant__` variables exist "
    "until it is unloaded, across all launches in between.\n\n"
    "Threads that exchange data through a shared variable need a **barrier**, `__syncthreads()`, between one thread's "
    "write and another thread's read. It waits until all threads of the block have arrived.\n\n"
    "The shared memory of a multiprocessor is divided among its resident blocks. An H200 has 228 KiB per "
    "multiprocessor, and one block may use up to 227 KiB.\n\n"
    "The rule of thumb: compute in local variables. Use shared memory for values that the threads of a block "
    "exchange, and device memory for values that outlast the launch.",
    steps=[
        Step(
            name="__device__ array",
            shows=["states", "next", "place", "steps_device"],
            text="Each thread computes many steps of a random number generator. It keeps the generator's state in an "
            "array in **global memory**: device memory that all threads can access. Every step loads the state and "
            "stores it again. `volatile` keeps the compiler from using a register instead. `next` and `place` are "
            "`__device__` functions, which kernels can call.",
        ),
        Step(
            name="dynamic shared memory",
            shows=["next", "place", "steps_dynamic"],
            text="The state is now in shared memory. The size of an `extern __shared__` array is set at launch.",
        ),
        Step(
            name="static shared memory",
            shows=["next", "place", "steps_static<256>"],
            text="Now the size is known at compile time. This variant is equally fast, but limited to 48 KiB.",
        ),
        Step(
            name="register",
            shows=["next", "place", "steps_register"],
            text="The state is a local variable, which the compiler keeps in a register. The thread accesses memory "
            "only twice: to load the seed, and to store the result.",
        ),
        Step(
            name="shared, uninitialised",
            shows=["reverse", "reverse_unset"],
            text="`reverse` shows the purpose of a shared variable: after a barrier, each thread reads an element that "
            "another thread wrote. `reverse_unset` is wrong on purpose. It reads before any thread has written, and "
            "gets whatever was there before. The simulator reports this.",
        ),
        Step(
            name="variables of a module",
            shows=["threads_so_far", "count_threads", "coefficients", "line", "constant"],
            text="A `__device__` variable keeps its value from launch to launch. `atomicAdd` adds to it without "
            "interference from other threads, and returns the value before the addition. The host reads and writes the "
            "variables through `module.symbol`, as `constant` does here. If a module is loaded again, the new copy has "
            "its own variables. Only the host can write to a `__constant__` variable.",
        ),
    ],
    look_at=[
        "Without a GPU, the table has 'loads' and 'wavefronts' columns. A `__device__` array costs one load from "
        "global memory per step. Shared memory costs **wavefronts**, the passes in which it serves a warp's requests. "
        "A register costs neither.",
        "The stop verifies each row of the table of scopes and lifetimes with a small test.",
        "In the last table, blocks of 256 threads share a multiprocessor. On compute capability 9.0, 8 blocks fit with "
        "16 KiB of shared memory each, 4 with 48 KiB, and one with 227 KiB.",
    ],
    exercise=Exercise(
        task="Each person with `wants[i] > 0` takes a ticket. Numbering starts at 0 when the module is loaded, and "
        "continues from launch to launch without gaps or repetitions. Who gets which number does not matter. After "
        "each launch, the host reads the next number from `next_ticket`. Each block may perform one atomic addition "
        "to global memory. In the given kernel, tickets start at 0 in every block.",
        hints=[
            "You need three values: a person's place within the block, the number of tickets that the block takes, "
            "and the next number overall. Who must see each of them, and how long must it live?",
            "`atomicAdd` returns the old value. Applied to a `__shared__` counter, it gives each person a place "
            "within the block and leaves the block's total in the counter.",
            "One thread adds that total to `next_ticket`. The old value is the block's first number. Share it with the "
            "whole block, and place a barrier between each write and the other threads' reads.",
        ],
        answer="The place is a local variable. The block's total and its first number are `__shared__`, with barriers "
        "between one thread's write and the others' reads. `next_ticket` is a `__device__` variable, so it outlasts "
        "the launch. One thread per block adds the block's total to it, and the atomic addition returns the block's "
        "first number.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
