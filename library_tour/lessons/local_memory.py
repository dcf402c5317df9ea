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
    """Sum whole numbers, in columns longer and shorter than the window; count loads and accesses to local memory."""
    for rows, columns in ((40, 256), (23, 77), (3, 130)):
        numbers = np.random.default_rng(5).integers(-99, 100, (rows, columns)).astype(np.float32)
        sums = poisoned((rows, columns), np.float32)
        grid = blocks_for(columns, BLOCK)
        launch = answer["moving_sums"][grid, BLOCK].bind(cuda.to_device(numbers), sums, rows, columns)
        counted = counters.count(launch, ["local", "loads"])
        totals = np.concatenate([np.zeros((WINDOW, columns), np.float32), numbers.cumsum(axis=0)])
        where = f"{rows} x {columns}"
        yield compare(f"{where}: the moving sums", sums.to_host(), totals[WINDOW:] - totals[:rows])
        yield at_most(f"{where}: no access to local memory", counted["local"], 0)
        loads = float(counted["loads"]) / blocks_for(columns, WARP)
        yield at_most(f"{where}: a thread loads its {rows} numbers once", loads, rows)


LESSON = Lesson(
    learn=[
        "An array of a thread is in registers only if each of its indices is known when the kernel is compiled. Else "
        "it is in local memory, which is memory of the device behind the caches.",
        "Local memory lays the same word of all lanes side by side, so that lanes with the same index share sectors "
        "and lanes with different indices do not.",
        "What does not fit into a thread's registers is spilled into local memory, and the compiler reports it.",
    ],
    steps=[
        Step(
            name="loop, not unrolled",
            shows=["COUNTERS", "count_in_loop"],
            text="Each thread counts how often each number from 0 to 31 is among its values. The loop compares a value "
            "with the number of each counter. Its index varies, and registers have no addresses, so the 32 counters "
            "are in local memory: each comparison loads a counter and stores it.",
        ),
        Step(
            name="loop, unrolled",
            shows=["COUNTERS", "count_unrolled<1>"],
            text="The loop is the same, but unrolled. Each index is a constant, and the counters are 32 registers.",
        ),
        Step(
            name="unrolled, spilled",
            shows=["COUNTERS", "count_unrolled<8>"],
            text="The code is the same, but `__launch_bounds__` asks for 8 blocks on a multiprocessor, which leaves 32 "
            "registers for a thread instead of 64. The compiler keeps what does not fit in local memory.",
        ),
        Step(
            name="value as the index",
            shows=["COUNTERS", "count_by_value"],
            text="The value itself is the index, so that one counter is changed instead of 32 compared. The index is "
            "not known before the kernel runs, and the counters are in local memory again.",
            compared_with="loop, not unrolled",
        ),
        Step(
            name="in shared memory",
            shows=["COUNTERS", "count_shared"],
            text="The counters of all threads are in shared memory, which has addresses. Counter `k` of a thread is at "
            "`[k][threadIdx.x]`, so each lane has a bank of its own, whatever its index is.",
        ),
    ],
    look_at=[
        "Without a GPU, the column 'local' counts the accesses to local memory. Unrolling the loop takes all of them "
        "away, and two thirds of the instructions. Spills are not counted there, since PTX has registers without end; "
        "the table of what the compiler reports shows them.",
        "With the value as the index, an access to local memory touches about 5 sectors where the lanes of a warp have "
        "the same value, and about 18 where the values are random. On an H200 the rate falls from 1,720 to 230 GB/s.",
        "On an H200 the unrolled loop reaches 1,130 GB/s, and 240 GB/s where it spills. More threads do not make up "
        "for the spills.",
        "Shared memory reaches 4,030 GB/s on an H200, for random values as for equal ones.",
    ],
    exercise=Exercise(
        task="A thread writes the moving sums of its column: each is the sum of a number and the six numbers above it, "
        "or of fewer at the top. It keeps the last seven numbers in a ring, `ring[row % 7]`, which the compiler has to "
        "put into local memory. Keep them in registers. Each number is still loaded once, and the number of rows is "
        "not known before the kernel runs.",
        hints=[
            "Must the oldest number be at another index in each row? Let the numbers move instead of the index.",
        ],
        answer="The oldest number is always `last[0]`, and after each row all numbers move down by one place. The loop "
        "that moves them is unrolled, so that every index is a constant and the array is seven registers. Moving a "
        "register to another one costs an instruction at most, which is far less than an access to memory.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
