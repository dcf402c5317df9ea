"""The lesson of `aliasing`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

PLANES, BLOCK, WARP = 8, 128, 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Divide tables of powers of two, whose columns are rotated so that sums and shares are exact; count accesses."""
    # The sum of a column is 256.
    column = np.array([1, 1, 2, 4, 8, 16, 32, 192], np.float32)
    for size in (512, 333, 1):
        table = np.stack([np.roll(column, i) for i in range(size)], axis=1)
        device_table, sums = cuda.to_device(table), poisoned(size, np.float32)
        launch = answer["shares"][blocks_for(size, BLOCK), BLOCK].bind(device_table, sums, size)
        counted = counters.count(launch, ["loads", "stores"])
        warps = blocks_for(size, WARP)
        yield compare(f"{size} columns: the shares", device_table.to_host(), table / np.float32(256))
        yield compare(f"{size} columns: the sums", sums.to_host(), np.full(size, 256, np.float32))
        yield at_most(f"{size} columns: a thread loads {PLANES} numbers", float(counted["loads"]) / warps, PLANES)
        stores = PLANES + 1
        yield at_most(f"{size} columns: a thread stores {stores} numbers", float(counted["stores"]) / warps, stores)


LESSON = Lesson(
    learn=[
        "Two pointers alias if they point to the same memory. Where they might, the compiler has to load a value again "
        "after each store, and may not begin a later load before that store.",
        "`__restrict__` promises that what is stored through one pointer is not reached through another. Nobody checks "
        "the promise.",
        "A variable of the thread's own gives the compiler the same freedom without any promise.",
    ],
    steps=[
        Step(
            name="may alias",
            shows=["PLANES", "weigh"],
            text="The sum is kept in `out[i]`. The compiler cannot know that `out` lies apart from `in` and `weights`, "
            "so each of the 16 passes loads two numbers, adds, and stores the sum before the next pass may load. One "
            "load of the planes is in flight at a time.",
        ),
        Step(
            name="__restrict__",
            shows=["PLANES", "weigh_restrict"],
            text="Only the declarations of the pointers change. Now the sum stays in a register and is stored once, "
            "and the loads of all planes may begin at once.",
        ),
        Step(
            name="sum in a variable",
            shows=["PLANES", "weigh_variable"],
            text="The pointers are plain again. The sum is in a variable that has no address, so that no store stands "
            "between the loads. The counts are those of the step before.",
            compared_with="may alias",
        ),
        Step(
            name="four results",
            shows=["four_results"],
            text="Four expressions of the same two numbers. A store through `results` might change `a[i]` or `b[i]`, "
            "so both are loaded for each expression: eight loads.",
        ),
        Step(
            name="four, __restrict__",
            shows=["four_results_restrict"],
            text="With the promise, `a[i]` and `b[i]` are loaded once: two loads.",
        ),
        Step(
            name="a broken promise",
            shows=["over_a", "broken_promise"],
            text="The results begin at `a` itself, which breaks the promise of the step before. The second expression "
            "should see the sum that the first one has stored there, and sees the old `a[i]`. Nothing reports it. This "
            "step is wrong on purpose.",
        ),
        Step(
            name="another type at the same address",
            shows=["reread_float", "host_reread_float"],
            text="C++ says that pointers to different types do not alias (strict aliasing). A host compiler with -O2 "
            "uses this and returns the 1 that it has stored, although a float 0, whose bits are all zero, lies there "
            "by now. The device code loads the number again.",
        ),
    ],
    look_at=[
        "The columns 'PTX loads' and 'PTX stores' count instructions of the compiled kernel, with and without a GPU. "
        "The stores of a sum of 16 planes fall from 17 to 1; the loads of four results fall from 8 to 2.",
        "The weighted sum has 32 loads in every row. What differs is when they may begin: on an H200 the rate is 2,270 "
        "GB/s where the pointers may alias, and 4,330 GB/s with `__restrict__`.",
        "The four results hardly gain from fewer loads on an H200, 3,660 against 3,690 GB/s, because a cache answers "
        "the loads of a number that has just been loaded.",
        "In the last table an int of 1 remains only where a host compiler applies strict aliasing to a `float*`. "
        "A `char*` may point into any object, and `-fno-strict-aliasing` takes the rule away.",
    ],
    exercise=Exercise(
        task="The kernel divides each number of a table by the sum of its column, in place, and writes the sums. A "
        "thread has one column of eight numbers. Make it load each of these numbers once and store eight shares and "
        "one sum. Try `__restrict__` first: it is not enough here. Why?",
        hints=[
            "After `table[i]` is stored, must the compiler take into account that `table[n + i]` has changed, where "
            "it does not know `n`? A promise about two pointers says nothing about two places behind the same one.",
        ],
        answer="The numbers of the column and their sum are in variables of the thread's own. The loops are unrolled, "
        "so that each index of `column` is a constant and the array is in registers. `__restrict__` keeps `sums` and "
        "`table` apart, but a store to the table may still change another number of the same table, which is "
        "therefore loaded again.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
