"""One element of a product of matrices (``wmma.mma``, ``mma``): the sum of a row of `a` times a column of `b`, and `c`.

NVIDIA does not document how tensor cores add. The rules for floating-point types were found by comparing with an H200,
whose results ``tests/launch/data/products.npz`` contains. For 16-bit numbers and tf32, a single addition sums all
products of an element and the element of `c`. Each term is exact. It is truncated, towards zero, at 25 binary places
below the leading place of the largest term. The leading place of a product is given by the sum of its factors'
exponents, although the product of their significands may be 2 or more. The sum of what is left is exact, and is rounded
once: towards zero to f32, to nearest even to f16. Subnormal numbers and overflows have not been compared.

8-bit numbers (``e4m3``, ``e5m2``) are converted to f16 first. Of each four consecutive terms, the first two are part of
a first such addition, and the others of a second one. The element of `c` is added last, with a single rounding.

Products of doubles are added one after another by fused multiply-adds. Integer sums are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import conversions, floats
from .number_formats import formats
from .number_formats.rounding import fused, is_negative, to_integral
from .number_formats.rounding import narrow as narrow_to_single
from .values import Value, maximum, minimum, where

PLACES = 25
# Smaller than any product of two numbers, and far enough from the ends of double precision.
_LEAST = 2.0**-400
# All products that are not zero, times this scale and 2**PLACES, fit in single precision.
_MOST_SCALE = 2.0**100
# A truncated product of f16 numbers is at most 2**27 - 2**17 + 32, so this many add up to less than 2**31.
_SUMMANDS = 16
_BYTES = ("e4m3", "e5m2")
# The type in which products of the factors of each type are exact.
FACTORS = {
    "f16": "f32", "e4m3": "f32", "e5m2": "f32", "bf16": "f64", "tf32": "f64", "f64": "f64", "s8": "s32", "u8": "s32",
}  # fmt: skip  # rows of a table
_FRACTIONS = {"f32": 23, "f64": 52}
_EXPONENTS = {"f32": 0xFF << 23, "f64": 0x7FF << 52}
_BIAS = 1023


class Factor(NamedTuple):
    """An element of `a` or `b` as a number, and 2 to the number's exponent, which is 0 for zeros.

    Products with other factors of its kind are exact in the number's type. The powers are not used for integers and
    doubles.
    """

    number: Value
    power: Value


def factor(kind: str, pattern: Value) -> Factor:
    """Return an element of `a` or `b`."""
    number = _number(kind, pattern)
    return Factor(number, number if number.type == "s32" else _power(number))


def _number(kind: str, pattern: Value) -> Value:
    match kind:
        case "s8" | "u8":
            return pattern.read_as(kind).to("s32")
        case "f64":
            return pattern
        case "tf32":
            # The hardware ignores the lowest bits of the register.
            number = (pattern & ~0x1FFF).read_as("f32")
        case _:
            number = formats.to_single(kind, pattern)
    return number if FACTORS[kind] == "f32" else number.as_number("f64")


def _power(number: Value) -> Value:
    """Return 2 to the exponent of each number, which is not subnormal in its type."""
    return (number.bits & _EXPONENTS[number.type]).read_as(number.type)


def element(
    kinds: tuple[str, str, str],
    a: Sequence[Factor],
    b: Sequence[Factor],
    c: Value,
    *,
    rounding: str = "rn",
    clamps: bool = False,
) -> tuple[Value, Value | None]:
    """Return an element of ``a * b + c``, and in which lanes it is suspect: there, use `plain_element` instead.

    `kinds` are the types of the result, of `a` and of `c`. `c` and the result are patterns of f16 or numbers. Doubles
    are rounded by `rounding`. If `clamps` is set, an integer sum saturates at the limits of s32; otherwise it wraps.
    """
    result, kind, added = kinds
    if result == "s32":
        return _integer(a, b, c, clamps), None
    if result == "f64":
        for x, y in zip(a, b, strict=True):
            c = floats.fma(x.number, y.number, c, rounding=rounding)
        return c, None
    number = _single(added, c).as_number("f64")
    if kind not in _BYTES:
        total, suspect = _sum(a, b, number)
        return _rounded(total, result), suspect
    total = number.real(0)
    for first in (0, 2):
        chosen = [index for index in range(len(a)) if index % 4 in (first, first + 1)]
        some_a, some_b = [a[index] for index in chosen], [b[index] for index in chosen]
        exact, suspect = _sum(some_a, some_b, total)
        found = _rounded(where(suspect, _plain_sum(some_a, some_b, total), exact), result)
        total = _single(result, found).as_number("f64")
    return _nearest(total + number, result), None


def plain_element(kinds: tuple[str, str, str], a: Sequence[Factor], b: Sequence[Factor], c: Value) -> Value:
    """Return an element of ``a * b + c`` where a term is infinite or NaN, or all are zeros: an IEEE sum."""
    return _nearest(_plain_sum(a, b, _single(kinds[2], c).as_number("f64")), kinds[0])


def _plain_sum(a: Sequence[Factor], b: Sequence[Factor], c: Value) -> Value:
    """Return the IEEE sum of products and `c` in double precision."""
    for x, y in zip(a, b, strict=True):
        one, other = (number if number.type == "f64" else number.as_number("f64") for number in (x.number, y.number))
        c = fused(one, other, c)
    return c


def _single(kind: str, c: Value) -> Value:
    return c if kind == "f32" else formats.to_single("f16", c)


def _integer(a: Sequence[Factor], b: Sequence[Factor], c: Value, clamps: bool) -> Value:
    """Return the sum of integer products and `c`."""
    total = c.like(0)
    for x, y in zip(a, b, strict=True):
        total = total + x.number * y.number
    if not clamps:
        return total + c
    return conversions.cvt_integer_sat("s32", total.to("s64") + c.to("s64"))


def _rounded(total: Value, kind: str) -> Value:
    """Return an exact sum as a number of f32, rounded towards zero, or as a pattern of f16, rounded to nearest."""
    if kind == "f32":
        return floats.finish(narrow_to_single(total, None, "rz"))
    return formats.narrow("f16", total)


def _nearest(total: Value, kind: str) -> Value:
    """Return a sum as a number of f32 or a pattern of f16, rounded to nearest."""
    return floats.finish(total.as_number("f32")) if kind == "f32" else formats.narrow("f16", total)


def _sum(a: Sequence[Factor], b: Sequence[Factor], c: Value) -> tuple[Value, Value]:
    """Return the sum, in double precision, of what is left of the products and of `c`, and where it is suspect."""
    # Powers of two are in the order of their patterns, and infinities and NaNs come after all of them.
    powers = [(x.power * y.power).bits for x, y in zip(a, b, strict=True)]
    greatest = powers[0]
    for one in powers[1:]:
        greatest = maximum(greatest, one)
    number = greatest.read_as(a[0].power.type)
    wide = number if number.type == "f64" else number.as_number("f64")
    leading = maximum(maximum(wide.bits, _power(c).bits), c.real(_LEAST).bits)
    shift = PLACES << _FRACTIONS["f64"]
    # The last place that is kept becomes the units place. Scaling by powers of two changes no other bits.
    scale = ((2 * _BIAS << _FRACTIONS["f64"]) + shift - leading).read_as("f64")
    total = to_integral(c * scale, "trunc") + _kept([x.number * y.number for x, y in zip(a, b, strict=True)], scale)
    total = total * (leading - shift).read_as("f64")
    all_zero = leading.equals(c.real(_LEAST).bits)
    return total, (leading >= _EXPONENTS["f64"]) | (all_zero & is_negative(c))


def _kept(products: Sequence[Value], scale: Value) -> Value:
    """Return the sum of products times a scale, each truncated to an integer."""
    if products[0].type == "f64":
        total = to_integral(products[0] * scale, "trunc")
        for product in products[1:]:
            total = total + to_integral(product * scale, "trunc")
        return total
    # 32-bit integers take half the time of doubles. Where the scale is too large, all products are zeros.
    single = minimum(scale.bits, scale.real(_MOST_SCALE).bits).read_as("f64").as_number("f32")
    assert len(products) <= _SUMMANDS
    whole = (products[0] * single).as_number("s32")
    for product in products[1:]:
        whole = whole + (product * single).as_number("s32")
    return whole.as_number("f64")
