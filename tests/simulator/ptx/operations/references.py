"""Exact references and hard operands for the tests of PTX operations: Python's integers and fractions, lane by lane."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudart_py.simulator.ptx.compiling.emitters.functions import Calls
from cudart_py.simulator.ptx.compiling.opcodes import find_forms

Array = NDArray[Any]

# significand bits with the hidden one, least exponent of a normal number, largest exponent
FORMATS = {
    "f64": (53, -1022, 1023),
    "f32": (24, -126, 127),
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "tf32": (11, -126, 127),
    # the digits of a format with no least exponent: what decides whether a result is flushed
    "f32 unbounded": (24, -100_000, 127),
    "f16 unbounded": (11, -100_000, 15),
    "bf16 unbounded": (8, -100_000, 127),
}


def operation(opcode: str) -> Callable[..., Array]:
    """Return the function that the table of opcodes calls for an opcode."""
    form = find_forms(opcode)[0]
    assert isinstance(form.row.emit, Calls), opcode
    return form.row.emit.function_for(form)


def integers(dtype: Any, count: int, seed: int) -> Array:
    """Draw integers of all magnitudes, with the extremes and the smallest first."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    edges = [info.min, info.max, info.max - 1, 0, 1, 2, info.max // 2, info.max // 2 + 1]
    raw = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    raw = np.right_shift(raw, rng.integers(0, info.bits, count).astype(dtype))
    chosen = rng.integers(0, 4, count) == 0
    raw[chosen] = rng.choice(np.array(edges, dtype), int(chosen.sum()))
    return raw


def floats(dtype: Any, count: int, seed: int) -> Array:
    """Draw floats: random bit patterns, values of one magnitude, few significant bits, and special values."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    integer = np.dtype(f"u{kind.itemsize}")
    patterns = rng.integers(0, np.iinfo(integer).max, count, dtype=integer, endpoint=True).view(kind)
    near_one = rng.standard_normal(count).astype(kind)
    few_bits = (rng.integers(-64, 64, count) * 2.0 ** rng.integers(-4, 4, count)).astype(kind)
    info = np.finfo(kind)
    tiny = (rng.integers(1, 2000, count) * float(info.smallest_subnormal)).astype(kind)
    small = (near_one * float(info.smallest_normal) * 4).astype(kind)
    specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        math.inf,
        -math.inf,
        math.nan,
        float(info.max),
        float(info.smallest_normal),
        -float(info.smallest_subnormal),
        float(info.max) / 2,
        1 + float(info.eps),
        1 - float(info.epsneg),
        0.5,
    ]
    special = rng.choice(np.array(specials, kind), count)
    table = np.stack([patterns, near_one, near_one, few_bits, tiny, small, special])
    result: Array = table[rng.integers(0, len(table), count), np.arange(count)]
    return result


def finite(value: float) -> bool:
    """Return whether a value is neither infinite nor NaN."""
    return math.isfinite(value)


def round_exact(exact: Fraction, kind: str, rounding: str, negative_zero: bool = False) -> float:
    """Round an exact number once into a format; ``negative_zero`` is the sign of an exact zero."""
    if exact == 0:
        return -0.0 if negative_zero else 0.0
    digits, least, largest = FORMATS[kind]
    negative = exact < 0
    size = -exact if negative else exact
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    count = size / unit
    whole = int(count)
    rest = count - whole
    if rest:
        away = {"rz": False, "rm": negative, "rp": not negative}
        if rounding in away:
            whole += away[rounding]
        elif rest > Fraction(1, 2) or (rest == Fraction(1, 2) and (whole & 1 or rounding == "rna")):
            whole += 1
    result = whole * unit
    limit = Fraction(2) ** (largest + 1)
    if result >= limit:
        to_infinity = {"rz": False, "rm": negative, "rp": not negative}.get(rounding, True)
        value = math.inf if to_infinity else float(limit - Fraction(2) ** (largest + 1 - digits))
    else:
        value = float(result)
    return -value if negative else value


def round_flushed(exact: Fraction, kind: str, rounding: str, negative_zero: bool = False) -> float:
    """Round an exact number as ``round_exact``, and flush what is too small for a normal number (``.ftz``)."""
    least = Fraction(2) ** FORMATS[kind][1]
    # What is twice as great stays normal, which saves the second rounding.
    if 0 < abs(exact) < 2 * least and abs(Fraction(round_exact(exact, f"{kind} unbounded", rounding))) < least:
        return -0.0 if exact < 0 else 0.0
    return round_exact(exact, kind, rounding, negative_zero)


def ieee_sum(x: float, y: float, z: float | None, kind: str, rounding: str = "rn") -> float:
    """Add ``x * y + z``, or ``x + y`` where ``z`` is None, as IEEE 754 says."""
    first, second = (float(np.float64(x) * np.float64(y)), z) if z is not None else (x, y)
    if not finite(x) or not finite(y) or not finite(second):
        return second if finite(x) and finite(y) else float(np.float64(first) + np.float64(second))
    left = Fraction(x) * Fraction(y) if z is not None else Fraction(x)
    left_negative = math.copysign(1, x) * math.copysign(1, y) < 0 if z is not None else math.copysign(1, x) < 0
    signs = left_negative, math.copysign(1, second) < 0
    return round_exact(left + Fraction(second), kind, rounding, any(signs) if rounding == "rm" else all(signs))


def ieee_product(
    x: float, y: float, kind: str, rounding: str = "rn", rounded: Callable[..., float] = round_exact
) -> float:
    """Multiply as IEEE 754 says; with ``round_flushed``, flush what is too small."""
    if not finite(x) or not finite(y):
        return float(np.float64(x) * np.float64(y))
    return rounded(Fraction(x) * Fraction(y), kind, rounding, math.copysign(1, x) != math.copysign(1, y))


def flush(value: float, kind: str = "f32") -> float:
    """Flush a subnormal value to a zero of its sign."""
    return math.copysign(0.0, value) if abs(value) < 2.0 ** FORMATS[kind][1] else value


def extreme(x: float, y: float, smaller: bool, nan: bool = False) -> float:
    """Pick as the PTX manual says: a NaN loses unless it is wanted, and -0 is below +0."""
    if math.isnan(x) or math.isnan(y):
        both = math.isnan(x) and math.isnan(y)
        return math.nan if nan or both else y if math.isnan(x) else x
    return (min if smaller else max)([(x, math.copysign(1, x)), (y, math.copysign(1, y))])[0]


def bits_of(value: float, kind: str) -> int:
    """Return the bit pattern of a value that the format represents."""
    if kind == "bf16":
        return int(struct.unpack("<I", struct.pack("<f", value))[0] >> 16)
    letters = {"f64": "<dQ", "f32": "<fI", "tf32": "<fI", "f16": "<eH"}[kind]
    return int(struct.unpack("<" + letters[2], struct.pack(letters[:2], value))[0])


def assert_same_floats(actual: Array, expected: list[float], *operands: Array) -> None:
    """Compare values and signs of zeros; any NaN equals any NaN. A failure names the first operands."""
    wanted = np.array(expected, actual.dtype)
    same = (actual == wanted) & (np.signbit(actual) == np.signbit(wanted)) | np.isnan(actual) & np.isnan(wanted)
    if not same.all():
        lane = int(np.argmin(same))
        shown = [float(o[lane]).hex() for o in operands]
        raise AssertionError(f"lane {lane}: operands {shown} gave {actual[lane]!r}, expected {wanted[lane]!r}")
