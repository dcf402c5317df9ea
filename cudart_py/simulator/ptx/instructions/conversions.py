"""Conversions (``cvt``).

Types are given by their PTX names; halves and 8-bit floats are integers that hold the bit pattern. The modifiers
``ftz``, ``sat``, ``relu`` and ``satfinite``, and the rounding to an integer or to a format, are keyword arguments.

Recorded outputs of an H200 agree bit for bit. They don't show when ``cvt.ftz.f32.f64`` treats a number just below
2**-126 as subnormal; this follows what the H200 does for products (`rounding.unless_tiny`).
"""

from __future__ import annotations

from .floats import canonical, finish, flushed, saturate
from .halves import finished, halves_of, joined
from .number_formats import formats
from .number_formats.rounding import direct, rounded, to_integral, two_sum
from .values import Value, is_nan, maximum, minimum, rarely, real, where


def cvt_integer(to: str, a: Value) -> Value:
    """``cvt`` between integers: truncate or extend."""
    return a.to(to)


def cvt_integer_sat(to: str, a: Value) -> Value:
    """``cvt.sat`` between integers: saturate."""
    (low, high), (least, greatest) = range_of(to), range_of(a.type)
    return clamp(a, max(low, least), min(high, greatest)).to(to)


def range_of(type: str) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    bits = int(type[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def clamp(a: Value, low: int, high: int) -> Value:
    """Return integers, replaced by the limits if they are outside of them."""
    return maximum(minimum(a, high), low)


def cvt_pack(to: str, a: Value, b: Value, *c: Value) -> Value:
    """``cvt.pack``: saturate two integers to the type `to`, and pack `c`, `a` and `b` from the top down."""
    bits = int(to[1:])
    upper, lower = ((clamp(x, *range_of(to)) & (1 << bits) - 1).read_as("u32") for x in (a, b))
    packed = upper << bits | lower
    return packed | c[0] << 2 * bits if c else packed


# --- floats to integers, and back ---------------------------------------------------------------------------------


def _single_or_double(kind: str, a: Value, ftz: bool) -> Value:
    """Return an operand in single or double precision; with `ftz`, flush single precision."""
    if kind in ("f16", "bf16"):
        return formats.to_single(kind, a)
    return flushed(a, ftz and kind == "f32")


def float_to_integer(
    to: str, kind: str, a: Value, *, integral: str = "", ftz: bool = False, sat: bool = False
) -> Value:
    """``cvt`` of a float: round to an integer and saturate, which PTX does even without ``sat``.

    A NaN becomes 0, but if the source is f64 or the destination has 64 bits, it becomes the pattern in which only the
    highest bit is set.
    """
    whole = to_integral(_single_or_double(kind, a, ftz), integral)
    least, greatest = range_of(to)
    # If a format cannot represent the greatest integer, the bound is rounded to the power of two above it. Otherwise, a
    # number that equals it is replaced by itself.
    below = whole < whole.real(least)
    inside = ~below & (whole < whole.real(greatest))
    bits = int(to[1:])
    number = where(inside, whole, whole.real(0)).as_number(f"{to[0]}{max(bits, 32)}").to(to)
    of_nan = 1 << bits - 1 if kind == "f64" or bits == 64 else 0
    outside = where(below, number.like(least), where(is_nan(whole), number.like(of_nan), greatest))
    return rarely(~inside, where(inside, number, outside), number)


def integer_to_float(to: str, a: Value, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """``cvt`` of an integer: round once. No result is subnormal."""
    if to in ("f32", "f64") and (rounding == "rn" or (to == "f64" and a.width < 64)):
        result = a.as_number(to)
        return saturate(result) if sat else result
    high, low = _exactly(a)
    if to == "f32":
        result = rounded(high, low, rounding, False)
    elif to == "f64":
        assert low is not None
        result = direct(high.bits, low, rounding).read_as("f64")
    else:
        return finished(to, formats.narrow(to, high, low, rounding), sat=sat)
    return saturate(result) if sat else result


def _exactly(a: Value) -> tuple[Value, Value | None]:
    """Return integers in double precision, as a pair if they have 64 bits."""
    if a.width < 64:
        return a.as_number("f64"), None
    # Each 32-bit half is exact in double precision, so their exact sum is a pair.
    high = (a >> 32).as_number("f64")
    return two_sum(high * high.real(2.0**32), (a & 0xFFFFFFFF).as_number("f64"))


# --- floats to floats ---------------------------------------------------------------------------------------------


def float_to_float(
    to: str,
    kind: str,
    a: Value,
    *,
    rounding: str = "rn",
    integral: str = "",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Value:
    """``cvt`` between floats of 16, 32 and 64 bits: round once, or to an integer, which is then exact.

    Conversions to and from double precision keep the sign of a NaN and as much of its payload as fits.
    """
    x = _single_or_double(kind, a, ftz)
    if integral:
        x = to_integral(x, integral)
    if to in ("f16", "bf16"):
        return finished(to, formats.narrow(to, x, None, rounding), sat=sat, relu=relu, satfinite=satfinite)
    if to == x.type:
        return finish(flushed(x, ftz) if to == "f32" else x, x, sat=sat)
    if to == "f32":
        result = rounded(x, None, rounding, ftz)
        result = rarely(is_nan(x), where(is_nan(x), x.as_number("f32"), result), result)
    elif kind == "f16":
        result = formats.half_to_double(a, x)
    else:
        # Flushing is an operation of single precision.
        result = (canonical(x) if ftz else x).as_number("f64")
    return saturate(result) if sat else result


def to_tf32(a: Value, *, rounding: str = "rn", relu: bool = False, satfinite: bool = False) -> Value:
    """``cvt`` to tf32: a NaN becomes the hardware's NaN, whose sign is positive."""
    result = formats.to_tf32(a, rounding)
    return where(result >= 1 << 31, result.like(0), result) if relu else result


# --- pairs --------------------------------------------------------------------------------------------------------


def pair_of_singles(
    to: str, a: Value, b: Value, *, rounding: str = "rn", relu: bool = False, satfinite: bool = False
) -> Value:
    """``cvt`` of two numbers of single precision to a pair of halves or 8-bit floats; `a` becomes the upper one."""
    one = to.removesuffix("x2")
    if one in ("f16", "bf16"):
        patterns = [formats.narrow(one, x, None, rounding) for x in (b, a)]
        return joined([finished(one, pattern, relu=relu, satfinite=satfinite) for pattern in patterns])
    return _bytes(one, b, a, relu)


def pair_of_halves(to: str, a: Value, *, relu: bool = False) -> Value:
    """``cvt`` of a pair of f16 to a pair of 8-bit floats."""
    low, high = (formats.to_single("f16", x) for x in halves_of(a, "f16x2"))
    return _bytes(to.removesuffix("x2"), low, high, relu)


def _bytes(kind: str, low: Value, high: Value, relu: bool) -> Value:
    """Round single precision to 8-bit floats; numbers that are too large become the largest finite number."""
    zero = real(low.builder, "f32", 0)
    if relu:
        low, high = (where(x <= zero, zero, x) for x in (low, high))  # -0 too, as on an H200
    first, second = (formats.nearest(kind, x, finite=True).to("u16") for x in (low, high))
    return second << 8 | first


def pair_of_bytes(kind: str, a: Value, *, relu: bool = False) -> Value:
    """``cvt`` of a pair of 8-bit floats to a pair of f16, which represents all of them exactly."""
    halves = [formats.nearest("f16", formats.to_single(kind.removesuffix("x2"), x.to("u8"))) for x in (a, a >> 8)]
    return joined([finished("f16", x, relu=relu) for x in halves])
