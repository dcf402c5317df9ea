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
    """Divide tables whose sums and shares are exact; count loads and stores."""
    # The sum of a column is 256.
    column = np.array([1, 1, 2, 4, 8, 16, 32, 192], np.float32)
    for size in (512, 333, 1):
        table = np.stack([np.roll(column, i) for i in range(size)], axis=1)
        device_table, sums = cuda.to_device(table), poisoned(size, np.float32)
        launch = answer["shares"][blocks_for(size, BLOCK), BLOCK].bind(device_table, sums, size)
        counted = counters.count(launch, ["loads", "stores"])
        per_thread = {name: float(count) / blocks_for(size, WARP) for name, count in counted.items()}
        yield compare(f"{size} columns: the shares", device_table.to_host(), table / np.float32(256))
        yield compare(f"{size} columns: the sums", sums.to_host(), np.full(size, 256, np.float32))
        stores = PLANES + 1
        yield at_most(f"{size} columns: a thread loads at most {PLANES} elements", per_thread["loads"], PLANES)
        yield at_most(f"{size} columns: a thread stores at most {stores} elements", per_thread["stores"], stores)


LESSON = Lesson(
    why="Adding the keyword `__restrict__` to three pointers takes a kernel from 2,266 to 4,331 GB/s on an H200. No "
    "statement in the kernel changes.\n\n"
    "Without it the compiler must assume the worst: a store through one pointer may change what another one points to. "
    "So it loads values that it already has, and waits for stores that have nothing to do with the next load.",
    learn=[
        "say which loads and stores the compiler repeats because pointers may alias.",
        "remove them with `__restrict__` or, without a promise, with a local variable.",
        "say what happens if the promise of `__restrict__` is broken.",
    ],
    idea="Two pointers **alias** if they point to the same memory. After a store through one, the compiler must reload "
    "whatever the other one may point to, and it may not move a later load ahead of the store. A GPU hides the latency "
    "of memory by keeping several loads in flight, so a load that must wait for a store is expensive.\n\n"
    "`__restrict__` promises that what is stored through this pointer is not reached through another one. Nobody "
    "checks the promise. A local variable whose address is never taken gives the same freedom and needs no promise, "
    "since no pointer reaches it.\n\n"
    "The rule of thumb: accumulate in local variables and store once. Add `__restrict__` to pointers that are sure to "
    "be distinct.",
    steps=[
        Step(
            name="may alias",
            shows=["PLANES", "weigh"],
            text="The sum is kept in `out[i]`. The compiler cannot know that `out` is distinct from `in` and "
            "`weights`. So each of the 16 passes loads its element and its weight, adds, and stores the sum before the "
            "next pass may load. Only one load from the planes is in flight at a time.",
        ),
        Step(
            name="__restrict__",
            shows=["PLANES", "weigh_restrict"],
            text="Only the declarations of the pointers change. The sum now stays in a register and is stored once, "
            "and the loads from all planes may be in flight together.",
        ),
        Step(
            name="sum in a variable",
            shows=["PLANES", "weigh_variable"],
            text="The pointers are plain again. The sum is in a local variable that no pointer reaches, so no store "
            "stands between the loads. The counts are those of the previous step.",
            compared_with="may alias",
        ),
        Step(
            name="four results",
            shows=["four_results"],
            text="Four expressions of the same two elements. A store through `results` might change `a[i]` or `b[i]`, "
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
            text="WRONG: the results begin at `a` itself, which breaks the promise of the previous step. The second "
            "expression should see the sum that the first one has stored there, but it uses the old `a[i]`. Nothing "
            "reports it.",
        ),
        Step(
            name="another type at one address",
            shows=["reread_float", "host_reread_float"],
            text="C++ says that pointers to different types do not alias. This rule is called **strict aliasing**. A "
            "host compiler with -O2 uses it and returns the 1 that it has stored, although the address now holds the "
            "float 0, whose bits are all zero. The device code loads the value again.",
        ),
    ],
    look_at=[
        "The columns 'PTX loads' and 'PTX stores' count the instructions in PTX, the assembly language that the "
        "compiler produces. The stores of the weighted sum fall from 17 to 1, and the loads of the four results from 8 "
        "to 2.",
        "The weighted sum has 32 loads in every row. The difference is when they may begin, so only times on a GPU "
        "show it.",
        "The four results hardly gain from fewer loads: 3,661 and 3,691 GB/s on the H200. A cache serves the repeated "
        "loads of an element.",
        "In the last table the int stays 1 only where a host compiler applies strict aliasing to a `float*`. A `char*` "
        "may point into any object, and `-fno-strict-aliasing` switches the rule off.",
    ],
    exercise=Exercise(
        task="The kernel divides each element of a table by the sum of its column, in place, and also writes the sums. "
        "Each thread handles one column of eight elements. Make it load each of these once, and store eight shares and "
        "one sum. Try `__restrict__` first. It is not enough here. Why?",
        hints=[
            "A promise about two pointers says nothing about two elements that are reached through the same pointer.",
            "The compiler does not know `n`. After a store to `table[i]`, may it assume that `table[n + i]` is "
            "unchanged?",
            "Load the column into a local array of eight elements first. With the loops unrolled, the array lives in "
            "registers.",
        ],
        answer="The elements of the column and their sum are in local variables. The loops are unrolled, so each index "
        "of `column` is a constant and the array is in registers. `__restrict__` keeps `sums` and `table` apart, but a "
        "store to the table may still change another element of the same table, which is therefore loaded again.",
        check=check,
    ),
    course="The lectures give no figures for this topic.",
)
