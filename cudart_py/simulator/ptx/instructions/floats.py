"""Arithmetic, min, max, signs and classes of single and double precision, with the hardware's NaNs and one rounding.

One lowering serves both types. The modifiers ``ftz``, ``sat``, ``nan`` and ``xorsign``, and the rounding, are keyword
arguments; ``ftz`` and ``sat`` are for single precision. Recorded outputs of an H200 agree bit for bit, in every
rounding mode.
"""

from __future__ import annotations

from .number_formats import double_rounding
from .number_formats.rounding import UP, fused, is_negative, narrow, root, rounded, two_sum, unless_tiny, zero_of_sum
from .values import Value, is_nan, rarely, where

_NAN_F32 = 0x7FFFFFFF


def flushed_operands(ftz: bool, *values: Value) -> list[Value]:
    """Return operands, flushed if `ftz` is set."""
    if not ftz:
        return list(values)
    return [values[0].of(raw) for raw in values[0].builder.flushed(*(value.raw for value in values))]


def flush_result(a: Value, ftz: bool) -> Value:
    """Return exact results, flushed if `ftz` is set and the processor doesn't do it."""
    return flushed(a, ftz and not a.builder.flushes)


def flushed(a: Value, ftz: bool) -> Value:
    """Return values, flushed if `ftz` is set."""
    return a.of(a.builder.flush(a.raw)) if ftz else a


def finish(result: Value, *operands: Value, sat: bool = False) -> Value:
    """Return a result with the hardware's NaNs (in double precision, the operands' NaNs), or saturated."""
    if sat:
        return saturate(result)
    if result.type == "f32":
        return Value(result.builder, "f32", result.raw, loose=True)
    return result.of(result.builder.quiet(result.raw, *(operand.raw for operand in operands)))


def canonical(a: Value) -> Value:
    """Replace NaNs of single precision by the hardware's."""
    # NaNs are found by comparing integers: with a comparison of floats, LLVM would drop their replacement.
    nan = (a.bits & 0x7FFFFFFF) > 0x7F800000
    return rarely(is_nan(a), where(nan, a.bits.like(_NAN_F32), a.bits).read_as("f32"), a)


def saturate(a: Value) -> Value:
    """Clamp to the range from +0 to 1, NaN becoming +0."""
    return a.of(a.builder.saturate(a.raw))


# --- arithmetic ---------------------------------------------------------------------------------------------------


