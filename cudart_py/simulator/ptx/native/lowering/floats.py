"""Floating-point arithmetic: one rounding, the hardware's NaNs, flushed subnormal numbers, saturation.

The functions do what those of `operations.floats` do for arrays, step by step where the steps decide the bits.
"""

from __future__ import annotations

from typing import Any

from ..errors import NotNative
from ..vectors import F32, F64, I32, I64, Builder, integer_like, vector

Value = Any

NAN32 = 0x7FFFFFFF
NAN64 = 0xFFF8000000000000
_QUIET64 = 1 << 51
_SIGN32, _SIGN64 = 1 << 31, 1 << 63
_EXPONENT32 = 0x7F800000
# 2**64, 2**-62 and 2**-126 in single precision, 2**64 in double precision, and ones.
_UP32, _LEAST_UP32, _LEAST32 = 0x5F800000, 0x20800000, 0x00800000
_UP64 = 0x43F0000000000000
ONE = {F32: 0x3F800000, F64: 0x3FF0000000000000}


def _is_nan(b: Builder, x: Value) -> Value:
    return b.floats("uno", x, x)


def canonical32(b: Builder, x: Value) -> Value:
    """Return single-precision numbers with NaNs replaced by the hardware's one."""
    return b.select(_is_nan(b, x), b.const(F32, NAN32), x)


def canonical64(b: Builder, x: Value, *operands: Value) -> Value:
    """Return double-precision numbers with NaNs replaced by the first NaN operand, made quiet, or the default."""
    chosen = b.const(F64, NAN64)
    for operand in reversed(operands):
        quiet = b.as_type(b.or_(b.as_integer(operand), b.const(I64, _QUIET64)), F64)
        chosen = b.select(_is_nan(b, operand), quiet, chosen)
    return b.select(_is_nan(b, x), chosen, x)


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


def _flushed(b: Builder, ftz: bool, *operands: Value) -> tuple[Value, ...]:
    """Return operands of arithmetic, flushed if the processor doesn't do it."""
    return tuple(b.flush(x) for x in operands) if ftz and not b.flushes else operands


def _zero_of_sum(b: Builder, result: Value, total: Value, signs: Value, rounding: str) -> Value:
    """Make exact zero sums negative in ``rm`` where any addend was."""
    if rounding != "rm":
        return result
    exact = b.floats("oeq", total, b.const(F64, 0))
    return b.select(b.and_(exact, signs), b.const(F32, _SIGN32), result)


def _negative(b: Builder, x: Value) -> Value:
    return b.compare("<", b.as_integer(x), 0, signed=True)


