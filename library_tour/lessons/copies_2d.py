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
    """Exchange the quarters of pictures with even and odd sides, which lie in larger arrays; count the copies."""
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
        yield compare(f"the quarters of {rows} x {columns} elements are exchanged", larger.to_host(), expected)
        yield at_most(f"{rows} x {columns}: four copies are queued at most", graph.node_count, 4)


LESSON = Lesson(
    learn=[
        "What a pitch is: the bytes from one row of a matrix to the next, which may be more than a row has.",
        "How one call copies a window of a matrix, whose rows do not follow one another in memory.",
        "Why a copy for each row is slow, though it moves the same bytes.",
    ],
    steps=[
        Step(
            name="the window",
            shows=["run"],
            text="`empty_pitched` pads each row so that all rows begin at an aligned address. `target[window]` is a "
            "view: it has the window's shape, and the strides of the whole matrix. The first way, `row_by_row`, calls "
            "the driver for each row of the window. All others make one call for all rows: `memcpy2d` takes the two "
            "pitches from the strides of its arrays, and `memset` fills a window in the same way. `both_ways` queues "
            "copies in two streams, one in each direction.",
        ),
        Step(
            name="done or queued",
            shows=["returned"],
            text="As with copies of whole arrays: without a stream the call waits unless both arrays are on the "
            "device, and in a stream a copy of pinned memory is only queued.",
        ),
    ],
    look_at=[
        "The column 'calls': one for each row of the window, or one for all rows.",
        "Every row of the table also checks that nothing outside of the window has changed.",
        "On an H200 6,143 copies of a row each reach 0.9 GB/s, and one copy of all rows 52 GB/s. A row has 16 KB, and "
        "its copy takes some 19 microseconds, in which the link could carry 1 MB: the calls are slow, not the link.",
        "Copies in both directions at once reach 91 GB/s on an H200, where one direction of the link carries 55 GB/s.",
    ],
    exercise=Exercise(
        task="Write `exchange_quarters(target, source, stream)`: it copies a matrix of the device into another one and "
        "exchanges its quarters across the middle, so that element `(0, 0)` goes to row `rows // 2` and column "
        "`columns // 2`, as `numpy.fft.fftshift` does. At most four copies may be queued. `target` is a window of a "
        "larger matrix, and the number of rows or columns may be odd.",
        hints=[
            "The last `rows // 2` rows of the source are the first ones of the target. The same holds for columns, so "
            "there are four windows, each with its own place in the target.",
        ],
        answer="Each quarter is a window of the source and one of the target, which one `memcpy2d` copies, whatever "
        "its number of rows. With odd sides the quarters differ in size, which the slices take into account: what "
        "comes first in one matrix comes last in the other.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