def add(a: Value, b: Value, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """``add``: round once."""
    x, y = flushed_operands(ftz, a, b)
    return finish(flush_result(_sum(x, y, rounding), ftz), a, b, sat=sat)


def sub(a: Value, b: Value, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """``sub``: round once. A NaN operand keeps its sign."""
    x, y = flushed_operands(ftz, a, b)
    difference = x - y if rounding == "rn" else _sum(x, -y, rounding)
    return finish(flush_result(difference, ftz), a, b, sat=sat)


def _sum(a: Value, b: Value, rounding: str) -> Value:
    if rounding == "rn":
        return a + b
    if a.type == "f32":
        high, low = two_sum(a.as_number("f64"), b.as_number("f64"))
        return zero_of_sum(
            narrow(high, low, rounding), high.equals(high.real(0)), is_negative(a) | is_negative(b), rounding
        )
    return double_rounding.add(a, b, rounding)


def mul(a: Value, b: Value, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """``mul``: round once."""
    x, y = flushed_operands(ftz, a, b)
    if a.type == "f64":
        return finish(x * y if rounding == "rn" else double_rounding.mul(x, y, rounding), a, b)
    if rounding != "rn":
        product = rounded(x.as_number("f64") * y.as_number("f64"), None, rounding, ftz)
    else:
        product = x * y
        if ftz and not a.builder.flushes:
            product = unless_tiny(product, x * x.real(UP) * y)
    return finish(product, sat=sat)


def fma(a: Value, b: Value, c: Value, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """``fma``, ``mad``: round once."""
    x, y, z = flushed_operands(ftz, a, b, c)
    if rounding == "rn":
        result = fused(x, y, z)
        if ftz and not a.builder.flushes:
            up = x.real(UP)
            result = unless_tiny(result, fused(x * up, y, z * up))
        return finish(result, a, b, c, sat=sat)
    if a.type == "f64":
        return finish(double_rounding.fma(a, b, c, rounding), a, b, c)
    high, low = two_sum(x.as_number("f64") * y.as_number("f64"), z.as_number("f64"))
    # A product is negative if exactly one factor is.
    signs = (is_negative(x) ^ is_negative(y)) | is_negative(z)
    result = rounded(high, low, rounding, ftz)
    return finish(zero_of_sum(result, high.equals(high.real(0)), signs, rounding), sat=sat)


def div(a: Value, b: Value, *, rounding: str = "rn", ftz: bool = False) -> Value:
    """``div``: round once."""
    x, y = flushed_operands(ftz, a, b)
    if a.type == "f64":
        return finish(x / y if rounding == "rn" else double_rounding.div(x, y, rounding), a, b)
    if rounding == "rn" and (a.builder.flushes or not ftz):
        return finish(x / y)
    # A quotient of 24-bit numbers is never so close to a rounding boundary that rounding to 53 bits first would matter.
    return finish(rounded(x.as_number("f64") / y.as_number("f64"), None, rounding, ftz))


def rcp(a: Value, *, rounding: str = "rn", ftz: bool = False) -> Value:
    """``rcp``: round once."""
    return div(a.real(1), a, rounding=rounding, ftz=ftz)


def sqrt(a: Value, *, rounding: str = "rn", ftz: bool = False) -> Value:
    """``sqrt``: round once."""
    [x] = flushed_operands(ftz, a)
    if a.type == "f64":
        return finish(root(x) if rounding == "rn" else double_rounding.sqrt(x, rounding), a)
    # As for quotients, 53 bits decide every rounding. The root of a number that isn't subnormal isn't subnormal either.
    result = root(x) if rounding == "rn" else narrow(root(x.as_number("f64")), None, rounding)
    return finish(canonical(result))


# --- extremes and signs -------------------------------------------------------------------------------------------


def extreme(name: str, a: Value, b: Value, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False) -> Value:
    """``min``, ``max``: -0 is less than +0, and a NaN loses to a number, or wins with ``nan``.

    ``xorsign_abs`` compares magnitudes and gives the result the product of the signs.
    """
    smaller = name == "min"
    a, b = flushed(a, ftz), flushed(b, ftz)
    signs = (a.bits ^ b.bits) & 1 << a.width - 1
    if xorsign_abs:
        a, b = abs(a), abs(b)
    chosen = a.of((a.builder.float_least if smaller else a.builder.float_greatest)(a.raw, b.raw))
    # Equal operands differ at most in the signs of zeros.
    same = (a.bits | b.bits if smaller else a.bits & b.bits).read_as(a.type)
    equal = a.equals(b)
    chosen = rarely(equal & a.equals(a.real(0)), where(equal, same, chosen), chosen)
    a_nan, b_nan = is_nan(a), is_nan(b)
    # If one operand is NaN, the other one is chosen, or with `nan` the NaN.
    of_a, of_b = (a, b) if nan else (b, a)
    chosen = rarely(a_nan | b_nan, where(a_nan, of_a, where(b_nan, of_b, chosen)), chosen)
    if xorsign_abs:
        chosen = (chosen.bits ^ signs).read_as(a.type)
    return finish(chosen, a, b)


def copysign(a: Value, b: Value) -> Value:
    """``copysign``: return the second operand's magnitude with the first one's sign."""
    # LLVM must not know which bit is the sign: if a selection uses the result of a choice by known bits, LLVM may
    # combine both into an instruction that `native.defects` refuses.
    top = a.bits.like(1 << a.width - 1)
    sign = top.of(top.builder.opaque(top.raw))
    return ((a.bits & sign) | (b.bits & ~sign)).read_as(a.type)


def abs_(a: Value, *, ftz: bool = False) -> Value:
    """``abs``: clear the sign. The hardware adds zero, so NaNs become those of an addition."""
    return finish(flushed(abs(a), ftz), a)


def neg(a: Value, *, ftz: bool = False) -> Value:
    """``neg``: flip the sign. The hardware adds zero, so NaNs become those of an addition."""
    return finish(flushed(-a, ftz), a)


def testp(relation: str, a: Value) -> Value:
    """``testp``: return whether a number belongs to a class. Zero is neither normal nor subnormal."""
    size = abs(a).bits
    infinity, least = (0x7F800000, 1 << 23) if a.type == "f32" else (0x7FF << 52, 1 << 52)
    match relation:
        case "finite":
            return size < infinity
        case "infinite":
            return size.equals(infinity)
        case "number":
            return size <= infinity
        case "notanumber":
            return size > infinity
        case "normal":
            # The subtraction makes smaller numbers wrap to the largest integers.
            return size - least < infinity - least
    return size - 1 < least - 1


CLASSES = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}
