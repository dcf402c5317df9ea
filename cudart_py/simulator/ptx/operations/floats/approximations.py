"""The approximate functions of PTX (``.approx``, ``.full``): computed in float64 and rounded once.

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

Results for infinities, zeros and NaN are those of the manual's tables. Without ``ftz``, subnormal operands and
results are kept. The conventions are those of ``floating``. Recorded outputs of an H200 lie within twice these bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exact import canonical_f32, canonical_f64, flush_f32

Array = NDArray[Any]

_HIGH_WORD = np.uint64(0xFFFFFFFF00000000)
_HALF_LOW_WORD = np.uint64(0x80000000)
_NAN_HIGH_WORD = np.uint64(0x7FFFFFFF00000000).view(np.float64)
_LEAST_NORMAL_F64 = 2.0**-1022


def _round(result: Array, ftz: bool) -> Array:
    narrow = np.asarray(result).astype(np.float32)
    return canonical_f32(np.asarray(flush_f32(narrow) if ftz else narrow))


def _wide(a: Array, ftz: bool) -> Array:
    return np.asarray(flush_f32(a) if ftz else a).astype(np.float64)


def sin_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return the sine of an angle in radians; of infinity, NaN (``sin.approx``, ``__sinf``)."""
    return _round(np.sin(_wide(a, ftz)), ftz)


def cos_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return the cosine of an angle in radians; of infinity, NaN (``cos.approx``, ``__cosf``)."""
    return _round(np.cos(_wide(a, ftz)), ftz)


def ex2_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return two to the power (``ex2.approx``, within ``__expf``)."""
    return _round(np.exp2(_wide(a, ftz)), ftz)


def lg2_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return the logarithm to base two; of a zero -infinity, of a negative number NaN (``lg2.approx``, ``__log2f``)."""
    return _round(np.log2(_wide(a, ftz)), ftz)


def tanh_approx_f32(a: Array) -> Array:
    """Return the hyperbolic tangent (``tanh.approx``)."""
    return _round(np.tanh(_wide(a, False)), False)


def rcp_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return the reciprocal; of a zero, the infinity of its sign (``rcp.approx``)."""
    return _round(np.float64(1) / _wide(a, ftz), ftz)


def sqrt_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return the square root; of a negative number NaN, of -0 itself (``sqrt.approx``)."""
    return _round(np.sqrt(_wide(a, ftz)), ftz)


def rsqrt_approx_f32(a: Array, *, ftz: bool = False) -> Array:
    """Return the reciprocal of the square root; of a zero, the infinity of its sign (``rsqrt.approx``)."""
    return _round(np.float64(1) / np.sqrt(_wide(a, ftz)), ftz)


def div_approx_f32(a: Array, b: Array, *, ftz: bool = False) -> Array:
    """Divide by way of the reciprocal (``div.approx``, ``__fdividef``).

    For divisors above 2**126 the reciprocal is lost: the result is zero, or NaN for an infinite dividend.
    """
    wide_a, wide_b = _wide(a, ftz), _wide(b, ftz)
    size = np.abs(wide_b)
    lost = (size > 2.0**126) & (size < np.inf)
    result = wide_a / wide_b
    zero = np.copysign(0.0, result) * np.where(np.isinf(wide_a), np.nan, 1.0)
    return _round(np.where(lost, zero, result), ftz)


def div_full_f32(a: Array, b: Array, *, ftz: bool = False) -> Array:
    """Divide over the full range of operands (``div.full``, division with ``-prec-div=false``)."""
    return _round(_wide(a, ftz) / _wide(b, ftz), ftz)


# --- double precision ---------------------------------------------------------------------------------------------


def _high_word(a: Array) -> Array:
    """Clear the low 32 bits and flush subnormal numbers to zeros of their sign."""
    value = (np.asarray(a).view(np.uint64) & _HIGH_WORD).view(np.float64)
    return np.where(np.abs(value) < _LEAST_NORMAL_F64, np.copysign(0.0, value), value)


def _only_high_word(result: Array) -> Array:
    """Round to the 20 fraction bits of the high word, flush subnormal numbers, and give NaN its one pattern."""
    bits = np.asarray(result).view(np.uint64)
    # Rounding an infinity would turn it into a NaN.
    rounded = np.where(np.isinf(result), bits, bits + _HALF_LOW_WORD) & _HIGH_WORD
    return np.where(np.isnan(result), _NAN_HIGH_WORD, _high_word(rounded.view(np.float64)))


def rcp_approx_f64(a: Array, *, ftz: bool = True) -> Array:
    """Return a coarse reciprocal: 20 fraction bits of the operand's high word only (``rcp.approx.ftz.f64``).

    The low 32 bits of the operand are ignored, those of the result zero. PTX has no form without ``ftz``.
    """
    assert ftz
    return _only_high_word(1.0 / _high_word(a))


def rsqrt_approx_f64(a: Array, *, ftz: bool = False) -> Array:
    """Return the reciprocal of the square root (``rsqrt.approx{.ftz}.f64``).

    With ``ftz`` it is coarse, of and in the high word only; without it a function in software on the device.
    """
    if ftz:
        return _only_high_word(1.0 / np.sqrt(_high_word(a)))
    return canonical_f64(np.asarray(1.0 / np.sqrt(a)), a)
