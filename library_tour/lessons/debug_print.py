"""The lesson of `debug_print`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import cudart_py as cuda

from .. import counters
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most, number_of
from ..printing import printed
from ..stop import Check

BLOCK, WARP, GROUP = 64, 32, 4


def print_into(lines: list[str], launch: cuda.BoundLaunch) -> None:
    """Launch, and append the printed lines."""
    lines += printed(launch)


def check(answer: cuda.Module) -> Iterator[Check]:
    """Capture the output for arrays that fill their warps and for others; lines may arrive in any order."""
    for size in (2 * BLOCK, 100, GROUP):
        x = np.random.default_rng(5).integers(-99, 100, size).astype(np.int32)
        launch = answer["print_groups"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(x), size)
        lines: list[str] = []
        counted = counters.count(partial(print_into, lines, launch), ["loads"])
        expected = [f"group {i}: {' '.join(map(str, group))}" for i, group in enumerate(x.reshape(-1, GROUP))]
        odd = next((line for line in lines if line not in expected), None)
        detail = f"a line is {odd[:40]!r}" if odd else f"there are {len(lines)} lines"
        fact = f"{size} elements are printed in {number_of(len(expected), 'line')} of {GROUP}"
        yield Check(fact, sorted(lines) == sorted(expected), detail)
        yield at_most(f"{size} elements: each thread loads at most one", counted["loads"], blocks_for(size, WARP))


LESSON = Lesson(
    why="The quickest way to look inside a kernel is the same as in any other program: print something. But 1,000 "
    "threads that each print a line give you 1,000 lines in no particular order. And printing is not free: compiled "
    "for an H200, the kernel in this stop needs 18 registers per thread without `printf`, and 27 registers and a stack "
    "with it, although only one thread prints.\n\n"
    "This stop shows how to get output that you can read, and uses it to look at something that is hard to see "
    "otherwise: which lane a **shuffle** reads from.",
    learn=[
        "print readable output from a kernel.",
        "say when printed text arrives, in what order, and when some of it is lost.",
        "predict which lane a shuffle reads from, even at the end of a group.",
        "say what a call to `printf` costs a kernel.",
    ],
    idea="`printf` in a kernel writes into a buffer on the device. The host prints the buffer's text when it "
    "synchronises, not before. The buffer is circular: once it is full, new lines overwrite the oldest ones without an "
    "error. Each call writes one piece of text. Blocks and warps run in any order, so pieces from different threads "
    "arrive in any order.\n\n"
    "A **shuffle** lets the lanes of a warp read one another's registers, without going through memory. Within each "
    "group of `width` lanes, `__shfl_down_sync(mask, value, 2, width)` returns to lane *i* the `value` of lane *i* + "
    "2:\n\n"
    "```\n"
    "width 32   lane    0  1 ... 13 14 15 | 16 ... 29 30 31\n"
    "           reads   2  3 ... 15 16 17 | 18 ... 31 30 31\n"
    "width 16   lane    0  1 ... 13 14 15 | 16 ... 29 30 31\n"
    "           reads   2  3 ... 15 14 15 | 18 ... 31 30 31\n"
    "```\n\n"
    "At the end of a group there is no such lane, so the last two lanes read their own values. `mask` has one bit per "
    "lane. Every lane in the mask must execute the same shuffle, except for lanes whose threads have returned: no "
    "shuffle waits for those. A lane that reads from one of them gets an undefined value.\n\n"
    "The rule of thumb: print one whole line per call, with the thread's index in it, from as few threads as possible. "
    "Then synchronise.",
    steps=[
        Step(
            name="one thread",
            shows=["Quiet", "Prints", "root<Prints>"],
            text="Each thread computes a square root by Newton's method. One thread, chosen by its index, prints each "
            "of its guesses. `Prints` is a template argument: with `Quiet` in its place, the kernel contains no "
            "`printf` at all.",
        ),
        Step(
            name="every thread",
            shows=["every_thread"],
            text="All threads print. Their lines arrive in any order, so each line says which thread it comes from.",
        ),
        Step(
            name="one line in two calls",
            shows=["in_two_calls"],
            text="Wrong on purpose. Between a thread's two calls, other threads print.",
        ),
        Step(
            name="no synchronisation",
            shows=["not_waited_for"],
            text="When the launch returns, nothing has been printed yet. The text stays on the device until the host "
            "synchronises.",
        ),
        Step(
            name="shuffle, width 32",
            shows=["shuffle_down<32>"],
            text="Lane *i* reads the number of lane *i* + 2. Lanes 30 and 31 have no such lane, so they read their own "
            "numbers.",
            compared_with="every thread",
        ),
        Step(
            name="shuffle, width 16",
            shows=["shuffle_down<16>"],
            text="This is the same kernel with groups of 16 lanes. Now lanes 14 and 15 read their own numbers too, "
            "because lanes 16 and 17 belong to the other group.",
        ),
    ],
    look_at=[
        "Each pair below the table consists of a lane and the value that it read. Compare (14,16) and (15,17) for "
        "width 32 with (14,14) and (15,15) for width 16.",
        "In the 'buffer overflow' row, the oldest lines are lost without an error. If every line matters, count the "
        "lines, or enlarge the buffer with `device.limits.printf_fifo_size`.",
        "Look at the table of costs. Every thread pays for the `printf`, although only one thread prints. So a "
        "`printf` can change the speed of the kernel that you are examining.",
    ],
    exercise=Exercise(
        task="Print the elements of an array, four per line, as in `group 2: 8 -1 0 5`. Lines may arrive in any order, "
        "but each must be whole. The number of elements, `n`, is a multiple of 4 but not always of 32, and a block has "
        "64 threads. Each thread may load only one element.",
        hints=[
            "One thread must print the whole line in one call. How can it get the elements of the three threads after "
            "it, without loading them?",
            "`__shfl_down_sync(0xffffffff, value, 1, 4)` reads from the next lane within a group of four.",
            "Only the first lane of each group prints, but the other three must execute the shuffles too: put the "
            "`if` for printing after them.",
        ],
        answer="The first lane of each group of four reads the other three elements with shuffles, and prints all four "
        "in one call. All lanes of the group execute the shuffles, and only the `printf` is in a branch. Threads "
        "beyond the end of the array may have returned by then. That is safe: `n` is a multiple of 4, so no group is "
        "split, and no lane that prints reads from a lane that has returned.",
        check=check,
    ),
    course="The pairs of lanes below the table come from one of the lectures on which the tour is based. The lectures "
    "give no times for this topic.",
)
