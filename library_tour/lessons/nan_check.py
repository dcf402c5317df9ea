"""The lesson of `nan_check`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

BLOCK = 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Ask about a few numbers by name, and then about every number that half precision has."""
    named = {
        "infinity": 0x7C00,
        "minus infinity": 0xFC00,
        "the usual NaN": 0x7E00,
        "the NaN with the lowest bit alone": 0x7C01,
    }
    for name, pattern in named.items():
        yield told(answer, f"whether {name} is a NaN", np.array([pattern], np.uint16))
    every = np.arange(2**16 - 1, dtype=np.uint16)
    yield told(answer, "every pattern of 16 bits but the last: 65,535 numbers", every)
    yield told(answer, "the NaN with every bit set", np.array([0xFFFF], np.uint16))


def told(answer: cuda.Module, fact: str, bits: NDArray[np.uint16]) -> Check:
    """Compare what the answer says of numbers with what NumPy says of them."""
    found = poisoned(bits.size, np.int32)
    answer["half_nan"][blocks_for(bits.size, BLOCK), BLOCK](cuda.to_device(bits), found, bits.size)
    return compare(fact, found.to_host(), np.isnan(bits.view(np.float16)).astype(np.int32))


LESSON = Lesson(
    learn=[
        "How a NaN looks as bits: all bits of the exponent are set, and the mantissa is not zero.",
        "Why a host compiler's fast math can replace `isnan()` by false, while CUDA's own option keeps it.",
        "Why a mask over the mantissa of a double needs 13 hexadecimal digits.",
        "How a search that does almost no arithmetic gets as fast as memory can be read.",
    ],
    steps=[
        Step(
            name="isnan",
            shows=["Isnan", "first_nan"],
            text="A thread tests one number by CUDA's `isnan()`. If it is a NaN, the thread lowers `*first` to its "
            "place. In an array without NaNs nothing is written.",
        ),
        Step(
            name="bits",
            shows=["Layout<float>", "bits_of", "Above", "first_nan"],
            text="The bits of a float are read as an integer. Without its sign, a NaN is above infinity, and every "
            "other number is not. No option of floating-point arithmetic touches a comparison of integers.",
        ),
        Step(
            name="doubles: mask of 13 f",
            shows=["Mantissa", "first_nan"],
            text="Another way to say it: the exponent's bits are all set, and some bit of the mantissa is. A double's "
            "mantissa has 52 bits, which are 13 hexadecimal digits. The row with 12 digits is wrong on purpose: its "
            "mask leaves out the highest four bits, and the usual NaN has only the first of them set.",
        ),
        Step(
            name="fixed grid, by four",
            shows=["Group", "look", "first_nan_grid<float, 1>"],
            text="The test is the same; what changes is how memory is read. A grid as large as the device holds at "
            "once strides over the array, and a load takes 16 bytes.",
            compared_with="bits",
        ),
        Step(
            name="four loads in flight",
            shows=["Group", "look", "first_nan_grid<float, 4>"],
            text="The same kernel with `loads` set to 4. A thread starts four loads, and then takes one branch for all "
            "of their numbers: the largest magnitude is above that of infinity if any of them is.",
        ),
        Step(
            name="host: isnan, -ffast-math",
            shows=["host_isnan", "host_bit_test"],
            text="The end of the file is for a compiler of the host. With `-ffast-math` one promises it that there are "
            "no NaNs, and so it replaces `isnan()` by false. The comparison of bits stays.",
        ),
    ],
    look_at=[
        "The rows 'isnan', 'isnan, fast math' and 'bits': on the device all three find the NaN, with as many "
        "instructions and loads.",
        "The rows that were caught, and their notes: the mask of 12 digits and the host's `isnan()`.",
        "The column 'loads' falls to a quarter with loads of 16 bytes.",
        "On an H200, the three tests with a load of 4 bytes a thread reached 36 % of the rate at which memory can be "
        "read, loads of 16 bytes 95 %, and four of them in flight 98 %.",
    ],
    exercise=Exercise(
        task="The numbers have half precision: a sign, 5 bits of exponent and 10 bits of mantissa. They come as "
        "integers of 16 bits. Tell for each one whether it is a NaN, from its bits. The start takes infinities for "
        "NaNs, too. The check tries every pattern of 16 bits.",
        hints=[
            "0x7fff is the mask of all bits but the sign. What are the bits of infinity, and which integers lie above "
            "them?",
        ],
        answer="Infinity has the bits 0x7c00: all 5 bits of the exponent, and a mantissa of zero. Without the sign, "
        "the NaNs are the integers above it, 0x7c01 to 0x7fff, so one mask and one comparison are enough.",
        check=check,
    ),
    course="The courses give no times for this topic. That `isnan()` disappears with fast math is what a course "
    "says, and it is true of the host's compiler. The mask of 12 digits is a course's, too.",
)
