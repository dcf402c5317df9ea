"""The lesson of `heat`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

HEIGHT, BLOCK, WARP = 8, (32, 4), 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Smooth plates that consist of whole strips, counting the loads, and others, one with a single row."""
    for rows, columns in ((64, 96), (45, 70), (1, 33)):
        # Whole numbers, so that their quarters are exact.
        plate = np.random.default_rng(5).integers(0, 100, (rows, columns)).astype(np.float32)
        out = poisoned(plate.shape, np.float32)
        grid = (blocks_for(columns, BLOCK[0]), blocks_for(rows, BLOCK[1] * HEIGHT))
        launch = answer["smooth_down"][grid, BLOCK].bind(cuda.to_device(plate), out, rows, columns)
        counted = counters.count(launch, ["loads"])
        ends = np.pad(plate, ((1, 1), (0, 0)), mode="edge")
        expected = (ends[:-2] + 2 * plate + ends[2:]) / np.float32(4)
        yield compare(f"the cells of a plate of {rows} x {columns}", out.to_host(), expected)
        if rows % HEIGHT == columns % WARP == 0:
            strips = (rows // HEIGHT) * (columns // WARP)
            fact = f"a warp performs {HEIGHT + 2} loads for {HEIGHT} rows"
            yield at_most(fact, float(counted["loads"]) / strips, HEIGHT + 2)


LESSON = Lesson(
    why="A step of heat diffusion uses every cell of the plate five times: once for itself and once for each "
    "neighbour. Yet on an H200, the best kernel in this stop runs at 4,196 GB/s, 97 % of the speed of a plain copy, "
    "which reads each cell once. The obvious kernel reaches 53 %. The textbook remedy, a tile in shared memory, is "
    "slower still and reaches 37 %.\n\n"
    "The second half of this lesson is about output. Writing 24 frames to a file takes 878 ms if computing, copying "
    "and writing take turns. It takes 556 ms if they overlap, only 3 % more than computing alone.",
    learn=[
        "explain why a step reads one copy of the plate and writes another, and what the bounds check is for.",
        "say where a cell that several neighbours need can come from: a cache, shared memory or a register.",
        "choose between a tile and registers by counting loads and instructions.",
        "use a staging copy, a second stream and events to overlap computing, copying and writing.",
    ],
    idea="A computation in which each cell needs its neighbours is called a **stencil**. It does little arithmetic, so "
    "memory is the limit. Each cell must be read from memory at least once and written once. All other loads should be "
    "served from somewhere closer to the threads.\n\n"
    "There are three places to keep a cell for reuse. The **caches** do this without any code, but each load is still "
    "an instruction. A **tile** in shared memory holds a block's cells plus a rim of neighbours, called the **halo**; "
    "it costs a barrier and index arithmetic. **Registers** are the cheapest: a thread that moves down a column "
    "already has two of the three rows that it needs.\n\n"
    "The rule of thumb: the caches already serve repeated loads of neighbouring cells. Save instructions, and reuse "
    "cells in registers before you reuse them in shared memory.",
    steps=[
        Step(
            name="one thread",
            shows=["heated", "heated_at", "heat_strided"],
            text="The value of a cell moves towards the mean of its four neighbours. Threads read `in` and write "
            "`out`, so no thread reads a cell that another has already changed. The kernel has a grid-stride loop, so "
            "even a single thread processes all cells.",
        ),
        Step(
            name="one block",
            shows=["WAYS", "heat_strided"],
            text="The same kernel with 256 threads. A block runs on one multiprocessor, so the others are idle.",
        ),
        Step(
            name="many blocks",
            shows=["WAYS", "heat_strided"],
            text="The same kernel again, with 4,096 blocks that fill the whole device. Only the launch configuration "
            "has changed.",
        ),
        Step(
            name="one thread per cell",
            shows=["heated_at", "heat_cells"],
            text="A two-dimensional grid replaces both the loop and the division that yields the row and the column. "
            "The last blocks reach beyond the plate, so the kernel tests both indices.",
            compared_with="one thread",
        ),
        Step(
            name="shared-memory tile",
            shows=["TILE_X", "TILE_Y", "heat_tiled"],
            text="A block first loads its cells and a halo one cell wide into shared memory. Each cell is loaded "
            "about once. But the index arithmetic of the halo, the barrier and the reads of the tile add more "
            "instructions than the tile saves, and the caches already served the loads that it saves.",
        ),
        Step(
            name="four cells, down rows",
            shows=["heated", "heat_down<2>", "heat_rows<2>"],
            text="A thread loads 16 bytes at a time, four cells of a row, and moves down the rows. The row below stays "
            "in registers, where it becomes the middle row and then the row above, without being loaded again. The "
            "only other loads are those of the outer neighbours on the left and on the right.",
        ),
        Step(
            name="no bounds test",
            shows=["heat_unbounded"],
            text="Wrong on purpose. Without the bounds check, the last blocks read and write outside the plate, or in "
            "the next row of the plate.",
            compared_with="one thread per cell",
        ),
        Step(
            name="asymmetry check",
            shows=["compare_ends", "asymmetry"],
            text="The sum is symmetric, so a plate that equals its mirror image stays that way to the last bit. A "
            "kernel compares the first row with the last and prints the columns that differ. This kernel needs a "
            "bounds check too. The 'check, no bounds test' row is for `asymmetry_unbounded`, the same kernel without "
            "the comparison of `column` with `columns`.",
        ),
        Step(
            name="film: one after another",
            shows=["Camera.take_steps", "Camera.copy_out", "Camera.write", "Camera.one_after_the_other"],
            text="For each frame, the device computes the steps, the frame is copied to pinned memory, and the host "
            "writes it to a file. Each stage waits for the one before, and the device is idle while the host writes.",
        ),
        Step(
            name="film: overlapped",
            shows=["Camera.take_steps", "Camera.copy_out", "Camera.write", "Camera.overlapped"],
            text="The host first queues the steps of the next frame, and then writes the previous one. A finished "
            "frame is kept in a staging copy on the device, so the next steps can run while a second stream copies "
            "the frame out. Events enforce the order: a frame is copied out once it is staged, and the next one is "
            "staged once the previous one has been copied out.",
        ),
    ],
    look_at=[
        "On the simulator, compare the 'loads' and 'instructions' columns for the rows with 66,300 cells. The "
        "counters are those of four steps. With one thread per cell, the four steps take 45,612 loads. The tile needs "
        "only 12,436 loads, but more than twice as many instructions. The kernel that moves down the rows has the "
        "fewest of both.",
        "The kernel that moves down the rows has the lowest 'load efficiency' of these rows, 60.3 %. Its vector loads "
        "use nearly all bytes of their sectors. The loads of the outer neighbours use only a quarter, because the "
        "cells of adjacent lanes are 16 bytes apart. The column counts every sector that a load touches, wherever it "
        "comes from. These sectors come from the L1 cache, because other threads have just loaded them.",
        "The many instructions in the 'many blocks' row are due to the small plate: 1,048,576 threads share 66,300 "
        "cells, and most of the instructions are executed by warps without a cell. On the H200, the same number of "
        "threads shares 268 million cells.",
        "On an H200, one thread per cell reaches 53.0 % of the rate of a copy, the tile reaches 36.7 %, and the kernel "
        "that moves down the rows reaches 97.5 %.",
        "On an H200, the same kernel reaches 0.04 GB/s with one thread, 4.2 GB/s with one block and 2,385 GB/s with "
        "many blocks.",
        "On an H200, 24 frames take 878 ms if the stages run one after another, and 556 ms if they overlap. The steps "
        "alone take 540 ms, so copying and writing are almost entirely hidden.",
    ],
    exercise=Exercise(
        task="Each cell becomes `(above + 2 cell + below) / 4`. Where there is no cell above or below, the cell itself "
        "is used instead. A thread moves down eight rows of its column and loads three cells for each row. Make it "
        "load only ten cells for eight rows. Blocks have 32 x 4 threads, and a plate may have any number of rows and "
        "columns.",
        hints=[
            "When the thread moves down by one row, which two of the three cells of the new row does it already have?",
            "Keep `above` and `cell` in variables outside the loop, and load only `below` in it.",
            "Before the loop, load the cell of the first row and the one above it. At the end of the loop's "
            "body, `above` becomes `cell`, and `cell` becomes `below`. A strip that begins below the plate must load "
            "nothing.",
        ],
        answer="The cell below becomes the cell, and the cell becomes the one above; only the new cell below is "
        "loaded. Two cells are loaded before the loop. The compiler cannot do this itself: the kernel stores to `out` "
        "in between, and for all the compiler knows, `out` may overlap `in`.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic. They say that the overlap hides "
    "the copy.",
)
