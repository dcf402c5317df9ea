"""Find the first NaN in a large array: with isnan(), from the bits of each element, and at full memory bandwidth.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run nan_check
    nan_check: Finding a NaN in a large array, as fast as it can be read
    size 65,539: floats, or half as many doubles
    counters: measured over arrays of 16,389 elements
                               loads  instructions  check
    ──────────────────────────────────────────────────────
    isnan                      3,588        61,290  right
    isnan, fast math           3,588        61,290  right
    bits                       3,588        61,290  right
    fixed grid, 16-byte loads    903        33,942  right
    four loads in flight         903        39,653  right
    doubles: bits              2,564        43,882  right
    doubles: 13-digit mask     2,564        51,574  right
    doubles: four loads        1,287        47,696  right
    doubles: 12-digit mask                          caught
    host: isnan, -ffast-math                        caught
    doubles: 12-digit mask: np.nan is not found. Its bits are 0x7ff8000000000000:
    only the highest of the mantissa's 52 bits is set, and a mask of 12 hexadecimal
    digits covers only the lower 48. A mask of 13 digits covers all of them.
    host: isnan, -ffast-math: isnan(nan) returns false, and the bit test returns
    true.
    According to one lecture, isnan() is optimised away under fast math. That is
    true of a host compiler's -ffast-math, which promises that there are no NaNs.
    CUDA's --use_fast_math makes division, square roots and some functions
    approximate, and flushes denormal numbers to zero, but isnan() still works. A
    bit comparison is correct with any option.
    A thread that reads one float has 4 bytes in flight, too few to saturate the
    memory of a large GPU. A thread that reads a double has twice as many. With four
    16-byte loads and one branch for all of their elements, a thread has 16 times as
    many bytes in flight as with a single float. The timed array contains no NaN, so
    the kernels read all of it and write nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..device_code import blocks_for, load
from ..host_code import HOST_COMPILER, load_host
from ..inputs import INPUT_BLOCK, repeated
from ..limits import read_limit
from ..stop import Check, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Finding a NaN in a large array, as fast as it can be read"
SIZE = Size("floats, or half as many doubles", full=2**30 + 3, small=2**16 + 3, least=2)
CHECKED = 2**14 + 5  # elements of each array with NaNs
BLOCK, LOADS = 256, 4
# Threads per block of a fixed grid, as in the lesson `reduction`.
FIXED_BLOCK = 1024
EXPLAINED_BY = ("loads", "instructions")

Kind = type[np.floating[Any]]
Numbers = NDArray[np.floating[Any]]


class Way(NamedTuple):
    """A kernel, its element type, whether its grid is fixed, and whether it is compiled with fast math."""

    kernel: str
    dtype: Kind = np.float32
    fixed: bool = False
    fast_math: bool = False


WAYS = {
    "isnan": Way("first_nan<Isnan<float>>"),
    "isnan, fast math": Way("first_nan<Isnan<float>>", fast_math=True),
    "bits": Way("first_nan<Above<float>>"),
    "fixed grid, 16-byte loads": Way("first_nan_grid<float, 1>", fixed=True),
    "four loads in flight": Way(f"first_nan_grid<float, {LOADS}>", fixed=True),
    "doubles: bits": Way("first_nan<Above<double>>", np.float64),
    "doubles: 13-digit mask": Way("first_nan<Mantissa<13>>", np.float64),
    "doubles: four loads": Way(f"first_nan_grid<double, {LOADS}>", np.float64, fixed=True),
}
TOO_SHORT = "first_nan<Mantissa<12>>"
# Values that must not be mistaken for NaNs: infinities, zeros, the largest and the smallest numbers.
ORDINARY: dict[Kind, Numbers] = {
    dtype: np.array([np.inf, -np.inf, 0.0, -0.0, info.max, info.min, info.tiny, info.smallest_subnormal], dtype)
    for dtype, info in ((dtype, np.finfo(dtype)) for dtype in (np.float32, np.float64))
}
# The usual NaN, one with only the lowest mantissa bit set, and one with every bit set.
NANS: dict[Kind, NDArray[Any]] = {
    np.float32: np.array([0x7FC00000, 0x7F800001, 0xFFFFFFFF], np.uint32),
    np.float64: np.array([0x7FF8 << 48, 0x7FF0 << 48 | 1, 2**64 - 1], np.uint64),
}


def reference(x: Numbers) -> int:
    """Return the index of the first NaN, or the length if there is none."""
    indices = np.flatnonzero(np.isnan(x))
    return int(indices[0]) if indices.size else x.size


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant with and without NaNs; time it on a large array without any, which it reads to the end."""
    random = np.random.default_rng()
    limit = read_limit(device)
    rows = []
    for dtype, length in ((np.float32, size), (np.float64, size // 2)):
        block = ordinary_numbers(random, min(length, INPUT_BLOCK), dtype)
        x = repeated(block, length)
        small = [block[:CHECKED].copy() for _ in NANS[dtype]]
        for number, nan in zip(small, NANS[dtype], strict=True):
            number.view(nan.dtype)[random.integers(number.size, size=2)] = nan
        small[-1].view(NANS[dtype].dtype)[-1] = NANS[dtype][0]
        rows += measure(make_variants(device, x, small), limit, EXPLAINED_BY)
    rows += [shown_wrong("doubles: 12-digit mask", twelve_digits), host_fast_math()]
    notes = [
        "According to one lecture, isnan() is optimised away under fast math. That is true of a host compiler's "
        "-ffast-math, which promises that there are no NaNs. CUDA's --use_fast_math makes division, square roots and "
        "some functions approximate, and flushes denormal numbers to zero, but isnan() still works. A bit comparison "
        "is correct with any option.",
        "A thread that reads one float has 4 bytes in flight, too few to saturate the memory of a large GPU. A thread "
        "that reads a double has twice as many. With four 16-byte loads and one branch for all of their elements, a "
        "thread has 16 times as many bytes in flight as with a single float. The timed array contains no NaN, so the "
        "kernels read all of it and write nothing.",
    ]
    return Result(rows, limit, notes=notes, counted=f"arrays of {CHECKED:,} elements")


def ordinary_numbers(random: np.random.Generator, size: int, dtype: Kind) -> Numbers:
    """Return random numbers, some of them infinite, zero or extreme, and none of them NaN."""
    numbers = random.standard_normal(size).astype(dtype)
    numbers[random.integers(size, size=ORDINARY[dtype].size)] = ORDINARY[dtype]
    return numbers


def load_all(*, fast_math: bool = False) -> cuda.Module:
    """Compile all kernels of this stop."""
    names = [TOO_SHORT, *dict.fromkeys(way.kernel for way in WAYS.values())]
    return load("nan_check", names=names, fast_math=fast_math)


def make_variants(device: cuda.Device, x: cuda.DeviceArray, small: list[Numbers]) -> list[Variant]:
    """Return the variants for the type of `x`, checked on all arrays and timed on `x`, which has no NaN."""
    arrays = [x, *map(cuda.to_device, small)]
    found = cuda.empty(len(arrays), np.uint32)
    expected = np.array([x.size, *map(reference, small)], np.uint32)

    def searching(way: Way, place: int) -> Callable[[], object]:
        array, first = arrays[place], found[place : place + 1]
        kernel = load_all(fast_math=way.fast_math)[way.kernel]
        blocks, block = blocks_for(array.size, BLOCK), BLOCK
        if way.fixed:
            # One wave of blocks, but no more than there are groups of 16 bytes.
            most = device.sm_count * kernel.occupancy(FIXED_BLOCK).blocks
            blocks, block = min(most, blocks_for(array.nbytes, 16 * FIXED_BLOCK)), FIXED_BLOCK
        launch = kernel[blocks, block].bind(array, first, array.size)

        def search() -> None:
            cuda.memset(first, array.size)
            launch()

        return search

    def all_of(searches: list[Callable[[], object]]) -> Callable[[], object]:
        return lambda: [search() for search in searches]

    return [
        Variant(
            name=name,
            launch=all_of([searching(way, place) for place in range(len(arrays))]),
            output=found,
            expected=expected,
            timed=searching(way, 0),
            amount=x.nbytes,
        )
        for name, way in WAYS.items()
        if x.dtype == way.dtype
    ]


def twelve_digits() -> str:
    """Look for np.nan with a mask that omits the highest four bits of the mantissa; report that it is missed."""
    x, first = np.array([1.0, np.nan]), cuda.full(1, 2, np.uint32)
    load_all()[TOO_SHORT][1, 32](cuda.to_device(x), first, x.size)
    if first.to_host()[0] == reference(x):
        return ""
    return (
        f"np.nan is not found. Its bits are {x.view(np.uint64)[1]:#018x}: only the highest of the mantissa's 52 bits "
        "is set, and a mask of 12 hexadecimal digits covers only the lower 48. A mask of 13 digits covers all of them."
    )


def host_fast_math() -> Row:
    """Compile the host code in the kernels' file with -ffast-math, and test np.nan with it."""
    name = "host: isnan, -ffast-math"
    compiled = load_host("nan_check", "-ffast-math")
    if compiled is None:
        return Row(name, note=f"Skipped: there is no host compiler named {HOST_COMPILER}.")
    answers = {}
    for function in (compiled.host_isnan, compiled.host_bit_test):
        function.argtypes, function.restype = [ctypes.c_double], ctypes.c_bool
        answers[function.__name__] = function(np.nan)
    only_bits = answers == {"host_isnan": False, "host_bit_test": True}
    check = Check("only the bit test finds np.nan", only_bits, str(answers), "caught")
    return Row(name, check=check, note="isnan(nan) returns false, and the bit test returns true.")
