"""The lesson of `coalescing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK, EACH = 128, 8
WARP = 32


def elements_per_lane(launch: Callable[[], object], warp: int, operation: str) -> NDArray[np.int64]:
    """Return how many 4-byte elements each lane of a warp loads from, or stores to, global memory.

    The record of a warp has at most 16 accesses per instruction, so a count that is too high may be cut off.
    """
    with cuda.profile(record_warp=warp) as profile:
        launch()
    record = profile.launches[0].warp
    assert record is not None
    size = np.zeros(WARP, np.int64)
    for access in record.accesses:
        if (access.operation, access.space) == (operation, "global"):
            size += access.active * access.size
    return size // 4


def handles_eight(launch: Callable[[], object], warps: int) -> Iterator[Check]:
    """Check that each thread loads eight elements and stores eight."""
    for operation, verb in (("load", "reads"), ("store", "writes")):
        counts = np.concatenate([elements_per_lane(launch, warp, operation) for warp in range(warps)])
        thread = int(np.argmax(counts != EACH))
        amount = f"more than {EACH}" if counts[thread] > EACH else f"{counts[thread]}"
        found = f"Thread {thread % BLOCK} of block {thread // BLOCK} {verb} {amount}."
        yield Check(f"each thread {verb} {EACH} elements", bool((counts == EACH).all()), found)


def check(answer: cuda.Module) -> Iterator[Check]:
    """Reverse an array that fills its blocks and one that does not, with one thread per eight elements."""
    for size in (2 * EACH * BLOCK, 1999):
        x = np.arange(size, dtype=np.uint32)
        out = poisoned(size, np.uint32)
        grid = blocks_for(size, EACH * BLOCK)
        launch = answer["reverse"][grid, BLOCK].bind(cuda.to_device(x), out, size)
        counted = counters.count(launch, ["sectors/load", "sectors/store"])
        yield compare(f"{size:,} elements are reversed", out.to_host(), x[::-1])
        if size % (EACH * BLOCK) == 0:
            for kind in ("load", "store"):
                yield at_most(f"a {kind} of a warp touches at most 4 sectors", counted[f"sectors/{kind}"], 4)
            yield from handles_eight(launch, size // EACH // WARP)


LESSON = Lesson(
    why="Two kernels in this lesson sum the rows of the same matrix. They read the same elements, perform the same "
    "additions and give the same sums. On an H200, one of them reads at 1,007 GB/s and the other at 4,331 GB/s.\n\n"
    "They differ only in which thread reads which element: the **access pattern**. It determines the speed of almost "
    "every memory-bound kernel.",
    learn=[
        "tell from an index expression how many sectors a load or store touches.",
        "say what fraction of the bytes in those sectors a warp uses.",
        "give each thread several elements and still keep the loads coalesced.",
    ],
    idea="Threads run in groups of 32, called **warps**. Each thread of a warp is a **lane**. When a warp executes a "
    "load, the hardware collects the 32 addresses and fetches every **sector** that contains any of them. A sector is "
    "a 32-byte piece of memory whose address is a multiple of 32, and it is always fetched whole. So the cost of a "
    "load is the number of sectors that it touches.\n\n"
    "When the lanes read 32 adjacent 4-byte elements, the warp touches 4 sectors and uses all 128 bytes. Such a load "
    "is **coalesced**. When the lanes are eight elements apart, each of them needs a different sector. The hardware "
    "fetches 32 sectors, or 1,024 bytes, and the warp uses one eighth of them. The order of the lanes does not matter, "
    "and lanes that need the same sector share it.\n\n"
    "The rule of thumb: let adjacent threads access adjacent elements. In C, `threadIdx.x` belongs in the last index, "
    "with no factor in front of it.",
    steps=[
        Step(
            name="neighbours",
            shows=["thread", "copy_neighbours"],
            text="Thread `i` copies element `i`. A warp touches 32 consecutive elements: 128 bytes, or 4 sectors.",
        ),
        Step(
            name="neighbours, any order",
            shows=["copy_any_order"],
            text="The lanes read the same 4 sectors in a different order. The cost is the same: what matters is the "
            "number of sectors, not the order of the lanes.",
        ),
        Step(
            name="8 elements, contiguous",
            shows=["copy_from", "copy_contiguous<8>"],
            text="On a CPU you would give each worker a contiguous piece of the array. Here, too, each thread copies "
            "eight adjacent elements. In every iteration, the lanes are eight elements apart, so each touches a "
            "different sector. `each` is a template parameter: `copy_contiguous<8>` is compiled for eight elements. "
            "`#pragma unroll` unrolls the loops, so that `value` can be kept in registers.",
        ),
        Step(
            name="8 elements, block stride",
            shows=["copy_from", "copy_block_strided<8>"],
            text="The block copies the same elements in a different order. In every iteration, its threads copy "
            "adjacent elements, and then all of them step ahead by the number of threads in the block.",
        ),
        Step(
            name="8 elements, vector loads",
            shows=["copy_groups<8>"],
            text="This kernel uses the same order with a vector type: one load of a `uint4` reads four elements, or 16 "
            "bytes. `reinterpret_cast` turns a pointer to elements into a pointer to groups of four, which must be "
            "aligned to 16 bytes. A warp requests 512 bytes at once and uses all of the 16 sectors that it touches.",
        ),
        Step(
            name="one thread per column",
            shows=["sum_columns"],
            text="The matrix is stored in row-major order. Row `r` begins at element `r * stride`, which is a multiple "
            "of 32: unused elements at the end of each row keep the rows aligned. Threads that walk down adjacent "
            "columns read adjacent elements in every iteration.",
        ),
        Step(
            name="one thread per row",
            shows=["sum_rows"],
            text="Threads that walk along adjacent rows read elements that are a whole row apart in every iteration. "
            "This is the slow kernel from the introduction.",
        ),
        Step(
            name="one warp per row",
            shows=["sum_rows_by_warps"],
            text="This is the fast kernel. The 32 lanes of a warp walk along one row side by side. At the end, they "
            "add their 32 partial sums with shuffles, which pass values between the lanes of a warp. The mask "
            "`0xffffffff` says that all 32 lanes take part.",
        ),
    ],
    look_at=[
        "Read the 'sectors/load' and 'load efficiency' columns together. The efficiency is the fraction of the fetched "
        "bytes that the lanes asked for. It is 100 % for adjacent elements, and 12.5 % where each lane needs a "
        "different sector.",
        "Where 32 lanes read the same element, the efficiency is also 12.5 %, but the load touches a single sector and "
        "could not be cheaper. Judge a load by its sectors; efficiency is only a symptom.",
        "A vector load touches 16 sectors and uses all of them. A load that asks for more bytes may touch more sectors "
        "without waste.",
        "In the second table, a row has 257 elements on the simulator. One warp per row therefore takes eight loads of "
        "4 sectors and a ninth load of 1 sector for the last element: 3.67 sectors per load on average. Its store "
        "efficiency is 12.5 % because only one lane stores the sum of the row: 4 of the 32 bytes of a sector.",
        "On the H200, the copy with eight elements per thread runs at 1,120 GB/s when the elements are contiguous, and "
        "at 4,140 GB/s with a block stride. On the page with pictures, a plot compares the two orders with 1 to 32 "
        "elements per thread. With up to four contiguous elements, the caches still help, because the warp's later "
        "loads find the rest of each sector there.",
    ],
    exercise=Exercise(
        task="Reverse an array. Each thread handles eight elements: it reads them and writes them to the other end of "
        "the output, in reverse order. Keep eight elements per thread, but let no load or store by a warp touch more "
        "than four sectors if `n` is a multiple of eight. For any other `n`, the reversed elements do not begin at a "
        "sector boundary, so a store may touch five.",
        hints=[
            "Writing in reverse order costs nothing by itself, since the order of the lanes does not matter. Look at "
            "the distance between adjacent lanes instead.",
            "A block handles `8 * blockDim.x` elements. In each iteration, let its threads take adjacent elements.",
            "A thread begins at `8 * blockIdx.x * blockDim.x + threadIdx.x` and steps ahead by `blockDim.x`.",
        ],
        answer="In each iteration, adjacent lanes read adjacent elements and write adjacent elements. For the store, "
        "the lanes are in reverse order, but they still touch only four sectors.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic. They only state the rule: one "
    "element per thread, and adjacent elements for adjacent threads.",
)
