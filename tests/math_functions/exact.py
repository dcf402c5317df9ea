"""Results of arithmetic with every direction of rounding, from integers and fractions alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["divided", "fused", "product", "quotient_bits", "remainder", "root", "total"]

Array = NDArray[Any]


def _rounded(value: Fraction, kind: np.dtype[Any], direction: str, zero: float) -> float:
    """Return a fraction as a floating-point number; `zero` is the result for 0 itself."""
    if not value:
        return zero
    precision, least = np.finfo(kind).nmant + 1, int(np.finfo(kind).minexp) - np.finfo(kind).nmant
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length() - precision
    if size >= Fraction(2) ** (exponent + precision):
        exponent += 1
    exponent = max(exponent, least)
    scaled = size / Fraction(2) ** exponent
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    up = {
        "rn": 2 * rest > scaled.denominator or (2 * rest == scaled.denominator and whole & 1 == 1),
        "rz": False,
        "ru": rest > 0 and value > 0,
        "rd": rest > 0 and value < 0,
    }[direction]
    whole += up
    largest = int(np.finfo(kind).maxexp)
    if whole.bit_length() + exponent > largest:
        beyond = direction == "rn" or direction == ("ru" if value > 0 else "rd")
        size_found = math.inf if beyond else float(np.finfo(kind).max)
    else:
        size_found = math.ldexp(whole, exponent)
    return -size_found if value < 0 else size_found


def _each(function: Callable[..., float], kind: np.dtype[Any], *operands: Array) -> Array:
    columns = [operand.astype(np.float64).tolist() for operand in operands]
    return np.array([function(*row) for row in zip(*columns, strict=True)], np.float64).astype(kind)


def _zero(direction: str, signs: set[bool]) -> float:
    """Return the zero that a sum is whose terms have these signs, negative ones as True."""
    return -0.0 if signs == {True} or (direction == "rd" and True in signs) else 0.0


def fused(x: Array, y: Array, z: Array, direction: str = "rn") -> Array:
    """Return x * y + z, rounded once."""

    def one(a: float, b: float, c: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
            # A finite product is not rounded before it is added to an infinity.
            return (0.0 if math.isfinite(a) and math.isfinite(b) else a * b) + c
        signs = {(math.copysign(1, a) < 0) != (math.copysign(1, b) < 0), math.copysign(1, c) < 0}
        return _rounded(Fraction(a) * Fraction(b) + Fraction(c), x.dtype, direction, _zero(direction, signs))

    return _each(one, x.dtype, x, y, z)


def total(x: Array, y: Array, direction: str) -> Array:
    """Return x + y."""
    return fused(x, np.ones_like(x), y, direction)


def product(x: Array, y: Array, direction: str) -> Array:
    """Return x * y."""

    def one(a: float, b: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return a * b
        return _rounded(Fraction(a) * Fraction(b), x.dtype, direction, a * b)

    return _each(one, x.dtype, x, y)


def divided(x: Array, y: Array, direction: str) -> Array:
    """Return x / y."""

    def one(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            if not (math.isfinite(a) and math.isfinite(b) and a and b):
                return float(np.float64(a) / np.float64(b))
        return _rounded(Fraction(a) / Fraction(b), x.dtype, direction, 0.0)

    return _each(one, x.dtype, x, y)


def root(x: Array, direction: str) -> Array:
    """Return the square root of x."""

    def one(a: float) -> float:
        if not (math.isfinite(a) and a > 0):
            return a if a == 0 or a == math.inf else math.nan
        # With 200 bits after the binary point, and one more that is set if anything was cut off.
        scaled = Fraction(a) * (1 << 2400)
        whole = math.isqrt(scaled.numerator // scaled.denominator)
        exact = Fraction(whole, 1 << 1200)
        if exact * exact != Fraction(a):
            exact += Fraction(1, 1 << 1202)
        return _rounded(exact, x.dtype, direction, 0.0)

    return _each(one, x.dtype, x)


def remainder(x: Array, y: Array) -> Array:
    """Return the remainder of least size of x / y."""
    return _each(lambda a, b: math.remainder(a, b) if math.isfinite(a) and b else math.nan, x.dtype, x, y)


def quotient_bits(x: Array, y: Array) -> NDArray[np.int64]:
    """Return the low three bits of the whole number next to x / y, with the quotient's sign; 0 where there is none."""

    def one(a: float, b: float) -> int:
        if not (math.isfinite(a) and math.isfinite(b) and b):
            return 0
        whole = round(Fraction(a) / Fraction(b))
        return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(whole) & 7)

    return np.array([one(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], np.int64)
