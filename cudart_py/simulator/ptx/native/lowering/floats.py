"""Roundings of double precision, for halves and conversions."""

from __future__ import annotations

from typing import Any

from ..vectors import F32, F64, I64, Builder, vector

Value = Any

# 2**-62 and 2**-126 in single precision, 2**64 in double precision, and ones.
_LEAST_UP32, _LEAST32 = 0x20800000, 0x00800000
_UP64 = 0x43F0000000000000
ONE = {F32: 0x3F800000, F64: 0x3FF0000000000000}


def magnitude(b: Builder, x: Value) -> Value:
    """Return absolute values."""
    bits = b.as_integer(x)
    mask = (1 << bits.type.element.width - 1) - 1
    return b.as_type(b.and_(bits, b.like(bits, mask)), x.type.element)


def wide(b: Builder, x: Value) -> Value:
    """Return single-precision numbers in double precision."""
    return b.fpext(x, vector(F64))


def saturate(b: Builder, x: Value) -> Value:
    """Clamp to the range from +0 to 1, NaN becoming +0."""
    element = x.type.element
    zero, one = b.const(element, 0), b.const(element, ONE[element])
    positive = b.select(b.floats("ogt", x, zero), x, zero)
    return b.select(b.floats("olt", positive, one), positive, one)


def two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its error."""
    total = b.fadd(x, y)
    part = b.fsub(total, x)
    return total, b.fadd(b.fsub(x, b.fsub(total, part)), b.fsub(y, part))


def _to_odd(b: Builder, high: Value, low: Value) -> Value:
    bits = b.as_integer(high)
    zero = b.const(F64, 0)
    even = b.compare("==", b.and_(bits, b.const(I64, 1)), 0)
    inexact = b.and_(b.floats("one", low, zero), even)
    away = b.icmp_unsigned("==", b.floats("ogt", low, zero), b.floats("ogt", high, zero))
    step = b.select(away, b.const(I64, 1), b.const(I64, (1 << 64) - 1))
    moved = b.add(bits, b.select(inexact, step, b.const(I64, 0)))
    return b.as_type(moved, F64)


def _direct(b: Builder, nearest: Value, rest: Value, rounding: str) -> Value:
    """Return results rounded to nearest as ones of a directed rounding, by the sign of what was rounded off."""
    zero = b.like(rest, 0)
    negative, positive = b.floats("olt", rest, zero), b.floats("ogt", rest, zero)
    nil = b.like(nearest, 0)
    if rounding == "rz":
        above, below = b.floats("ogt", nearest, nil), b.floats("olt", nearest, nil)
        step = b.or_(b.and_(negative, above), b.and_(positive, below))
    else:
        step = negative if rounding == "rm" else positive
    bits = b.as_integer(nearest)
    sign = 1 << bits.type.element.width - 1
    is_negative = b.compare("!=", b.and_(bits, b.like(bits, sign)), 0)
    up, down = b.add(bits, b.like(bits, 1)), b.sub(bits, b.like(bits, 1))
    if rounding == "rz":
        moved = down
    else:
        grows = is_negative if rounding == "rm" else b.not_(is_negative)
        moved = b.select(grows, up, down)
        # A step from a zero leads to the least number of the step's sign.
        least = b.like(bits, sign | 1 if rounding == "rm" else 1)
        moved = b.select(b.floats("oeq", nearest, nil), least, moved)
    return b.select(step, b.as_type(moved, nearest.type.element), nearest)


def narrow(b: Builder, high: Value, low: Value | None, rounding: str) -> Value:
    """Round double-precision numbers, or pairs, to single precision."""
    if rounding == "rn":
        return b.fptrunc(high if low is None else _to_odd(b, high, low), vector(F32))
    nearest = b.fptrunc(high, vector(F32))
    rest = b.fsub(high, wide(b, nearest))
    if low is not None:
        rest = b.select(b.floats("oeq", rest, b.const(F64, 0)), low, rest)
    return _direct(b, nearest, rest, rounding)


def rounded(b: Builder, high: Value, low: Value | None, rounding: str, ftz: bool) -> Value:
    """Round double-precision numbers, or pairs, to single precision, and flush what is subnormal then."""
    result = narrow(b, high, low, rounding)
    if not ftz:
        return result
    up = b.const(F64, _UP64)
    scaled = narrow(b, b.fmul(high, up), None if low is None else b.fmul(low, up), rounding)
    tiny = b.floats("olt", magnitude(b, scaled), b.const(F32, _LEAST_UP32))
    small = b.floats("ole", magnitude(b, result), b.const(F32, _LEAST32))
    return b.select(b.and_(tiny, small), b.signed_zero(result), result)
