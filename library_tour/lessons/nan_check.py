"""The lesson of `nan_check`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

LARGEST = float(np.finfo(np.float32).max)
NUMBERS = {"infinity": np.inf, "minus infinity": -np.inf, "NaN": np.nan, "the largest float": LARGEST, "zero": 0.0}


def check(answer: cuda.Module) -> Iterator[Check]:
    """Ask about special numbers, and about one NaN with another mantissa."""
    x = np.array([*NUMBERS.values(), 0], np.float32)
    x[-1:].view(np.uint32)[:] = 0xFF800001
    infinite = poisoned(x.size, np.int32)
    answer["infinite"][1, 32](cuda.to_device(x), infinite, x.size)
    for name, number, said in zip([*NUMBERS, "another NaN"], x, infinite.to_host(), strict=True):
        expected = np.array([np.isinf(number)], np.int32)
        yield compare(f"whether {name} is infinite", np.array([said], np.int32), expected)


LESSON = Lesson(
    learn=[
        "How a NaN looks as bits: all bits of the exponent are set, and the mantissa is not zero.",
        "Why `isnan()` can disappear under a host compiler's fast math, and that CUDA's own option keeps it.",
        "Why a mask over the mantissa of a double needs 13 hexadecimal digits.",
    ],
    steps=[
        Step(
            name="isnan",
            shows=["Isnan", "first_nan"],
            text="A thread tests one number by CUDA's `isnan()` and lowers `*first` to its place if it is a NaN.",
        ),
        Step(
            name="bits",
            shows=["Layout<float>", "bits_of", "Above", "first_nan"],
            text="Without its sign, a NaN is an integer above that of infinity. No option of floating-point arithmetic "
            "touches a comparison of integers.",
        ),
        Step(
            name="doubles: mask of 12 f",
            shows=["Mantissa"],
            text="WRONG with 12 digits: the mask covers 48 of the 52 bits of a double's mantissa, and leaves out the "
            "highest one, which is the only one set in most NaNs.",
        ),
        Step(
            name="four loads in flight",
            shows=["Group", "look", "first_nan_grid"],
            text="Loads of 16 bytes, four of them in flight, and one branch for all of their numbers: the largest "
            "magnitude is above infinity if any of them is.",
        ),
        Step(
            name="host: isnan, -ffast-math",
            shows=["host_isnan", "host_bit_test"],
            text="For a host compiler with `-ffast-math` there are no NaNs, so it replaces `isnan()` by false.",
        ),
    ],
    look_at=[
        "The rows 'isnan' with and without fast math: on the device both find the NaN, with the same instructions as "
        "the comparison of the bits.",
        "The rows that were caught, and their notes: the mask of 12 digits and the host's `isnan()`.",
        "The column 'loads' falls to a quarter with loads of 16 bytes. On a GPU, that and several loads in flight make "
        "the difference.",
    ],
    exercise=Exercise(
        task="Tell for each number whether it is infinite, with either sign, from its bits. The comparison of the "
        "start misses minus infinity, and takes the largest float for infinite.",
        hint="`__float_as_uint(x)` returns the bits of a float, and 0x7fffffff is the mask of all bits but the sign. "
        "What are the bits of infinity? NaNs have the same exponent.",
        answer="Without the sign, the bits of infinity are 0x7f800000: all bits of the exponent, and a mantissa of "
        "zero. A NaN has a larger integer, the largest float a smaller one.",
        check=check,
    ),
    course="The courses give no times for this topic. That `isnan()` disappears with fast math is what a course "
    "says, and it is true of the host's compiler.",
)
