"""The lesson of `memset`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..lesson import Exercise, Lesson, Step
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Mark arrays of both floating-point types, then look at their bits."""
    for dtype in (np.float32, np.float64):
        x = cuda.zeros(1003, dtype)
        answer.mark(x)
        marked = int(np.isnan(x.to_host()).sum())
        yield Check(f"all {x.size:,} numbers of type {x.dtype} are NaNs", marked == x.size, f"{marked:,} are.")


LESSON = Lesson(
    learn=[
        "A fill writes a pattern of 8, 16 or 32 bits again and again, whatever the type of the elements is.",
        "Why a fill of integers by bytes gives 16,843,009 instead of 1.",
        "How to set floating-point numbers by the pattern of their bits.",
    ],
    steps=[
        Step(
            name="what NumPy makes of the same bits",
            shows=["VALUE", "WIDTHS", "reference"],
            text="An array of bytes, of 16-bit or of 32-bit integers is filled with 1, and then read as integers of 32 "
            "bits. Only the last pattern has the width of the elements.",
        ),
        Step(
            name="the same on the device",
            shows=["run"],
            text="`cuda.memset` takes the width of the pattern from the array's type, so a view of the same memory "
            "chooses it: `integers.view(np.uint8)` is filled by bytes. A value that does not fit the width is an "
            "error, where C would write its lowest bits.",
        ),
    ],
    look_at=[
        "The column 'every integer' shows what the elements are afterwards: 0x01010101 is 16,843,009, and 0x00010001 "
        "is 65,537.",
        "On the H200 all widths are written at the same rate. A fill only writes, and so it is compared with the "
        "bandwidth of writing, which is higher than that of a copy.",
    ],
    exercise=Exercise(
        task="Write `mark(x)`, which makes a NaN of every number of a floating-point array, whether these have 32 or "
        "64 bits, by one fill. The tour does so before each check: what a kernel forgets to write is then never right "
        "by chance.",
        hints=[
            "A floating-point number is a NaN if all bits of its exponent are 1 and its fraction is not zero. Which "
            "byte makes such a number when it is repeated, whatever the width is?",
        ],
        answer="With all bits set, the exponent is all ones and the fraction is not zero, in every floating-point "
        "type. So the byte 0xFF is the pattern, and the array is filled as one of bytes.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
