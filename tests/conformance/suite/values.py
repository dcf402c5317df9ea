"""Inputs: combinations of special values, and seeded random bits.

All inputs come from the raw bits of NumPy's PCG64, whose stream will never change, and from operations that IEEE 754
determines. So the inputs are the same on every machine and with every version of NumPy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Zeros, subnormals, the least and the largest normal numbers, neighbours of one, halves (ties), the limits of the
# integer types, infinities and a NaN. The last two have a product that is the least normal number only after rounding.
FLOATS = np.array(
    [
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000,
        0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x3F000000, 0xBFC00000, 0x40200000, 0xC0600000,
        0x4B000001, 0x4F000000, 0xCF000000, 0x5F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
        0x7FC00000, 0x1E3CE508, 0x00800001, 0x3F7FFFFE,
    ],
    np.uint32,
).view(np.float32)  # fmt: skip  # rows of a table
DOUBLES = np.array(
    [
        0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000,
        0x8010000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF,
        0x3FE0000000000000, 0xBFF8000000000000, 0x4004000000000000, 0xC00C000000000000, 0x4330000000000001,
        0x41E0000000000000, 0xC1E0000000000000, 0x43E0000000000000, 0xC3E0000000000000, 0x7FEFFFFFFFFFFFFF,
        0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x2000000000000001,
    ],
    np.uint64,
).view(np.float64)  # fmt: skip  # rows of a table
HALVES = np.array(
    [
        0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x3800, 0xBE00, 0x4100,
        0x6401, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00,
        0x0401, 0x3BFE,
    ],
    np.uint16,
)  # fmt: skip  # rows of a table
BFLOATS = np.array(
    [
        0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x8080, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0x3F00, 0xBFC0, 0x4020,
        0x4301, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0,
    ],
    np.uint16,
)  # fmt: skip  # rows of a table


def raw(seed: int, n: int) -> NDArray[np.uint64]:
    """Return n seeded 64-bit words."""
    words: NDArray[np.uint64] = np.random.PCG64(seed).random_raw(n)
    return words


def words(seed: int, n: int, dtype: Any = np.uint32) -> Array:
    """Return n seeded integers from the full range of a dtype."""
    bits = np.dtype(dtype).itemsize * 8
    values: Array = (raw(seed, n) >> np.uint64(64 - bits)).astype(f"u{bits // 8}").view(dtype)
    return values


def below(seed: int, n: int, limit: int, dtype: Any = np.int32) -> Array:
    """Return n seeded integers from 0 to limit - 1."""
    return (raw(seed, n) % np.uint64(limit)).astype(dtype)


def around(seed: int, n: int, limit: int) -> Array:
    """Return n seeded 32-bit integers from -limit to limit - 1."""
    return (below(seed, n, 2 * limit, np.int64) - limit).astype(np.int32)


def crossed(*arrays: Array) -> list[Array]:
    """Return all combinations of the elements, as one 1-D array per argument."""
    return [np.ascontiguousarray(a.ravel()) for a in np.meshgrid(*arrays, indexing="ij")]


def near_one(seed: int, n: int, dtype: Any, spread: int = 16) -> Array:
    """Return n seeded floats of both signs, with exponents within `spread` of the exponent of one."""
    info = np.finfo(dtype)
    bits = raw(seed, n)
    exponent = np.uint64(info.maxexp - 1 - spread) + (bits >> np.uint64(56)) % np.uint64(2 * spread)
    sign = (bits >> np.uint64(55) & np.uint64(1)) << np.uint64(info.bits - 1)
    value = sign | exponent << np.uint64(info.nmant) | bits & np.uint64((1 << info.nmant) - 1)
    return value.astype(f"u{info.bits // 8}").view(dtype)


def _filled(crosses: list[Array], extras: list[list[Array]], n: int) -> tuple[Array, ...]:
    columns = [np.concatenate([cross, *(e[k] for e in extras)]) for k, cross in enumerate(crosses)]
    if len(columns[0]) < n:
        raise ValueError(f"{len(columns[0])} values for {n} lanes")
    return tuple(np.ascontiguousarray(column[:n]) for column in columns)


def float_pairs(n: int, dtype: Any = np.float32, seed: int = 1) -> tuple[Array, ...]:
    """Return n pairs of floats: all pairs of special ones, halfway cases, close exponents, and random bits."""
    info, integers = np.finfo(dtype), f"u{np.dtype(dtype).itemsize}"
    table = FLOATS if dtype == np.float32 else DOUBLES
    left = near_one(seed, 64, dtype, 2)
    power = (np.abs(left).view(integers) >> info.nmant << info.nmant).view(dtype)
    halfway = [left, power * info.epsneg]  # half a unit in the last place of the first operand
    close = [near_one(seed + k, n // 4, dtype) for k in (1, 2)]
    anything = [words(seed + k, n, integers).view(dtype) for k in (3, 4)]
    return _filled(crossed(table, table), [halfway, close, anything], n)


def float_triples(n: int, dtype: Any = np.float32, seed: int = 11) -> tuple[Array, ...]:
    """Return n operands of a fused multiply-add; many results are near a midpoint, cancel, or are subnormal."""
    single = dtype == np.float32
    few = FLOATS[[0, 1, 2, 5, 6, 8, 9, 20, 22, 24]] if single else DOUBLES[[0, 1, 2, 3, 4, 6, 7, 19, 20, 22]]
    specials = crossed(few, few, few)
    picked = np.argsort(words(seed + 7, specials[0].size), kind="stable")[: n // 4]
    hard = _hard_triples(n // 4, dtype, seed)
    a, b = (near_one(seed + k, n // 8, dtype) for k in (1, 2))
    cancelling = [a, b, -(a * b)]
    scale = dtype(2.0 ** (-70 if single else -520))
    a, b, c = _hard_triples(n // 8, dtype, seed + 3)
    small = [a * scale, b * scale, c * scale * scale]
    close = [near_one(seed + k, n, dtype) for k in (4, 5, 6)]
    return _filled([column[picked] for column in specials], [hard, cancelling, small, close], n)


def _hard_triples(n: int, dtype: Any, seed: int) -> list[Array]:
    """Return operands whose product is so near half a unit in the last place of c that two roundings would go wrong."""
    c = near_one(seed + 20, n, dtype, 8)
    nudge = below(seed + 21, n, 40, dtype) * np.finfo(dtype).eps
    half_unit = np.spacing(np.abs(c)) / dtype(2)
    return [(dtype(1) + nudge) * half_unit, dtype(1) - nudge, c]


def least_triples(n: int, seed: int = 101) -> tuple[Array, ...]:
    """Return n single-precision operands with a * b + c near the least normal number, 2^-126.

    There, it matters whether flushing tests for a subnormal result before or after rounding. Some operands are
    themselves subnormal, and some sums reach this range by cancellation.
    """
    least, unit = 2.0**-126, 2.0**-149
    a = np.abs(near_one(seed, n, np.float32, 3)).astype(np.float64) * 2.0**-63
    # The product is the wanted result minus c, up to rounding.
    wanted = least + (below(seed + 1, n, 33, np.int64) - 16) * unit / 8
    c = np.resize([0.0, least, -least, unit, -unit, 2 * least, -2 * least, least - unit, unit - least], n)
    b = (wanted - c) / a
    a[::7], b[::7] = least - unit * below(seed + 2, n, 5, np.int64)[::7], 1.0
    signs = np.where(below(seed + 3, n, 2, np.int64) == 0, 1.0, -1.0)
    return a.astype(np.float32), (signs * b).astype(np.float32), (signs * c).astype(np.float32)


def least_doubles(n: int, seed: int = 105) -> Array:
    """Return n doubles near a float's least normal number or zero, at multiples of an eighth of a float's step."""
    near, tiny = ((below(seed + k, n, 65, np.int64) - 32) * 2.0**-152 for k in (0, 1))
    values = np.where(below(seed + 2, n, 4, np.int64) == 0, tiny, 2.0**-126 + near)
    return np.where(below(seed + 3, n, 2, np.int64) == 0, values, -values)


def half_triples(n: int, table: Array, seed: int = 31) -> tuple[Array, ...]:
    """Return n triples of 16-bit floats as bits: all pairs of special ones with a third, then random bits."""
    a, b = crossed(table, table)
    return _filled([a, b, np.roll(a, 7)], [[words(seed + k, n, np.uint16) for k in range(3)]], n)


def integer_triples(n: int, dtype: Any, seed: int = 41) -> tuple[Array, ...]:
    """Return n triples of integers: all pairs of extremes and patterns with a third, then random magnitudes."""
    bits = np.dtype(dtype).itemsize * 8
    unsigned, top = f"u{bits // 8}", 1 << (bits - 1)
    table = [0, 1, 2, 3, 7, 10, 0x7F, 0x80, 0xFF, (1 << bits // 2) - 1, 1 << bits // 2]
    table += [top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, (2 * top - 1) // 3]
    special = np.array(table, unsigned).view(dtype)
    a, b = crossed(special, special)
    shifts = ((raw(seed + 10 + k, n) % np.uint64(bits)).astype(unsigned) for k in range(3))
    rest = [(words(seed + k, n, unsigned) >> shift).view(dtype) for k, shift in enumerate(shifts)]
    return _filled([a, b, np.roll(a, 5)], [rest], n)
