"""The lesson of `local_memory`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

WINDOW, BLOCK, WARP = 7, 128, 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Sum integers, in columns longer and shorter than the window; count loads and accesses to local memory."""
    for rows, columns in ((40, 256), (23, 77), (3, 130)):
        elements = np.random.default_rng(5).integers(-99, 100, (rows, columns)).astype(np.float32)
        sums = poisoned((rows, columns), np.float32)
        grid = blocks_for(columns, BLOCK)
        launch = answer["moving_sums"][grid, BLOCK].bind(cuda.to_device(elements), sums, rows, columns)
        counted = counters.count(launch, ["local", "loads"])
        totals = np.concatenate([np.zeros((WINDOW, columns), np.float32), elements.cumsum(axis=0)])
        where = f"{rows} x {columns}"
        yield compare(f"{where}: the moving sums", sums.to_host(), totals[WINDOW:] - totals[:rows])
        yield at_most(f"{where}: no access to local memory", counted["local"], 0)
        loads = float(counted["loads"]) / blocks_for(columns, WARP)
        yield at_most(f"{where}: a thread loads each of its {rows} elements once", loads, rows)


LESSON = Lesson(
    why="On an H200, a kernel that counts values in a small local array reads at 110 GB/s. Unroll its loop, and it "
    "reads at 1,126 GB/s. Move the array to shared memory, and it reads at 4,029 GB/s, 87 % of the limit.\n\n"
    "The source hardly changes. The difference is where the array lives, and the compiler decides that based on how "
    "the array is indexed.",
    learn=[
        "tell from the indices whether a local array is kept in registers or in local memory.",
        "unroll a loop so that the indices become constants.",
        "find spills in the compiler's report, and explain what causes them.",
        "choose shared memory for an array that is indexed by data.",
    ],
    idea="Local variables live in **registers**, which belong to one thread and are the fastest memory. But registers "
    "have no addresses, so an array can be in registers only if the compiler knows every index. Otherwise it is in "
    "**local memory**: a part of device memory that belongs to the thread and is accessed through the caches. The name "
    "says whose memory it is, not where it is.\n\n"
    "A thread has a limited number of registers. Variables that do not fit are **spilled**: stored to local memory and "
    "loaded again. The compiler reports spills.\n\n"
    "In local memory, the words with index `k` of the 32 threads of a warp are contiguous. If the threads use the same "
    "index, an access touches 4 sectors of 32 bytes. If they use different indices, it touches up to 32 sectors.\n\n"
    "The rule of thumb: index a local array only with constants and the counters of unrolled loops. For an array that "
    "is indexed by data, use shared memory.",
    steps=[
        Step(
            name="loop, not unrolled",
            shows=["COUNTERS", "for_each_value", "write", "count_in_loop"],
            text="Each thread counts how often each value from 0 to 31 occurs among its elements. `for_each_value` "
            "loads the elements four at a time, as a `uint4`, and calls the given lambda with each of them. `[&]` "
            "captures the counters by reference, so the lambda can change them. The loop compares an element with each "
            "`k` and updates counter `k`. The index varies, so the 32 counters are in local memory, and each "
            "comparison loads a counter and stores it again. At the end, `write` stores the thread's counters. A block "
            "has `BLOCK` = 256 threads.",
        ),
        Step(
            name="loop, unrolled",
            shows=["COUNTERS", "count_unrolled<1>"],
            text="The same loop, unrolled. Every index is now a constant, and the counters occupy 32 registers. The "
            "next step explains `__launch_bounds__`.",
        ),
        Step(
            name="unrolled, spilled",
            shows=["COUNTERS", "count_unrolled<8>"],
            text="The same code, but `__launch_bounds__` requires that 8 blocks fit on a multiprocessor. That leaves "
            "32 registers per thread instead of 64, so the compiler spills the variables that do not fit.",
        ),
        Step(
            name="value as the index",
            shows=["COUNTERS", "count_by_value"],
            text="The element itself is the index, so the thread updates one counter instead of performing 32 "
            "comparisons. But the index is not known until the kernel runs, so the counters are in local memory again.",
            compared_with="loop, not unrolled",
        ),
        Step(
            name="in shared memory",
            shows=["COUNTERS", "count_shared"],
            text="Shared memory has addresses. Shared memory consists of 32 **banks**, which can be accessed at the "
            "same time. Counter `k` of a thread is at `[k][threadIdx.x]`, so each thread of a warp uses its own bank, "
            "whatever `k` is.",
        ),
    ],
    look_at=[
        "Without a GPU, the 'local' column shows the number of accesses to local memory. Unrolling removes all of "
        "them, along with two thirds of the instructions. Spills are not counted there, because the simulator executes "
        "PTX, which has an unlimited number of registers. Look for them in the table with the compiler's report.",
        "With the value as the index, an access to local memory touches about 5 sectors if the threads of a warp have "
        "the same value, and about 18 if the values are random. It is 5 and not 4 because at the end each thread loads "
        "its counters four at a time, which touches 16 sectors per load. On the H200, the rate falls from 1,734 to 243 "
        "GB/s.",
        "On the H200, the unrolled loop reaches 1,126 GB/s, but only 245 GB/s with spills. The additional threads per "
        "multiprocessor do not make up for the spills.",
        "On the H200, the kernel with counters in shared memory reaches 4,029 GB/s, whether the values are random or "
        "all equal. The limit here is the read bandwidth, 4,618 GB/s. It is higher than the copy bandwidth, because "
        "memory is faster when it only reads.",
    ],
    exercise=Exercise(
        task="Each thread writes the moving sums of one column: the sum of each element and the six elements above it, "
        "or fewer at the top. It keeps the last seven elements in a ring buffer, `ring[row % 7]`, which the compiler "
        "must put in local memory. Keep them in registers instead. Each element must still be loaded only once, and "
        "the number of rows is not known until the kernel runs.",
        hints=[
            "Which index varies? Does the oldest element have to be at a different index in each row?",
            "Move the elements instead of the index, so that the oldest one is always at index 0.",
            "After each row, shift all elements down by one in an unrolled loop, and store the new one at the end.",
        ],
        answer="The oldest element is always `last[0]`, and after each row all elements move down by one. The loop "
        "that moves them is unrolled, so every index is a constant and the array occupies seven registers. Moving a "
        "register takes at most one instruction and costs far less than an access to memory.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
