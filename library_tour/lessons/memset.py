"""The lesson of `memset`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..lesson import Exercise, Lesson, Step
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Mark arrays of both floating-point types, and count their NaNs."""
    for dtype in (np.float32, np.float64):
        x = cuda.zeros(1003, dtype)
        answer.mark(x)
        marked = int(np.isnan(x.to_host()).sum())
        yield Check(f"all {x.size:,} elements of type {x.dtype} are NaNs", marked == x.size, f"{marked:,} are.")


LESSON = Lesson(
    why="Fill an array of integers with 1, using C's `cudaMemset`, and every element becomes 16,843,009. The call "
    "fills *bytes*, and four bytes with the value 1 form that integer. It is one of the oldest traps in CUDA, and "
    "zeros hide it: a fill with 0 is right at any width.\n\n"
    "Used well, a fill is the fastest way to write memory. On an H200, it writes at 4,531 GB/s, 97 % of the write "
    "bandwidth, and you need no kernel of your own.",
    learn=[
        "predict the elements of an array after a fill of 8, 16 or 32 bits.",
        "choose the width of a fill.",
        "set floating-point elements through their bit pattern.",
    ],
    idea="A fill repeats a pattern of 8, 16 or 32 bits through memory. It knows nothing about the type of the "
    "elements:\n\n"
    "```\n"
    "8 bits    01 01 01 01 | 01 01 01 01    each 0x01010101 = 16,843,009\n"
    "16 bits   01 00 01 00 | 01 00 01 00    each 0x00010001 = 65,537\n"
    "32 bits   01 00 00 00 | 01 00 00 00    each 0x00000001 = 1\n"
    "```\n\n"
    "C's `cudaMemset` always fills bytes, and silently keeps only the lowest 8 bits of the value. The driver's "
    "`cuMemsetD8`, `cuMemsetD16` and `cuMemsetD32` have the width in their names; `cuda.memset` takes it from the type "
    "of the array.\n\n"
    "The rule of thumb: the width of the fill must be the width of the element, unless all bytes of the element are "
    "equal.",
    steps=[
        Step(
            name="the same bits in NumPy",
            shows=["VALUE", "WIDTHS", "reference"],
            text="Arrays of 8-, 16- and 32-bit integers are filled with 1, and their memory is then read as 32-bit "
            "integers. Only the last pattern is as wide as the elements.",
        ),
        Step(
            name="the same on the device",
            shows=["run"],
            text="`cuda.memset` takes the width of the pattern from the array's type, so a view of the same memory "
            "selects the width: `integers.view(np.uint8)` is filled byte by byte. A value that does not fit the width "
            "is an error; C would write only its lowest bits.",
        ),
    ],
    look_at=[
        "The 'each integer' column shows the value of every element after the fill.",
        "On an H200, fills of all widths run at the same rate. A fill only writes, so the limit here is the write "
        "bandwidth, 4,678 GB/s, and not the copy bandwidth.",
        "The '32 bits, in a stream' row is the same fill, queued in a stream other than the default stream.",
    ],
    exercise=Exercise(
        task="Write `mark(x)`. The function sets every element of a 32- or 64-bit floating-point array to NaN with a "
        "single fill. The tour does so before every check, so that an element that a kernel forgets to write is never "
        "right by chance.",
        hints=[
            "The lesson `nan_check` shows the bits of a NaN: all exponent bits are set, and the mantissa is not zero.",
            "The fill should not depend on the width of the elements. Which byte, repeated, forms a NaN of any width?",
            "Fill the array's bytes, `x.view(np.uint8)`, with the byte in which all bits are set.",
        ],
        answer="With all bits set, the exponent is all ones and the mantissa is not zero, in every floating-point "
        "type. So the pattern is the byte 0xFF, and the array is filled as an array of bytes.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
