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
    """Test a few values by name, and then every half-precision number."""
    named = {
        "infinity": 0x7C00,
        "minus infinity": 0xFC00,
        "the usual NaN": 0x7E00,
        "the NaN with only the lowest bit set": 0x7C01,
    }
    for name, pattern in named.items():
        yield told(answer, f"{name} is judged correctly", np.array([pattern], np.uint16))
    every = np.arange(2**16 - 1, dtype=np.uint16)
    yield told(answer, "every pattern of 16 bits but the last is judged correctly", every)
    yield told(answer, "the NaN with every bit set is judged correctly", np.array([0xFFFF], np.uint16))


def told(answer: cuda.Module, fact: str, bits: NDArray[np.uint16]) -> Check:
    """Compare the answer's verdicts with NumPy's."""
    found = poisoned(bits.size, np.int32)
    answer["half_nan"][blocks_for(bits.size, BLOCK), BLOCK](cuda.to_device(bits), found, bits.size)
    return compare(fact, found.to_host(), np.isnan(bits.view(np.float16)).astype(np.int32))


LESSON = Lesson(
    why="One NaN in a billion elements spoils every sum that it enters. Checking an array for NaNs should therefore "
    "be cheap enough to do often. An H200 can read 2^30 floats, 4.3 GB, in 0.95 ms. The obvious kernel takes 2.54 ms, "
    "although it does almost no arithmetic.\n\n"
    "There is a question of correctness as well. One lecture says that `isnan()` disappears under fast math. This "
    "stop shows for which compiler that is true, and a test that no compiler option can remove.",
    learn=[
        "recognise a NaN by its bits.",
        "say which fast-math option removes `isnan()`, and why.",
        "write a bit mask that covers the whole mantissa of a float or a double.",
        "read an array at the full bandwidth of memory, by keeping enough bytes in flight.",
    ],
    idea="A floating-point number has a sign, an exponent and a mantissa. If all bits of the exponent are set, it is "
    "an infinity (mantissa zero) or a NaN (mantissa not zero):\n\n"
    "```\n"
    "float      sign   exponent (8 bits)   mantissa (23 bits)\n"
    "infinity   0      11111111            00000000000000000000000   0x7f800000\n"
    "NaN        0      11111111            10000000000000000000000   0x7fc00000\n"
    "```\n\n"
    "So without its sign, a NaN is an *integer* above 0x7f800000, and every other number is not. Options for "
    "floating-point arithmetic do not affect integers.\n\n"
    "The search reads each element once and writes nothing, so read bandwidth is the limit. By Little's law (see "
    "`occupancy`), reaching it takes many bytes in flight. One 4-byte load per thread is too little. A thread that "
    "starts several wide loads before it uses the first has more.\n\n"
    "Rule of thumb: test floating-point special cases by their bits, and read large arrays in 16-byte loads, several "
    "at a time.",
    steps=[
        Step(
            name="isnan",
            shows=["Isnan", "first_nan"],
            text="Each thread tests one element with CUDA's `isnan()`. A thread that finds a NaN lowers `*first` to "
            "its index with `atomicMin`, so that the smallest index wins. An array without NaNs causes no write.",
        ),
        Step(
            name="bits",
            shows=["Layout<float>", "bits_of", "Above", "first_nan"],
            text="The bits of a float are read as an integer, and compared with those of infinity.",
        ),
        Step(
            name="doubles: 13-digit mask",
            shows=["Mantissa", "first_nan"],
            text="Another way to write the test: all exponent bits are set, and so is some bit of the mantissa. A "
            "double's mantissa has 52 bits, or 13 hexadecimal digits. The row with 12 digits is wrong on purpose. Its "
            "mask omits the highest four bits, and the usual NaN has only the highest one set.",
        ),
        Step(
            name="fixed grid, 16-byte loads",
            shows=["Group", "look", "first_nan_grid<float, 1>"],
            text="The test is the same, but the array is read differently. A grid as large as the device holds at "
            "once strides over the array, and each load takes 16 bytes, which are four floats.",
            compared_with="bits",
        ),
        Step(
            name="four loads in flight",
            shows=["Group", "look", "first_nan_grid<float, 4>"],
            text="The same kernel with `loads` set to 4. Each thread starts four loads and then takes one branch for "
            "all of their elements: if any magnitude is above infinity, the largest one is.",
        ),
        Step(
            name="host: isnan, -ffast-math",
            shows=["host_isnan", "host_bit_test"],
            text="The end of the file is for a host compiler. `-ffast-math` promises it that there are no NaNs, so it "
            "replaces `isnan()` by false. The comparison of bits survives.",
        ),
    ],
    look_at=[
        "`isnan`, `isnan, fast math` and `bits` all find the NaN on the device. Without a GPU the table shows that "
        "they need the same number of instructions and loads.",
        "The last two rows are wrong on purpose, and their notes explain why.",
        "The column 'loads', counted where there is no GPU, falls to a quarter with loads of 16 bytes.",
        "On an H200, one 4-byte load per thread reaches 36.6 % of the read bandwidth, 16-byte loads reach 95.7 %, and "
        "four of them in flight reach 97.5 %.",
    ],
    exercise=Exercise(
        task="Half-precision numbers have a sign, 5 exponent bits and 10 mantissa bits. They are passed as 16-bit "
        "integers. For each, decide from its bits whether it is a NaN. So far, infinities are taken for NaNs. The "
        "check tries every pattern of 16 bits.",
        hints=[
            "0x7fff is the mask of all bits but the sign. What are the bits of infinity?",
            "Infinity is 0x7c00: five set exponent bits and a mantissa of zero.",
            "Which integers, after masking the sign, are larger than 0x7c00?",
        ],
        answer="Infinity is 0x7c00. Without the sign, the NaNs are exactly the integers above it, 0x7c01 to 0x7fff. "
        "One mask and one comparison are enough.",
        check=check,
    ),
    course="The lectures give no times for this topic. The statement that `isnan()` disappears under fast math is "
    "from the lectures, and is true of the host compiler. The 12-digit mask is from them too.",
)