def add(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """Return sums; NaNs of single precision are left to the caller."""
    if x.type.element == F64:
        if rounding != "rn":
            raise NotNative("add.f64 with a directed rounding")
        return canonical64(b, b.fadd(x, y), x, y)
    x, y = _flushed(b, ftz, x, y)
    if rounding == "rn":
        result = b.fadd(x, y)
    else:
        high, low = two_sum(b, wide(b, x), wide(b, y))
        signs = b.or_(_negative(b, x), _negative(b, y))
        result = _zero_of_sum(b, narrow(b, high, low, rounding), high, signs, rounding)
    return b.flush_result(result) if ftz else result


def subtract(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """Return differences; NaNs of single precision are left to the caller."""
    if x.type.element == F64:
        if rounding != "rn":
            raise NotNative("sub.f64 with a directed rounding")
        return canonical64(b, b.fsub(x, y), x, y)
    return b.fsub(x, y) if rounding == "rn" and (b.flushes or not ftz) else add(b, x, b.fneg(y), rounding, ftz)


def multiply(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """Return products; NaNs of single precision are left to the caller."""
    if x.type.element == F64:
        if rounding != "rn":
            raise NotNative("mul.f64 with a directed rounding")
        return canonical64(b, b.fmul(x, y), x, y)
    x, y = _flushed(b, ftz, x, y)
    if rounding != "rn":
        return rounded(b, b.fmul(wide(b, x), wide(b, y)), None, rounding, ftz)
    result = b.fmul(x, y)
    if b.flushes or not ftz:
        return result
    # Whether the result is subnormal before its exponent has a least value: a factor times 2**64 tells.
    scaled = b.fmul(b.fmul(x, b.const(F32, _UP32)), y)
    return _unless_tiny(b, scaled, result)


def _unless_tiny(b: Builder, scaled: Value, result: Value) -> Value:
    tiny = b.floats("olt", magnitude(b, scaled), b.const(F32, _LEAST_UP32))
    return b.select(tiny, b.signed_zero(result), result)


def fma(b: Builder, x: Value, y: Value, z: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """Return products with addends; NaNs of single precision are left to the caller."""
    if x.type.element == F64:
        if rounding != "rn":
            raise NotNative("fma.f64 with a directed rounding")
        return canonical64(b, b.intrinsic("fma", x, y, z), x, y, z)
    x, y, z = _flushed(b, ftz, x, y, z)
    if rounding == "rn":
        result = b.intrinsic("fma", x, y, z)
        if b.flushes or not ftz:
            return result
        up = b.const(F32, _UP32)
        return _unless_tiny(b, b.intrinsic("fma", b.fmul(x, up), y, b.fmul(z, up)), result)
    product = b.fmul(wide(b, x), wide(b, y))
    high, low = two_sum(b, product, wide(b, z))
    signs = b.or_(b.xor(_negative(b, x), _negative(b, y)), _negative(b, z))
    return _zero_of_sum(b, rounded(b, high, low, rounding, ftz), high, signs, rounding)


def divide(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """Return quotients; NaNs of single precision are left to the caller."""
    if x.type.element == F64:
        if rounding != "rn":
            raise NotNative("a division of f64 with a directed rounding")
        return canonical64(b, b.fdiv(x, y), x, y)
    x, y = _flushed(b, ftz, x, y)
    if rounding == "rn" and (b.flushes or not ftz):
        return b.fdiv(x, y)
    return rounded(b, b.fdiv(wide(b, x), wide(b, y)), None, rounding, ftz)


def root(b: Builder, x: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """Return square roots; NaNs of single precision are left to the caller."""
    if x.type.element == F64:
        if rounding != "rn":
            raise NotNative("sqrt.f64 with a directed rounding")
        return canonical64(b, b.intrinsic("sqrt", x), x)
    (x,) = _flushed(b, ftz, x)
    nearest = rounding == "rn"
    result = b.intrinsic("sqrt", x) if nearest else narrow(b, b.intrinsic("sqrt", wide(b, x)), None, rounding)
    # LLVM takes the root for the same as one whose NaNs are replaced, if it sees that by a comparison of floats.
    bits = b.as_integer(result)
    nan = b.compare(">", b.and_(bits, b.const(I32, _SIGN32 - 1)), _EXPONENT32)
    return b.as_type(b.select(nan, b.const(I32, NAN32), bits), F32)


def extreme(
    b: Builder, x: Value, y: Value, smaller: bool, ftz: bool = False, nan: bool = False, xorsign: bool = False
) -> Value:
    """Return the smaller or larger operands: -0 is below +0, and a NaN loses unless `nan` asks that it win."""
    element = x.type.element
    if ftz:
        x, y = b.flush(x), b.flush(y)
    signs = b.xor(b.as_integer(x), b.as_integer(y))
    if xorsign:
        x, y = magnitude(b, x), magnitude(b, y)
    chosen = b.select(b.floats("olt" if smaller else "ogt", x, y), x, y)
    # Equal operands differ at most in the signs of zeros.
    join = b.or_ if smaller else b.and_
    same = b.as_type(join(b.as_integer(x), b.as_integer(y)), element)
    chosen = b.select(b.floats("oeq", x, y), same, chosen)
    x_nan, y_nan = _is_nan(b, x), _is_nan(b, y)
    chosen = b.select(x_nan, x, b.select(y_nan, y, chosen)) if nan else b.select(x_nan, y, b.select(y_nan, x, chosen))
    if xorsign:
        sign = b.and_(signs, b.like(signs, 1 << integer_like(element).width - 1))
        chosen = b.as_type(b.xor(b.as_integer(chosen), sign), element)
    return canonical32(b, chosen) if element == F32 else canonical64(b, chosen, x, y)
