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
    """Smooth plates of whole strips, for which the loads are counted, and others, of which one has a single row."""
    for rows, columns in ((64, 96), (45, 70), (1, 33)):
        # Whole numbers, of which the quarters are exact too.
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
            fact = f"a warp loads {HEIGHT + 2} times for {HEIGHT} rows"
            yield at_most(fact, float(counted["loads"]) / strips, HEIGHT + 2)


LESSON = Lesson(
    learn=[
        "Why a step reads one copy of the plate and writes another one, and what the bounds test is for.",
        "Where a cell that several neighbours need comes from: the caches, a tile in shared memory, or registers.",
        "How to come close to the time of a copy, which reads each cell once and writes it once.",
        "How frames are copied out and written while the next steps run, by a staging copy and a second stream.",
    ],
    steps=[
        Step(
            name="one thread",
            shows=["heated", "heated_at", "heat_strided"],
            text="A cell moves toward the mean of its four neighbours. Threads read `in` and write `out`, so that no "
            "thread reads a cell which another one has already changed. Threads stride over the cells, and one thread "
            "alone would do them all.",
        ),
        Step(
            name="one block",
            shows=["WAYS", "heat_strided"],
            text="The same kernel with 256 threads. A block runs on one multiprocessor, and the others are idle.",
        ),
        Step(
            name="many blocks",
            shows=["WAYS", "heat_strided"],
            text="The same kernel again with 4,096 blocks, which fill the whole device. Only the shape of the launch "
            "has changed.",
        ),
        Step(
            name="a thread a cell",
            shows=["heated_at", "heat_cells"],
            text="A grid of two dimensions replaces the loop and the division that finds row and column. The blocks at "
            "the end reach beyond the plate, hence the test of both bounds.",
            compared_with="one thread",
        ),
        Step(
            name="through a tile",
            shows=["TILE_X", "TILE_Y", "heat_tiled"],
            text="A block first loads its cells, and a rim of one cell around them, into shared memory. Each cell is "
            "loaded about once, but the indices of the rim, the barrier and the reads of the tile take more "
            "instructions than the loads that they save, which the caches had answered anyway.",
        ),
        Step(
            name="four cells, down rows",
            shows=["heated", "heat_down<2>", "heat_rows<2>"],
            text="A thread loads 16 bytes, four cells of a row, and goes down the rows. The row below becomes the "
            "middle row, and then the row above, without being loaded again: it stays in registers. Only the outer "
            "neighbours to the left and to the right are loaded besides.",
        ),
        Step(
            name="no bounds test",
            shows=["heat_unbounded"],
            text="WRONG: without the test the last blocks read and write outside of the plate, or in its next row.",
            compared_with="a thread a cell",
        ),
        Step(
            name="asymmetry check",
            shows=["compare_ends", "asymmetry"],
            text="The sum is symmetric, so a plate that equals its mirror image stays so to the last bit. A kernel "
            "compares the first row with the last one and prints the columns that differ. This kernel needs a bounds "
            "test, too.",
        ),
        Step(
            name="film: in turn",
            shows=["Camera.take_steps", "Camera.copy_out", "Camera.write", "Camera.one_after_the_other"],
            text="For each frame the device takes its steps, then the frame is copied to pinned memory, and then the "
            "host writes it to a file. Each waits for the one before, and the device is idle while the host writes.",
        ),
        Step(
            name="film: overlapped",
            shows=["Camera.take_steps", "Camera.copy_out", "Camera.write", "Camera.overlapped"],
            text="The steps of the next frame are queued first, and then the host writes the last frame. The frame "
            "lies in a staging copy on the device, so the plate can go on while a second stream copies it out. Events "
            "keep the order: a frame is copied out when it is staged, and the next one is staged when the last one has "
            "been copied out.",
        ),
    ],
    look_at=[
        "Without a GPU, compare the columns 'loads' and 'instructions' of the rows with 66,300 cells: a thread a cell "
        "makes 45,612 loads, and the tile 12,436 for more than twice the instructions. Going down the rows has the "
        "fewest of both.",
        "On an H200 a thread a cell reaches 53.0 % of the rate of a copy, the tile 36.7 %, and going down the rows "
        "98.0 %.",
        "On an H200 one thread reaches 0.04 GB/s, one block 4.2 GB/s, and many blocks 2,427 GB/s, by the same kernel.",
        "On an H200 24 frames take 905 ms in turn and 590 ms overlapped. That is 1.03 times the 575 ms which the steps "
        "take alone, so that copying and writing are hidden behind them.",
    ],
    exercise=Exercise(
        task="Each cell becomes `(above + 2 cell + below) / 4`. Where there is no cell above or below, the cell itself "
        "takes its place. A thread goes down eight rows of its column, and loads three cells for each row. Let it load "
        "ten cells for eight rows. Blocks have 32 x 4 threads, and a plate may have any number of rows and columns.",
        hints=[
            "When the thread goes down by one row, which two of the three cells of the new row does it already have?",
        ],
        answer="The cell below becomes the cell, and the cell becomes the one above; only the new cell below is "
        "loaded. Two cells are loaded before the loop. The compiler cannot do that itself: the kernel stores to `out` "
        "in between, and for all it knows `out` may overlap with `in`.",
        check=check,
    ),
    course="The courses give no figures for this topic. They say that the overlap hides the copy.",
)
