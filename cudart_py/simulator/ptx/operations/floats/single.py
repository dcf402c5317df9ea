"""Single-precision arithmetic of PTX, and what float32 and float64 share: extremes and signs.

A function is named after its opcode and its type; ``rounding``, ``ftz`` and ``sat`` are keywords. Operands are
float32 arrays over the lanes, or NumPy scalars; results are new arrays. Callers run under
``numpy.errstate(all="ignore")``. NaN results are those documented in ``exact``. Double-precision arithmetic
is in ``double``.

``ftz`` flushes subnormal operands, and results that are below the least normal number once rounded to 24 bits with
no least exponent (see ``exact.flush_rounded_f32``). Recorded outputs of an H200 agree bit for bit with all of
this module, in every rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exact import (
    LEAST_NORMAL_F32,
    canonical_f32,
    canonical_f64,
    flush_f32,
    flush_rounded_f32,
    has_tiny_f32,
    multiply_add_by_power,
    narrow_f32,
    saturate,
    scratch,
    to_odd,
    two_sum,
)

Array = NDArray[Any]

_TIE = -(2**63)


def _finish(result: Array, sat: bool) -> Array:
    """Saturate a float32 result, or give its NaNs the hardware's pattern."""
    return saturate(result) if sat else canonical_f32(np.asarray(result))


def _signed_zero(result: Array, exact_zero: Array, negative: Array, rounding: str) -> Array:
    """Make the exact zeros of a sum negative in ``rm`` where any addend was; elsewhere NumPy's sign is right."""
    return np.where(exact_zero & negative, np.float32(-0.0), result) if rounding == "rm" else result


# --- arithmetic ---------------------------------------------------------------------------------------------------


def add_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Add with one rounding (``add{.rnd}{.ftz}{.sat}.f32``)."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    if rounding == "rn":
        result = np.add(a, b)
    else:
        high, low = two_sum(a.astype(np.float64), b.astype(np.float64))
        result = _signed_zero(narrow_f32(high, low, rounding), high == 0, np.signbit(a) | np.signbit(b), rounding)
    # A subnormal sum is exact.
    return _finish(flush_f32(result) if ftz else result, sat)


def sub_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Subtract with one rounding (``sub{.rnd}{.ftz}{.sat}.f32``)."""
    if rounding == "rn" and not ftz:
        return _finish(np.subtract(a, b), sat)
    return add_f32(a, -b, rounding=rounding, ftz=ftz, sat=sat)


def mul_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Multiply with one rounding (``mul{.rnd}{.ftz}{.sat}.f32``)."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    if rounding == "rn":
        result = np.multiply(a, b)
        if ftz and has_tiny_f32(result):
            result = flush_rounded_f32(result, np.multiply(a, b, dtype=np.float64), None, rounding)
        return _finish(result, sat)
    return _finish(_rounded(np.multiply(a, b, dtype=np.float64), None, rounding, ftz), sat)


def _rounded(high: Array, low: Array | None, rounding: str, ftz: bool) -> Array:
    """Round float64 numbers or pairs to float32, and flush."""
    result = narrow_f32(high, low, rounding)
    return flush_rounded_f32(result, high, low, rounding) if ftz else result


def div_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False) -> Array:
    """Divide with one rounding (``div.rnd{.ftz}.f32``)."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    if rounding == "rn" and not ftz:
        return canonical_f32(np.asarray(np.divide(a, b)))
    # A quotient of 24-bit numbers is never so near another one that rounding to 53 bits first would matter.
    return canonical_f32(np.asarray(_rounded(np.divide(a, b, dtype=np.float64), None, rounding, ftz)))


def rcp_f32(a: Array, *, rounding: str = "rn", ftz: bool = False) -> Array:
    """Return the reciprocal with one rounding (``rcp.rnd{.ftz}.f32``)."""
    return div_f32(np.ones((), np.float32), a, rounding=rounding, ftz=ftz)


def sqrt_f32(a: Array, *, rounding: str = "rn", ftz: bool = False) -> Array:
    """Return the square root with one rounding (``sqrt.rnd{.ftz}.f32``)."""
    if ftz:
        a = flush_f32(a)
    # The root of a number that is not subnormal is not subnormal.
    if rounding == "rn":
        return canonical_f32(np.asarray(np.sqrt(a)))
    # As for quotients, 53 bits of a root of a 24-bit number decide every rounding.
    return canonical_f32(np.asarray(narrow_f32(np.sqrt(a, dtype=np.float64), None, rounding)))


