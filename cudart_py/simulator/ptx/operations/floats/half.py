"""Half-precision arithmetic of PTX: f16 and bf16 patterns (uint16), and pairs of them (uint32).

Every operation rounds its exact result once. Modifiers are keywords: ``ftz`` (f16 only: subnormal operands and
results become zeros), ``sat`` (clamp to [0, 1], NaN to +0), ``relu`` (negative results become +0, a NaN stays),
``nan`` (a NaN operand of min or max wins). A NaN result is 0x7fff. A pair's operation is that of its halves.

Recorded outputs of an H200 settle when ``ftz`` flushes a product: when it is below the least normal number after
a rounding to 11 bits that knows no least exponent. 0x0400 * 0x3bff gives zero, 0x0401 * 0x3bfe does not. ``fma`` is
taken to do the same; no recording tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.floats import two_sum
from .exact import NAN_F16
from .formats import (
    narrow,
    narrow_bf16_f32,
    narrow_f16,
    rectify,
    widen,
)

Array = NDArray[Any]

_SIGN = np.uint16(0x8000)
_LEAST_NORMAL = {"f16": np.uint16(0x0400), "bf16": np.uint16(0x0080)}
# One, a power of two, and the least normal number times it, as f16 has them.
_ONE = np.uint16(0x3C00)
_UP = 2.0**24
_LEAST_NORMAL_UP = np.uint16(0x6400)
_INFINITY = {"f16": np.uint16(0x7C00), "bf16": np.uint16(0x7F80)}


def _single(a: Array, kind: str, ftz: bool) -> Array:
    return widen(_flush(a, kind) if ftz else a, kind)


def _wide(a: Array, kind: str, ftz: bool) -> Array:
    return _single(a, kind, ftz).astype(np.float64)


def _flush(a: Array, kind: str) -> Array:
    return np.where(a & ~_SIGN < _LEAST_NORMAL[kind], a & _SIGN, a)


def _flush_rounded(result: Array, exact: Array) -> Array:
    """Flush results of f16 whose exact values are subnormal once rounded with no least exponent."""
    # Times 2**24 every such result is a normal number; what overflows is not small either.
    scaled = narrow(exact * exact.dtype.type(_UP), None, "f16") & ~_SIGN
    return np.where(scaled < _LEAST_NORMAL_UP, result & _SIGN, result)


def _narrow(a: Array, kind: str) -> Array:
    return narrow_f16(a) if kind == "f16" else narrow_bf16_f32(a)


def _finish(result: Array, kind: str, *, ftz: bool = False, sat: bool = False, relu: bool = False) -> Array:
    if ftz:
        result = _flush(result, kind)
    if sat:
        # Patterns grow with the number; those above infinity's are NaNs and negatives, which become zero.
        result = np.where(result > _INFINITY[kind], np.uint16(0), np.minimum(result, _ONE))
    return rectify(result, kind) if relu else result


def add(kind: str, a: Array, b: Array, *, ftz: bool = False, sat: bool = False) -> Array:
    """Add (``add{.rnd}{.ftz}{.sat}.f16``, ``add{.rnd}.bf16``)."""
    # A sum rounded to the 24 bits of float32 first rounds to 11 or 8 bits as the exact one does.
    total = _single(a, kind, ftz) + _single(b, kind, ftz)
    return _finish(_narrow(total, kind), kind, ftz=ftz, sat=sat)


def sub(kind: str, a: Array, b: Array, *, ftz: bool = False, sat: bool = False) -> Array:
    """Subtract (``sub``)."""
    return add(kind, a, b ^ _SIGN, ftz=ftz, sat=sat)


def mul(kind: str, a: Array, b: Array, *, ftz: bool = False, sat: bool = False) -> Array:
    """Multiply (``mul``)."""
    # The product is exact in float32, unless it rounds to 0 or to infinity anyway.
    product = _single(a, kind, ftz) * _single(b, kind, ftz)
    result = narrow(product, None, kind)
    if ftz:
        result = _flush_rounded(result, product)
    return _finish(result, kind, sat=sat)


def fma(kind: str, a: Array, b: Array, c: Array, *, ftz: bool = False, sat: bool = False, relu: bool = False) -> Array:
    """Multiply and add with one rounding (``fma.rn{.ftz}{.sat}{.relu}``)."""
    product, addend = _wide(a, kind, ftz) * _wide(b, kind, ftz), _wide(c, kind, ftz)
    # In the narrow range of f16 what float64 rounds off is too far below to make or hide a tie; not so in bf16's.
    high, low = (product + addend, None) if kind == "f16" else two_sum(product, addend)
    result = narrow(high, low, kind)
    if ftz:
        result = _flush_rounded(result, high)
    return _finish(result, kind, sat=sat, relu=relu)


def _extreme(smaller: bool, kind: str, a: Array, b: Array, ftz: bool, nan: bool, xorsign_abs: bool) -> Array:
    if ftz:
        a, b = _flush(a, kind), _flush(b, kind)
    signs = (a ^ b) & _SIGN
    if xorsign_abs:
        a, b = a & ~_SIGN, b & ~_SIGN
    a_nan, b_nan = a & ~_SIGN > _INFINITY[kind], b & ~_SIGN > _INFINITY[kind]
    # As sign and magnitude turned into two's complement, with -0 just below +0, patterns are ordered as numbers.
    first, second = (np.where(x & _SIGN, ~(x & ~_SIGN), x).astype(np.int16) for x in (a, b))
    result = np.where((first < second) == smaller, a, b)
    result = np.where(a_nan, b, np.where(b_nan, a, result))
    if xorsign_abs:
        result = result | signs
    is_nan = np.logical_or(a_nan, b_nan) if nan else np.logical_and(a_nan, b_nan)
    return np.where(is_nan, NAN_F16, result)


def minimum(kind: str, a: Array, b: Array, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False) -> Array:
    """Return the smaller operand (``min{.ftz}{.NaN}{.xorsign.abs}``)."""
    return _extreme(True, kind, a, b, ftz, nan, xorsign_abs)


def maximum(kind: str, a: Array, b: Array, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False) -> Array:
    """Return the larger operand (``max{.ftz}{.NaN}{.xorsign.abs}``)."""
    return _extreme(False, kind, a, b, ftz, nan, xorsign_abs)


def ex2(kind: str, a: Array, *, ftz: bool = False) -> Array:
    """Return two to the power, correctly rounded (``ex2.approx{.ftz}``).

    The manual allows a relative error of 2**-9.9 for f16 and 2**-7 for bf16.
    """
    return _finish(narrow(np.exp2(_wide(a, kind, ftz)), None, kind), kind, ftz=ftz)


def tanh(kind: str, a: Array) -> Array:
    """Return the hyperbolic tangent, correctly rounded (``tanh.approx``).

    The manual allows an absolute error of 2**-10.987 for f16 and 2**-8 for bf16.
    """
    return narrow(np.tanh(_wide(a, kind, False)), None, kind)


def halves(a: Array) -> tuple[Array, Array]:
    """Cut pairs (uint32) into their lower and upper halves (uint16)."""
    return a.astype(np.uint16), (a >> 16).astype(np.uint16)


def pair(lower: Array, upper: Array) -> Array:
    """Join lower and upper halves (uint16) into pairs (uint32)."""
    return np.left_shift(upper, 16, dtype=np.uint32) | lower


def paired(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return the operation on pairs that does a function of halves on both."""

    def on_pairs(*operands: Array, **modifiers: Any) -> Array:
        lower, upper = zip(*(halves(operand) for operand in operands), strict=True)
        return pair(function(*lower, **modifiers), function(*upper, **modifiers))

    return on_pairs
