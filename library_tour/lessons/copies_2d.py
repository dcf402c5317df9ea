"""The lesson of `copies_2d`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

OUTSIDE = -7


def check(answer: ModuleType) -> Iterator[Check]:
    """Swap the quarters of matrices with even and odd sides, within larger arrays; count the copies."""
    for rows, columns in ((6, 8), (5, 7), (12, 3)):
        picture = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
        source, larger = cuda.to_device(picture), cuda.full((rows + 2, columns + 3), OUTSIDE, np.int32)
        target = larger[1 : 1 + rows, 2 : 2 + columns]
        cuda.legacy_default.synchronize()
        with cuda.Stream() as stream, stream.capture() as graph:
            answer.exchange_quarters(target, source, stream)
        with graph.instantiate() as executable:
            executable.launch(stream=cuda.legacy_default)
            cuda.legacy_default.synchronize()
        expected = np.full(larger.shape, OUTSIDE, np.int32)
        expected[1 : 1 + rows, 2 : 2 + columns] = np.fft.fftshift(picture)
        yield compare(f"the quarters of {rows} x {columns} elements are swapped", larger.to_host(), expected)
        yield at_most(f"{rows} x {columns}: at most four copies are queued", graph.node_count, 4)


LESSON = Lesson(
    why="Suppose that you want to copy part of an 8,192 x 8,192 matrix: a window of 6,143 rows and 4,095 columns. Row "
    "by row, that takes 80 ms on an H200. A single call copies the same bytes in 1.9 ms.\n\n"
    "Each row of the window is 16 KB long, and copying it takes 19 microseconds. In that time, the link could carry 1 "
    "MB. The link is not slow; the 6,143 calls are.",
    learn=[
        "define the **pitch** of a matrix.",
        "copy or fill a window of a matrix in one call.",
        "explain why one copy per row is slow, although it moves the same bytes.",
        "use both directions of the link at the same time.",
    ],
    idea="The rows of a matrix follow one another in memory. The rows of a *window* of the matrix do not: between the "
    "end of one and the start of the next lie the columns outside the window.\n\n"
    "```\n"
    "        |<---------------- pitch ---------------->|\n"
    "row 0   . . . . [ window: width ] . . . . . . pad\n"
    "row 1   . . . . [ window        ] . . . . . . pad\n"
    "row 2   . . . . [ window        ] . . . . . . pad\n"
    "```\n\n"
    "The **pitch** is the number of bytes from the start of one row to the start of the next. It is the same for the "
    "window and for the whole matrix. Given an address, a width, a height and a pitch, the copy engine can copy all "
    "rows in one operation. `cudaMallocPitch` (here `empty_pitched`) allocates a matrix and pads its rows, so that "
    "each of them starts at an aligned address. The rows of a window start at its first column, whether that is "
    "aligned or not.\n\n"
    "The rule of thumb: every call costs several microseconds, so describe as much work as possible in one call.",
    steps=[
        Step(
            name="the window",
            shows=["run"],
            text="`target[window]` is a view, with the window's shape and the strides of the whole matrix. "
            "`row_by_row` calls the driver once per row of the window. The other variants use one call for all rows: "
            "`memcpy2d` takes both pitches from the strides of its arrays, and `memset` likewise fills a whole window. "
            "`both_ways` queues two copies in two streams, one in each direction.",
        ),
        Step(
            name="done or queued",
            shows=["returned"],
            text="As with one-dimensional copies, a call without a stream waits unless both arrays are on the device. "
            "In a stream, a copy to or from pinned memory is only queued.",
        ),
    ],
    look_at=[
        "The 'calls' column shows the difference: one call per row of the window, or one call for all rows.",
        "For every row of the table, the stop also checks that nothing outside the window has changed.",
        "On an H200, 6,143 copies of one row each reach 1.3 GB/s, and one copy of all rows reaches 54 GB/s.",
        "Two simultaneous copies in opposite directions reach 91 GB/s on an H200, although one direction of the link "
        "carries only 55 GB/s.",
    ],
    exercise=Exercise(
        task="Write `exchange_quarters(target, source, stream)`. It copies one device matrix to another and swaps its "
        "diagonally opposite quarters, so that element `(0, 0)` goes to row `rows // 2` and column `columns // 2`, "
        "just as `numpy.fft.fftshift` does. It may queue at most four copies. `target` is a window of a larger matrix, "
        "and the number of rows or columns may be odd.",
        hints=[
            "Into how many rectangles can you cut the matrix so that each of them moves as a whole?",
            "The last `rows // 2` rows of the source become the first rows of the target. The same is true of the "
            "columns.",
            "For each axis, write down two pairs of slices, one slice for the target and one for the source. Combine "
            "each pair for the rows with each pair for the columns, and call `memcpy2d` for each combination.",
        ],
        answer="Each quarter is a window of the source and a window of the target, so a single `memcpy2d` copies it, "
        "however many rows it has. If a side has an odd length, the quarters differ in size. The slices account for "
        "that: the part that comes first in one matrix comes last in the other.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
