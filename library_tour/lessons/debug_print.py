"""The lesson of `debug_print`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import cudart_py as cuda

from .. import counters
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..printing import printed
from ..stop import Check

BLOCK, WARP, GROUP = 64, 32, 4


def print_into(lines: list[str], launch: cuda.BoundLaunch) -> None:
    """Launch, and append the lines that are printed."""
    lines += printed(launch)


def check(answer: cuda.Module) -> Iterator[Check]:
    """Catch what is printed of arrays that fill warps and of some that do not; lines may come in any order."""
    for size in (2 * BLOCK, 100, GROUP):
        x = np.random.default_rng(5).integers(-99, 100, size).astype(np.int32)
        launch = answer["print_groups"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(x), size)
        lines: list[str] = []
        counted = counters.count(partial(print_into, lines, launch), ["loads"])
        expected = [f"group {i}: {' '.join(map(str, group))}" for i, group in enumerate(x.reshape(-1, GROUP))]
        odd = next((line for line in lines if line not in expected), None)
        detail = f"a line is {odd[:40]!r}" if odd else f"there are {len(lines)} lines"
        fact = f"{size} numbers are printed in lines of {GROUP}, {len(expected)} in all"
        yield Check(fact, sorted(lines) == sorted(expected), detail)
        yield at_most(f"{size} numbers: a thread loads one at most", counted["loads"], blocks_for(size, WARP))


LESSON = Lesson(
    learn=[
        "How to print from a kernel, and from which thread, so that the output can be read.",
        "When the text arrives, in which order its lines come, and when some of it is lost.",
        "Which lane a shuffle reads from, and what a lane reads at the end of its group.",
        "What a `printf` costs a kernel even where no thread calls it.",
    ],
    steps=[
        Step(
            name="one thread",
            shows=["Quiet", "Prints", "root<Prints>"],
            text="A thread computes a square root by Newton's method. One thread, chosen by its number, prints each of "
            "its guesses. The structure `Prints` is a parameter of the template: with `Quiet` in its place the kernel "
            "has no `printf` at all.",
        ),
        Step(
            name="every thread",
            shows=["every_thread"],
            text="All threads print. The lines of different threads come in any order, so each one says which thread "
            "it is from.",
        ),
        Step(
            name="a line in two calls",
            shows=["in_two_calls"],
            text="Wrong on purpose. One call of `printf` is one piece of text, and between two calls of a thread the "
            "other threads print theirs.",
        ),
        Step(
            name="no synchronisation",
            shows=["not_waited_for"],
            text="The text waits in a buffer on the device until the host synchronises. When the launch has returned "
            "nothing is printed yet.",
        ),
        Step(
            name="shuffle, width 32",
            shows=["shuffle_down<32>"],
            text="`__shfl_down_sync` gives a lane the value of the lane two places further on. Lanes 30 and 31 have no "
            "such lane in their group, and read their own value.",
            compared_with="every thread",
        ),
        Step(
            name="shuffle, width 16",
            shows=["shuffle_down<16>"],
            text="The same kernel with groups of 16 lanes: now lanes 14 and 15 read their own values, too, because the "
            "lanes two places further on belong to the other group.",
        ),
    ],
    look_at=[
        "The notes show pairs of a lane and what it read. Compare the pairs (14,16) and (15,17) with width 32, and "
        "(14,14) and (15,15) with width 16.",
        "The row 'more than the buffer': the oldest lines are lost, and no error says so. Count the lines where it "
        "matters, or make the buffer larger by `device.limits.printf_fifo_size`.",
        "The table of costs: the kernel with a `printf` takes more registers and a stack for every thread, though one "
        "thread prints. So a `printf` can change the speed of what is looked at.",
    ],
    exercise=Exercise(
        task="Print the numbers of an array, four in a line, as in `group 2: 8 -1 0 5`. The lines may come in any "
        "order, and each must be whole. The array has `n` numbers, a multiple of four but not of 32, and a block has "
        "64 threads. A thread may load one number only.",
        hints=[
            "One thread has to print the whole line by one call. By which function, and with which width, does it get "
            "the numbers of the three threads next to it? Which threads have to take part in that?",
        ],
        answer="The first lane of each group of four reads the values of the three others by shuffles, and prints all "
        "four by one call. No thread returns before the shuffles, because all lanes of the mask take part in them.",
        check=check,
    ),
    course="The pairs of lanes in the notes are those that a lecture on GPU programming shows. The courses give no "
    "times for this topic.",
)
