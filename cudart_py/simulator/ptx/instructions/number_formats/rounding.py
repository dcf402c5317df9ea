"""Round exact results once.

A number with more bits than double precision is kept as a pair ``(high, low)``: the rounded value and the residual.
"""

from __future__ import annotations

from typing import Any

from ..values import Value, rarely, where

_LEAST_NORMAL = 2.0**-126
# A scale that lifts subnormal results of single precision far into the normal range, without rounding them.
UP = 2.0**64


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Add values or arrays exactly: return the rounded sum and its error, which isn't finite if the sum overflows."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def direct(nearest: Value, rest: Value, rounding: str) -> Value:
    """Turn the bits of results rounded to nearest into the bits of a directed rounding: ``rz``, ``rm`` or ``rp``.

    `rest` has the sign of the exact result minus the result that is rounded to nearest.
    """
    # A result that is rounded to zero keeps its sign, so no step leads from a zero to numbers of the other sign.
    below = nearest >= 1 << nearest.width - 1
    negative, positive = rest < rest.real(0), rest > rest.real(0)
    if rounding == "rz":
        return where(where(below, positive, negative), nearest - 1, nearest)
    step, grows = (negative, below) if rounding == "rm" else (positive, ~below)
    return where(step, where(grows, nearest + 1, nearest - 1), nearest)


def narrow(high: Value, low: Value | None, rounding: str) -> Value:
    """Round double precision, or for a directed rounding pairs, to single precision."""
    nearest = high.as_number("f32")
    if rounding == "rn":
        assert low is None
        return nearest
    return direct(nearest.bits, _rest(high, low, nearest), rounding).read_as("f32")


def _rest(high: Value, low: Value | None, rounded: Value) -> Value:
    """Return the residual of a rounding to single precision, or a number with its sign."""
    rest = high - rounded.as_number("f64")
    return rest if low is None else where(rest.equals(rest.real(0)), low, rest)


def odd_single(high: Value, low: Value | None = None) -> Value:
    """Round double precision, or pairs, to odd in single precision: toward zero, with the last bit set if inexact."""
    nearest = high.as_number("f32")
    rest = _rest(high, low, nearest)
    inexact = abs(rest) > rest.real(0)
    return (direct(nearest.bits, rest, "rz") | inexact.to("u32")).read_as("f32")


def rounded(high: Value, low: Value | None, rounding: str, ftz: bool) -> Value:
    """Round double precision, or pairs, to single precision, and with `ftz` flush subnormal results."""
    result = narrow(high, low, rounding)
    if not ftz:
        return result
    up = high.real(UP)
    return unless_tiny(result, narrow(high * up, None if low is None else low * up, rounding))


def unless_tiny(result: Value, scaled: Value) -> Value:
    """Flush subnormal results of single precision; `scaled` is 2**64 times the exact result, rounded.

    Recorded outputs of an H200 show when a result counts as subnormal: when it is below the smallest normal number
    after rounding to 24 bits with an unbounded exponent. So 2**-126 * 0x3f7fffff is flushed, although rounding in the
    subnormal range gives the smallest normal number; 0x00800001 * 0x3f7ffffe in ``rn`` is not.
    """
    tiny = abs(scaled) < result.real(_LEAST_NORMAL * UP)
    suspect = result.of(result.builder.tiny(result.raw), "pred")
    return rarely(suspect, where(tiny, signed_zero(result), result), result)


def signed_zero(a: Value) -> Value:
    """Return zeros with the signs of floats."""
    return (a.bits & 1 << a.width - 1).read_as(a.type)


def is_negative(a: Value) -> Value:
    """Return which floats have their sign bit set."""
    return a.bits >= 1 << a.width - 1


def zero_of_sum(result: Value, exact_zero: Value, negative: Value, rounding: str) -> Value:
    """In ``rm``, make sums that are exactly zero negative if any addend is negative."""
    return where(exact_zero & negative, result.real(-0.0), result) if rounding == "rm" else result


def fused(a: Value, b: Value, c: Value) -> Value:
    """Multiply and add, rounded once to nearest."""
    return a.of(a.builder.fused(a.raw, b.raw, c.raw))


def root(a: Value) -> Value:
    """Return square roots, rounded to nearest."""
    return a.of(a.builder.root(a.raw))


def to_integral(a: Value, rounding: str) -> Value:
    """Return floats rounded to integers, as floats: ``rint``, ``trunc``, ``floor`` or ``ceil``."""
    return a.of(a.builder.integral(rounding, a.raw))
