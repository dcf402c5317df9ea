"""The lesson of `aliasing`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most, number_of
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
        columns = number_of(size, "column")
        per_thread = {name: float(count) / blocks_for(size, WARP) for name, count in counted.items()}
        yield compare(f"{columns}: the shares", device_table.to_host(), table / np.float32(256))
        yield compare(f"{columns}: the sums", sums.to_host(), np.full(size, 256, np.float32))
        stores = PLANES + 1
        yield at_most(f"{columns}: a thread loads at most {PLANES} elements", per_thread["loads"], PLANES)
        yield at_most(f"{columns}: a thread stores at most {stores} elements", per_thread["stores"], stores)


LESSON = Lesson(
    why="Adding the keyword `__restrict__` to three pointers takes a kernel from 2,264 to 4,335 GB/s on an H200. No "
    "statement in the kernel changes.\n\n"
    "Without it, the compiler must assume the worst: a store through one pointer may change what another points to. So "
    "it delays loads until unrelated stores have been issued, which is what slows this kernel down. In other kernels, "
    "it also reloads values that it already has.",
    learn=[
        "say which loads and stores the compiler repeats because pointers may alias.",
        "remove them with `__restrict__`, or with a local variable, which needs no promise.",
        "explain what happens if the promise made by `__restrict__` is broken.",
    ],
    idea="Two pointers **alias** if they point to the same memory. Unless the compiler can rule that out, it must "
    "reload a value after any store that may have changed it, and it may not move a later load ahead of such a store. "
    "A GPU hides memory latency by keeping several loads in flight, so a load that must wait for a store is "
    "expensive.\n\n"
    "`__restrict__` is a promise to the compiler: memory that is written through this pointer is not accessed through "
    "any other. Nothing checks the promise. A local variable whose address is never taken gives the compiler the same "
    "freedom without a promise, because no pointer can reach it.\n\n"
    "The rule of thumb: accumulate in local variables and store once. Add `__restrict__` wherever you are sure that "
    "the pointers refer to distinct memory.",
    steps=[
        Step(
            name="may alias",
            shows=["PLANES", "weigh"],
            text="The running sum is kept in `out[i]`. The compiler cannot know that `out` does not overlap `in` or "
            "`weights`. So each of the 16 iterations loads its element and its weight, adds their product to the sum, "
            "and stores the sum before the next iteration may load anything. Only one load from the planes is in "
            "flight at a time.",
        ),
        Step(
            name="__restrict__",
            shows=["PLANES", "weigh_restrict"],
            text="Only the pointer declarations change. The sum now stays in a register and is stored once, and the "
            "loads from all planes may be in flight at the same time.",
        ),
        Step(
            name="sum in a variable",
            shows=["PLANES", "weigh_variable"],
            text="The pointers are plain again, but the sum is in a local variable that no pointer can reach. No store "
            "separates the loads. The counts are the same as in the previous step.",
            compared_with="may alias",
        ),
        Step(
            name="four results",
            shows=["four_results"],
            text="Each thread evaluates four expressions of the same two elements. A store through `results` might "
            "change `a[i]` or `b[i]`, so both are loaded again for each expression: eight loads in total.",
        ),
        Step(
            name="four, __restrict__",
            shows=["four_results_restrict"],
            text="With the promise, `a[i]` and `b[i]` are each loaded once: two loads in total.",
        ),
        Step(
            name="a broken promise",
            shows=["over_a", "broken_promise"],
            text="Wrong on purpose. The output array starts at `a` itself, which breaks the promise made in the "
            "previous step. The second expression should read the sum that the first one stored there, but it uses the "
            "old `a[i]`. No error is reported.",
        ),
        Step(
            name="another type at one address",
            shows=["reread_float", "host_reread_float"],
            text="C++ lets the compiler assume that pointers to different types do not alias. This rule is called "
            "**strict aliasing**. At -O2, a host compiler applies it, and `host_reread_float` returns the 1 that it "
            "stored, although that memory now contains the float 0, whose bits are all zero. The device compiler does "
            "not apply it: its code loads the value again.",
        ),
    ],
    look_at=[
        "The 'PTX loads' and 'PTX stores' columns show the number of global loads and stores in the PTX, the assembly "
        "language that the compiler produces. The number of stores falls from 17 to 1 in the weighted sum, and the "
        "number of loads from 8 to 2 in the kernel with four results.",
        "Every version of the weighted sum has 32 loads. The versions differ in how early these loads may be issued, "
        "and that shows only in times measured on a GPU.",
        "The kernel with four results gains little from fewer loads: on the H200, it reaches 3,675 GB/s without the "
        "promise and 3,704 GB/s with it. The repeated loads hit in the cache.",
        "In the last table, the int is still 1 only where a host compiler applies strict aliasing to a `float*`. "
        "Any object may be accessed through a `char*`, an `unsigned char*` or a `std::byte*`, but not through a "
        "`signed char*`. `-fno-strict-aliasing` switches the rule off. The 'device, float*' and 'host -O2, float*' "
        "rows have no check, because C++ does not define their results.",
        "In the 'results overlap a' row, the kernel without the promise writes its results over its own input. They "
        "equal the results of the code as written.",
    ],
    exercise=Exercise(
        task="The kernel divides each element of a table by the sum of its column, in place, and also writes the sums. "
        "Each thread handles one column of eight elements. Rewrite the kernel so that a thread loads each element only "
        "once, and stores only the eight quotients and the sum. Try `__restrict__` first: it is not enough here, and "
        "the first hint says why.",
        hints=[
            "A promise about two pointers says nothing about two elements that are accessed through the same pointer.",
            "The compiler does not know `n`. After a store to `table[i]`, may it assume that `table[n + i]` is "
            "unchanged?",
            "Load the column into a local array of eight elements first. With the loops unrolled, the array lives in "
            "registers.",
        ],
        answer="The column and its sum are kept in local variables. The loops are unrolled, so every index of `column` "
        "is a constant and the array stays in registers. `__restrict__` tells the compiler that `sums` and `table` are "
        "distinct. But a store to the table may still change another element of the same table. Without the local "
        "array, that element would have to be loaded again.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