def fma_f32(a: Array, b: Array, c: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Multiply and add with one rounding (``fma.rnd{.ftz}{.sat}.f32``)."""
    if ftz:
        a, b, c = flush_f32(a), flush_f32(b), flush_f32(c)
    if rounding == "rn":
        result = _fma_nearest(a, b, c)
        if ftz and has_tiny_f32(result):
            result = flush_rounded_f32(result, *_fma_pair(a, b, c), rounding)
        return _finish(result, sat)
    product = np.multiply(a, b, dtype=np.float64)
    high, low = two_sum(product, c.astype(np.float64))
    result = _rounded(high, low, rounding, ftz)
    return _finish(_signed_zero(result, high == 0, np.signbit(product) | np.signbit(c), rounding), sat)


def _fma_pair(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Multiply and add exactly: the sum rounded to float64, and the rest."""
    return two_sum(np.multiply(a, b, dtype=np.float64), c.astype(np.float64))


def _wide(a: Array, slot: str, shape: tuple[int, ...]) -> Array:
    """Return float32 numbers as float64, in a work array; a scalar as itself."""
    if a.ndim == 0:
        return a.astype(np.float64)
    # Converting first and calculating then is twice as fast as letting one call do both.
    wide = scratch.take(slot, shape)
    np.copyto(wide, a)
    return wide


def _product(a: Array, b: Array, shape: tuple[int, ...]) -> Array:
    """Multiply exactly, into the first work array; the second is used up."""
    product = scratch.take("fma_f32_0", shape)
    return np.multiply(_wide(a, "fma_f32_0", shape), _wide(b, "fma_f32_1", shape), out=product)


def _fma_nearest(a: Array, b: Array, c: Array) -> Array:
    """Multiply and add through float64, whose product is exact, and mend what was rounded twice.

    The sum is rounded to 53 bits, then to 24. The second rounding errs only from a tie that the first one made,
    so ties are looked for, and the lanes that have one are done again unless their sum is exact.
    """
    simple = multiply_add_by_power(a, b, c)
    if simple is not None:
        return simple
    shape = np.broadcast(a, b, c).shape
    total = _product(a, b, shape)
    np.add(total, _wide(c, "fma_f32_1", shape), out=total)
    doubtful: Array | None = None
    try:
        # Ties of subnormal results are anywhere in the word; the conversion's underflow signal tells of those.
        with np.errstate(under="raise"):
            result: Array = total.astype(np.float32)
    except FloatingPointError:
        result = total.astype(np.float32)
        doubtful = np.abs(total) < LEAST_NORMAL_F32
    # A tie has a one and 28 zeros as the lowest 29 bits: shifted up, that is the least int64.
    shifted = total.view(np.int64)
    np.left_shift(shifted, 35, out=shifted)
    if np.minimum.reduce(shifted, axis=None, initial=0) == _TIE:
        doubtful = shifted == _TIE if doubtful is None else doubtful | (shifted == _TIE)
    if doubtful is not None:
        _mend(result, doubtful, a, b, c)
    return result


def _mend(result: Array, doubtful: Array, a: Array, b: Array, c: Array) -> None:
    """Round once more, from the exact sum, the doubtful lanes of a multiply-add whose sum in float64 is not exact."""
    lanes = np.nonzero(doubtful)
    a, b, c = (x if x.ndim == 0 else np.broadcast_to(x, result.shape)[lanes] for x in (a, b, c))
    total, rest = _fma_pair(a, b, c)
    inexact = rest != 0
    if inexact.any():
        result[lanes] = np.where(inexact, to_odd(total, rest), total).astype(np.float32)


# --- extremes -----------------------------------------------------------------------------------------------------


def _bits(a: Array) -> Array:
    return np.asarray(a).view(np.uint64 if a.dtype == np.float64 else np.uint32)


def _extreme(
    a: Array, b: Array, smaller: bool, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
) -> Array:
    """Return the smaller or larger operand; -0 is below +0, and a NaN loses unless ``nan`` asks that it win."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    negative = np.signbit(a) != np.signbit(b)
    if xorsign_abs:
        a, b = np.abs(a), np.abs(b)
    # NumPy's vectorised loops are for two arrays only.
    shape = np.broadcast(a, b).shape
    a, b = (x if x.ndim else np.full(shape, x) for x in (a, b))
    result: Array = np.asarray((np.minimum if smaller else np.maximum)(a, b))
    if not nan:
        # For a signalling NaN fmin and fmax give a NaN or the other operand, as an element's place in the array has it.
        missing = np.isnan(result)
        if missing.any():
            result = np.where(missing, np.where(np.isnan(a), b, a), result)
    zeros = result == 0
    if zeros.any():
        zeros &= a == b
        if zeros.any():
            # NumPy leaves open which zero it gives: the smaller has any operand's sign, the larger a common one.
            common = _bits(a) | _bits(b) if smaller else _bits(a) & _bits(b)
            result = np.where(zeros, common.view(result.dtype), result)
    if xorsign_abs:
        result = np.where(negative, -result, result)
    return canonical_f32(result) if result.dtype == np.float32 else canonical_f64(result, a, b)


def min_f32(a: Array, b: Array, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False) -> Array:
    """Return the smaller operand (``min{.ftz}{.NaN}{.xorsign.abs}.f32``).

    ``nan`` makes a NaN operand win; ``xorsign_abs`` compares magnitudes and gives the signs' product.
    """
    return _extreme(a, b, True, ftz, nan, xorsign_abs)


def max_f32(a: Array, b: Array, *, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False) -> Array:
    """Return the larger operand; the flags are those of ``min_f32`` (``max{.ftz}{.NaN}{.xorsign.abs}.f32``)."""
    return _extreme(a, b, False, ftz, nan, xorsign_abs)


def min_f64(a: Array, b: Array) -> Array:
    """Return the smaller operand (``min.f64``)."""
    return _extreme(a, b, True)


def max_f64(a: Array, b: Array) -> Array:
    """Return the larger operand (``max.f64``)."""
    return _extreme(a, b, False)


def copysign(a: Array, b: Array) -> Array:
    """Return the second operand's magnitude with the first one's sign (``copysign.f32``, ``copysign.f64``)."""
    result: Array = np.copysign(b, a)
    return result
