"""The approximate functions (``.approx``, ``.full``): computed more accurately than PTX requires, and rounded once.

The hardware's own results differ from these within the bounds that the PTX manual gives:

============================  ==================================================================
``rcp.approx.f32``            absolute error 2**-23 for operands from 1 to 2
``sqrt.approx.f32``           relative error 2**-23
``rsqrt.approx.f32``          absolute error 2**-22.4 for operands from 1 to 4
``sin``, ``cos.approx.f32``   absolute error 2**-20.9 in the first quadrant
``lg2.approx.f32``            absolute error 2**-22.6 for operands from 1 to 2
``ex2.approx.f32``            absolute error 2**-22.5 for fractions of the exponent
``tanh.approx.f32``           relative error 2**-11
``div.approx``, ``.full.f32`` 2 units in the last place
============================  ==================================================================

Results for infinities, zeros and NaN follow the manual's tables. Without ``ftz``, subnormal operands and results are
kept. Recorded outputs of an H200 are within twice these bounds.
"""

from __future__ import annotations

from .floats import finish, flush_result, flushed_operands
from .number_formats.rounding import root, signed_zero
from .values import Value, is_nan, where

# The functions in C and NumPy, keyed by the opcode.
FUNCTIONS = {"sin": "sin", "cos": "cos", "ex2": "exp2", "lg2": "log2", "tanh": "tanh"}
_HIGH_WORD = 0xFFFFFFFF << 32


def elementary(name: str, a: Value, *, ftz: bool = False) -> Value:
    """``sin.approx``, ``cos.approx``, ``ex2.approx``, ``lg2.approx``, ``tanh.approx``: return a function of `a`.

    Angles are in radians. The sine and the cosine of infinity are NaN, and so are logarithms of negative numbers. The
    logarithm of zero is -infinity.
    """
    [x] = flushed_operands(ftz, a)
    wide = x.as_number("f64")
    result = wide.of(wide.builder.elementary(FUNCTIONS[name], wide.raw))
    return finish(flush_result(result.as_number("f32"), ftz))


def rcp(a: Value, *, ftz: bool = False) -> Value:
    """``rcp.approx.f32``: return the reciprocal; for a zero, the infinity of its sign."""
    return div_full(a.real(1), a, ftz=ftz)


def rsqrt(a: Value, *, ftz: bool = False) -> Value:
    """``rsqrt.approx.f32``: return the reciprocal of the square root; for a zero, the infinity of its sign."""
    [x] = flushed_operands(ftz, a)
    wide = x.as_number("f64")
    return finish(flush_result((wide.real(1) / root(wide)).as_number("f32"), ftz))


def div(a: Value, b: Value, *, ftz: bool = False) -> Value:
    """``div.approx``, ``__fdividef``: divide as if by multiplying by the reciprocal.

    For divisors above 2**126 the reciprocal underflows: the result is zero, or NaN for an infinite dividend.
    """
    x, y = flushed_operands(ftz, a, b)
    size, infinity = abs(y), y.real(float("inf"))
    result = x / y
    zero = where(abs(x).equals(infinity), x.real(float("nan")), signed_zero(result))
    lost = (size > y.real(2.0**126)) & (size < infinity)
    return finish(flush_result(where(lost, zero, result), ftz))


def div_full(a: Value, b: Value, *, ftz: bool = False) -> Value:
    """``div.full``, division with ``-prec-div=false``: divide over the full range of operands."""
    x, y = flushed_operands(ftz, a, b)
    return finish(flush_result(x / y, ftz))


# --- double precision ---------------------------------------------------------------------------------------------


def _high_word(a: Value) -> Value:
    """Clear the low 32 bits and flush subnormal numbers to zeros of their sign."""
    value = (a.bits & _HIGH_WORD).read_as("f64")
    return where((value.bits & 0x7FF << 52).equals(0), signed_zero(value), value)


def _only_high_word(result: Value) -> Value:
    """Round to the 20 fraction bits of the high word, flush subnormal numbers, and replace NaNs by the one pattern."""
    # Rounding an infinity would turn it into a NaN.
    infinite = abs(result).equals(result.real(float("inf")))
    rounded = where(infinite, result.bits, result.bits + 0x80000000)
    nan = result.bits.like(0x7FFFFFFF << 32).read_as("f64")
    return where(is_nan(result), nan, _high_word(rounded.read_as("f64")))


def rcp_high(a: Value) -> Value:
    """``rcp.approx.ftz.f64``: return a coarse reciprocal with 20 fraction bits, from the operand's high word.

    The low 32 bits of the operand are ignored, and the low 32 bits of the result are zero. PTX has no form without
    ``ftz``.
    """
    return _only_high_word(a.real(1) / _high_word(a))


def rsqrt_high(a: Value) -> Value:
    """``rsqrt.approx.ftz.f64``: return the reciprocal of the square root; only high words are read and written."""
    return _only_high_word(a.real(1) / root(_high_word(a)))


def rsqrt_double(a: Value) -> Value:
    """``rsqrt.approx.f64``: return the reciprocal of the square root; a device computes it in software."""
    return finish(a.real(1) / root(a), a)
