"""Half precision: bit patterns of f16 and bf16, and packed pairs of them, which are computed half by half.

Every operation rounds its exact result once. The modifiers ``ftz``, ``sat``, ``relu``, ``nan`` and ``xorsign`` are
keyword arguments. A NaN result is 0x7fff.

Recorded outputs of an H200 show when ``ftz`` flushes a product: when it is below the smallest normal number after
rounding to 11 bits with an unbounded exponent. 0x0400 * 0x3bff gives zero, 0x0401 * 0x3bfe does not. ``fma`` is assumed
to do the same; no recording covers it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .approximations import FUNCTIONS
from .number_formats.formats import FORMATS, finite, flush, narrow, rectified, saturated, to_single
from .number_formats.rounding import two_sum
from .values import Value, where

_SIGN = 0x8000
_NAN = 0x7FFF


def halves_of(a: Value, kind: str) -> list[Value]:
    """Return the patterns in a register: one, or the lower and the upper one of a pair."""
    return [a.to("u16"), (a >> 16).to("u16")] if kind.endswith("x2") else [a]


def joined(patterns: list[Value]) -> Value:
    """Return patterns as a register holds them: one, or two packed as a pair."""
    if len(patterns) == 1:
        return patterns[0]
    low, high = (pattern.to("u32") for pattern in patterns)
    return high << 16 | low


def _on_halves(function: Callable[..., Value]) -> Callable[..., Value]:
    """Let a function of patterns apply to each half of registers; the type `kind` is the last word before them."""

    @wraps(function)
    def apply(*arguments: Any, **modifiers: Any) -> Value:
        words = [argument for argument in arguments if isinstance(argument, str)]
        each = zip(*(halves_of(operand, words[-1]) for operand in arguments[len(words) :]), strict=True)
        words[-1] = words[-1].removesuffix("x2")
        return joined([function(*words, *patterns, **modifiers) for patterns in each])

    return apply


def finished(
    kind: str, a: Value, *, ftz: bool = False, sat: bool = False, relu: bool = False, satfinite: bool = False
) -> Value:
    """Apply the modifiers to results."""
    if ftz:
        a = flush(kind, a)
    if sat:
        a = saturated(kind, a)
    if relu:
        a = rectified(kind, a)
    return finite(kind, a) if satfinite else a


@_on_halves
def abs_(kind: str, a: Value, *, ftz: bool = False) -> Value:
    """``abs``: clear the sign."""
    return finished(kind, a, ftz=ftz) & _NAN


@_on_halves
def neg(kind: str, a: Value, *, ftz: bool = False) -> Value:
    """``neg``: flip the sign."""
    return finished(kind, a, ftz=ftz) ^ _SIGN


@_on_halves
def add(kind: str, a: Value, b: Value, *, ftz: bool = False, sat: bool = False) -> Value:
    """``add``: round once."""
    # Rounding the sum to the 24 bits of single precision first doesn't change how it rounds to 11 or 8 bits.
    total = to_single(kind, a, ftz) + to_single(kind, b, ftz)
    return finished(kind, narrow(kind, total), ftz=ftz, sat=sat)


def sub(kind: str, a: Value, b: Value, *, ftz: bool = False, sat: bool = False) -> Value:
    """``sub``: round once."""
    return add(kind, a, neg(kind, b), ftz=ftz, sat=sat)


@_on_halves
def mul(kind: str, a: Value, b: Value, *, ftz: bool = False, sat: bool = False) -> Value:
    """``mul``: round once."""
    # The product is exact in single precision, unless it rounds to 0 or to infinity anyway.
    return _rounded(kind, to_single(kind, a, ftz) * to_single(kind, b, ftz), None, ftz, sat=sat)


@_on_halves
def fma(kind: str, a: Value, b: Value, c: Value, *, ftz: bool = False, sat: bool = False, relu: bool = False) -> Value:
    """``fma``: round once."""
    x, y, z = (to_single(kind, operand, ftz).as_number("f64") for operand in (a, b, c))
    # In the narrow range of f16, the rounding errors of double precision are too small to create or hide a tie. In the
    # range of bf16 it isn't.
    high, low = (x * y + z, None) if kind == "f16" else two_sum(x * y, z)
    return _rounded(kind, high, low, ftz, sat=sat, relu=relu)


def _rounded(kind: str, high: Value, low: Value | None, ftz: bool, **modifiers: bool) -> Value:
    """Round, and with `ftz` flush results that are subnormal after rounding with an unbounded exponent."""
    result = narrow(kind, high, low)
    if ftz:
        # Scaled by 2**24, every such result is a normal number. Results that overflow are not subnormal either.
        scaled = narrow(kind, high * high.real(2.0**24)) & _NAN
        least = FORMATS[kind].least_normal + (24 << FORMATS[kind].fraction)
        result = where(scaled < least, result & _SIGN, result)
    return finished(kind, result, **modifiers)


@_on_halves
def extreme(
    name: str, kind: str, a: Value, b: Value, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
) -> Value:
    """``min``, ``max``: -0 is less than +0, and a NaN loses to a number, or wins with ``nan``."""
    a, b = finished(kind, a, ftz=ftz), finished(kind, b, ftz=ftz)
    signs = (a ^ b) & _SIGN
    if xorsign_abs:
        a, b = a & _NAN, b & _NAN
    a_nan, b_nan = ((x & _NAN) > FORMATS[kind].above for x in (a, b))
    less = _ordered(a) < _ordered(b)
    result = where(less, a, b) if name == "min" else where(less, b, a)
    result = where(a_nan, b, where(b_nan, a, result))
    if xorsign_abs:
        result = result | signs
    return where(a_nan | b_nan if nan else a_nan & b_nan, result.like(_NAN), result)


def _ordered(a: Value) -> Value:
    """Return patterns as integers in the order of the numbers, with -0 just below +0."""
    signed = a.read_as("s16")
    return where(signed < 0, ~(signed & _NAN), signed)


@_on_halves
def elementary(name: str, kind: str, a: Value, *, ftz: bool = False) -> Value:
    """``ex2.approx``, ``tanh.approx``: return 2 to the power of `a`, or the hyperbolic tangent, correctly rounded.

    For ``ex2``, the manual allows a relative error of 2**-9.9 for f16 and 2**-7 for bf16. For ``tanh``, it allows an
    absolute error of 2**-10.987 for f16 and 2**-8 for bf16.
    """
    wide = to_single(kind, a, ftz).as_number("f64")
    return finished(kind, narrow(kind, wide.of(wide.builder.elementary(FUNCTIONS[name], wide.raw))), ftz=ftz)
