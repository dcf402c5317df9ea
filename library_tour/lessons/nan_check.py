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
    """Test a few named values, and then every half-precision number."""
    named = {
        "infinity": 0x7C00,
        "minus infinity": 0xFC00,
        "the usual NaN": 0x7E00,
        "the NaN with only the lowest bit set": 0x7C01,
    }
    for name, pattern in named.items():
        yield told(answer, f"{name} is classified correctly", np.array([pattern], np.uint16))
    every = np.arange(2**16 - 1, dtype=np.uint16)
    yield told(answer, "every 16-bit pattern except the last is classified correctly", every)
    yield told(answer, "the NaN with every bit set is classified correctly", np.array([0xFFFF], np.uint16))


def told(answer: cuda.Module, fact: str, bits: NDArray[np.uint16]) -> Check:
    """Compare the answer's results with NumPy's."""
    found = poisoned(bits.size, np.int32)
    answer["half_nan"][blocks_for(bits.size, BLOCK), BLOCK](cuda.to_device(bits), found, bits.size)
    return compare(fact, found.to_host(), np.isnan(bits.view(np.float16)).astype(np.int32))


LESSON = Lesson(
    why="A single NaN among a billion elements ruins every sum that includes it. Checking an array for NaNs should "
    "therefore be cheap enough to do often. An H200 can read 2^30 floats, 4.3 GB, in 0.95 ms. The obvious kernel takes "
    "2.54 ms, although it does almost no arithmetic.\n\n"
    "Correctness matters too. According to one lecture on GPU programming, `isnan()` disappears under fast math. This "
    "stop shows which compiler removes it, and introduces a test that no compiler option can remove.",
    learn=[
        "recognise a NaN by its bits.",
        "say which fast-math option removes `isnan()`, and why.",
        "write a bit mask that covers the whole mantissa of a float or a double.",
        "read an array at full memory bandwidth by keeping enough bytes in flight.",
    ],
    idea="A floating-point number has a sign, an exponent and a mantissa. If all exponent bits are set, the value is "
    "an infinity (zero mantissa) or a NaN (nonzero mantissa):\n\n"
    "```\n"
    "float      sign   exponent (8 bits)   mantissa (23 bits)\n"
    "infinity   0      11111111            00000000000000000000000   0x7f800000\n"
    "NaN        0      11111111            10000000000000000000000   0x7fc00000\n"
    "```\n\n"
    "Clear the sign bit and read the bits as an *integer*. For a NaN, this integer is greater than 0x7f800000; for any "
    "other value, it is not. Floating-point options do not affect integer comparisons.\n\n"
    "The search reads each element once and writes nothing, so read bandwidth is the limit. By Little's law (see "
    "`occupancy`), reaching that bandwidth requires many bytes in flight. One 4-byte load per thread is not enough. A "
    "thread that issues several wide loads before it uses the first result keeps more bytes in flight.\n\n"
    "The rule of thumb: detect special floating-point values from their bits, and read large arrays with 16-byte "
    "loads, several at a time.",
    steps=[
        Step(
            name="isnan",
            shows=["Isnan", "first_nan"],
            text="Each thread tests one element with CUDA's `isnan()`. A thread that finds a NaN lowers `*first` to "
            "its index with `atomicMin`, so that the smallest index wins. An array without NaNs causes no writes.",
        ),
        Step(
            name="bits",
            shows=["Layout<float>", "bits_of", "Above", "first_nan"],
            text="The kernel reads the bits of each float as an integer, clears the sign, and compares the result with "
            "the bits of infinity.",
        ),
        Step(
            name="doubles: 13-digit mask",
            shows=["Mantissa", "first_nan"],
            text="Another test checks that all exponent bits are set and that at least one mantissa bit is set. A "
            "double's mantissa has 52 bits, or 13 hexadecimal digits. The row with a 12-digit mask is wrong on "
            "purpose. That mask omits the highest four bits of the mantissa, and in the usual NaN only the highest bit "
            "is set.",
        ),
        Step(
            name="fixed grid, 16-byte loads",
            shows=["Group", "look", "first_nan_grid<float, 1>"],
            text="The test is the same, but the kernel reads the array differently. The grid has as many blocks as the "
            "device can hold at once and strides over the array. Each load reads 16 bytes, or four floats.",
            compared_with="bits",
        ),
        Step(
            name="four loads in flight",
            shows=["Group", "look", "first_nan_grid<float, 4>"],
            text="The same kernel with `loads` set to 4. Each thread issues four loads and then needs only one branch "
            "for all of their elements: if any magnitude is above infinity, the largest one is.",
        ),
        Step(
            name="host: isnan, -ffast-math",
            shows=["host_isnan", "host_bit_test"],
            text="The last part of the file is compiled by a host compiler. `-ffast-math` promises the compiler that "
            "no value is ever NaN, so it replaces `isnan()` with false. The bit comparison survives.",
        ),
    ],
    look_at=[
        "`isnan`, `isnan, fast math` and `bits` all find the NaN on the device. Without a GPU, the table shows that "
        "they execute the same number of instructions and loads.",
        "The last two rows are wrong on purpose, and their notes explain why.",
        "Without a GPU, the table also has a 'loads' column. With 16-byte loads, the number of loads falls to a "
        "quarter.",
        "On an H200, one 4-byte load per thread reaches 36.6 % of the read bandwidth, 16-byte loads reach 95.7 %, and "
        "four of them in flight reach 97.5 %.",
    ],
    exercise=Exercise(
        task="A half-precision number has a sign bit, 5 exponent bits and 10 mantissa bits. The kernel receives such "
        "numbers as 16-bit integers. For each of them, decide from its bits whether it is a NaN. For now, the kernel "
        "mistakes infinities for NaNs. The check tests every 16-bit pattern.",
        hints=[
            "The mask 0x7fff selects all bits except the sign. What are the bits of infinity?",
            "Infinity is 0x7c00: five set exponent bits and a mantissa of zero.",
            "Once the sign is masked off, which integers are larger than 0x7c00?",
        ],
        answer="Infinity is 0x7c00. Without the sign, the NaNs are exactly the integers above it, 0x7c01 to 0x7fff. "
        "One mask and one comparison are enough.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic. The claim that `isnan()` disappears "
    "under fast math comes from the lectures. It is true of the host compiler. The 12-digit mask also comes from "
    "the lectures.",
)
