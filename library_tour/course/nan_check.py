"""Find the first NaN of a large array: by isnan(), by the bits, and as fast as memory is read.

On the simulator, which checks, counts and does not time:

    $ library-tour run nan_check
    nan_check: Finding NaNs in a large array, by isnan() and by their bits
    size 65,539: floats, or half as many doubles
                              loads  instructions  check
    ─────────────────────────────────────────────────────
    isnan                     3,588        61,290  right
    isnan, fast math          3,588        61,290  right
    bits                      3,588        61,290  right
    fixed grid, by four         903        33,941  right
    four loads in flight        903        39,652  right
    doubles: bits             2,564        43,882  right
    doubles: mask of 13 f     2,564        51,574  right
    doubles: four loads       1,287        47,698  right
    doubles: mask of 12 f                          caught
    host: isnan, -ffast-math                       caught
    doubles: mask of 12 f: np.nan is not found. Its bits are 0x7ff8000000000000: of
    the mantissa's 52 bits only the highest is set, and a mask of 12 hexadecimal
    digits f covers 48. One of 13 covers all.
    host: isnan, -ffast-math: isnan(nan) is false, and the bit test is true.
    The course says that isnan() disappears with fast math. That is true of a host
    compiler's -ffast-math, which promises that there are no NaNs. CUDA's
    --use_fast_math makes division, roots and functions approximate and denormal
    numbers zero; its isnan() stays right. A comparison of the bits is right with
    any option.
    A thread that reads one float has one load of 4 bytes in flight, too few to
    reach the bandwidth of a large GPU; a double is twice as many bytes. With four
    loads of 16 bytes, and one branch for their numbers, a thread has 16 times as
    many bytes in flight. The timed array has no NaN, so that it is read to its end
    and nothing is written.
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

TITLE = "Finding NaNs in a large array, by isnan() and by their bits"
SIZE = Size("floats, or half as many doubles", full=2**30 + 3, small=2**16 + 3, least=2)
CHECKED = 2**14 + 5  # numbers of the arrays that have NaNs
BLOCK, LOADS = 256, 4
# Of a fixed grid, as in the stop `reduction`.
FIXED_BLOCK = 1024
EXPLAINED_BY = ("loads", "instructions")

Kind = type[np.floating[Any]]
Numbers = NDArray[np.floating[Any]]


class Way(NamedTuple):
    """A kernel, the type of its numbers, whether its grid is fixed, and how it is compiled."""

    kernel: str
    dtype: Kind = np.float32
    fixed: bool = False
    fast_math: bool = False


WAYS = {
    "isnan": Way("first_nan<Isnan<float>>"),
    "isnan, fast math": Way("first_nan<Isnan<float>>", fast_math=True),
    "bits": Way("first_nan<Above<float>>"),
    "fixed grid, by four": Way("first_nan_grid<float, 1>", fixed=True),
    "four loads in flight": Way(f"first_nan_grid<float, {LOADS}>", fixed=True),
    "doubles: bits": Way("first_nan<Above<double>>", np.float64),
    "doubles: mask of 13 f": Way("first_nan<Mantissa<13>>", np.float64),
    "doubles: four loads": Way(f"first_nan_grid<double, {LOADS}>", np.float64, fixed=True),
}
TOO_SHORT = "first_nan<Mantissa<12>>"
# What is almost a NaN: infinities, zeros, the largest and the smallest numbers.
ORDINARY: dict[Kind, Numbers] = {
    dtype: np.array([np.inf, -np.inf, 0.0, -0.0, info.max, info.min, info.tiny, info.smallest_subnormal], dtype)
    for dtype, info in ((dtype, np.finfo(dtype)) for dtype in (np.float32, np.float64))
}
# The usual NaN, one with the lowest bit alone, and one with every bit set.
NANS: dict[Kind, NDArray[Any]] = {
    np.float32: np.array([0x7FC00000, 0x7F800001, 0xFFFFFFFF], np.uint32),
    np.float64: np.array([0x7FF8 << 48, 0x7FF0 << 48 | 1, 2**64 - 1], np.uint64),
}


def reference(x: Numbers) -> int:
    """Return the place of the first NaN, or the length where there is none."""
    places = np.flatnonzero(np.isnan(x))
    return int(places[0]) if places.size else x.size


def run(device: cuda.Device, size: int) -> Result:
    """Check every way on arrays with and without NaNs; time it on a large one without, which is read to its end."""
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
    rows += [shown_wrong("doubles: mask of 12 f", twelve_digits), host_fast_math()]
    notes = [
        "The course says that isnan() disappears with fast math. That is true of a host compiler's -ffast-math, which "
        "promises that there are no NaNs. CUDA's --use_fast_math makes division, roots and functions approximate and "
        "denormal numbers zero; its isnan() stays right. A comparison of the bits is right with any option.",
        "A thread that reads one float has one load of 4 bytes in flight, too few to reach the bandwidth of a large "
        "GPU; a double is twice as many bytes. With four loads of 16 bytes, and one branch for their numbers, a thread "
        "has 16 times as many bytes in flight. The timed array has no NaN, so that it is read to its end and nothing "
        "is written.",
    ]
    return Result(rows, limit, notes=notes)


def ordinary_numbers(random: np.random.Generator, size: int, dtype: Kind) -> Numbers:
    """Return random numbers with infinities, zeros and extreme ones among them, and no NaN."""
    numbers = random.standard_normal(size).astype(dtype)
    numbers[random.integers(size, size=ORDINARY[dtype].size)] = ORDINARY[dtype]
    return numbers


def load_all(*, fast_math: bool = False) -> cuda.Module:
    """Compile all kernels of this stop."""
    names = [TOO_SHORT, *dict.fromkeys(way.kernel for way in WAYS.values())]
    return load("nan_check", names=names, fast_math=fast_math)


def make_variants(device: cuda.Device, x: cuda.DeviceArray, small: list[Numbers]) -> list[Variant]:
    """Return the ways for the type of `x`, checked on it and on small arrays and timed on it, which has no NaN."""
    arrays = [x, *map(cuda.to_device, small)]
    found = cuda.empty(len(arrays), np.uint32)
    expected = np.array([x.size, *map(reference, small)], np.uint32)

    def searching(way: Way, place: int) -> Callable[[], object]:
        array, first = arrays[place], found[place : place + 1]
        kernel = load_all(fast_math=way.fast_math)[way.kernel]
        blocks, block = blocks_for(array.size, BLOCK), BLOCK
        if way.fixed:
            # As many blocks as the device holds at once, but no more than there are groups of 16 bytes for.
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
    """Look for np.nan with a mask that leaves out the highest four bits of the mantissa; return what it misses."""
    x, first = np.array([1.0, np.nan]), cuda.full(1, 2, np.uint32)
    load_all()[TOO_SHORT][1, 32](cuda.to_device(x), first, x.size)
    if first.to_host()[0] == reference(x):
        return ""
    return (
        f"np.nan is not found. Its bits are {x.view(np.uint64)[1]:#018x}: of the mantissa's 52 bits only the highest "
        "is set, and a mask of 12 hexadecimal digits f covers 48. One of 13 covers all."
    )


def host_fast_math() -> Row:
    """Compile the host's part of the device code with -ffast-math and ask it whether np.nan is a NaN."""
    name = "host: isnan, -ffast-math"
    compiled = load_host("nan_check", "-ffast-math")
    if compiled is None:
        return Row(name, note=f"not run here: there is no host compiler named {HOST_COMPILER}")
    answers = {}
    for function in (compiled.host_isnan, compiled.host_bit_test):
        function.argtypes, function.restype = [ctypes.c_double], ctypes.c_bool
        answers[function.__name__] = function(np.nan)
    only_bits = answers == {"host_isnan": False, "host_bit_test": True}
    check = Check("only the bit test finds np.nan", only_bits, str(answers), "caught")
    return Row(name, check=check, note="isnan(nan) is false, and the bit test is true.")
