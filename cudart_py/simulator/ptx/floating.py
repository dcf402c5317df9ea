"""Single-precision arithmetic of PTX, and what float32 and float64 share: comparisons, extremes, signs, classes.

A function is named after its opcode with the rounding in the name (``fma_rn_f32``) and ``ftz`` and ``sat`` as
keywords. Operands are float32 arrays over the lanes, or NumPy scalars; results are new arrays. Callers run under
``numpy.errstate(all="ignore")``. NaN results are those documented in ``exact``. Double-precision arithmetic
is in ``double``.

Subnormal results are flushed after rounding.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudart_py.simulator.ptx.exact import (
    LEAST_NORMAL_F32,
    canonical_f32,
    canonical_f64,
    flush_f32,
    narrow_f32,
    saturate,
    scratch,
    to_odd,
    two_sum,
)

Array = NDArray[Any]

_SIGN_F32 = np.uint32(0x80000000)
_SIGN_F64 = np.uint64(1 << 63)
_TIE = -(2**63)


def _finish(result: Array, ftz: bool, sat: bool) -> Array:
    """Apply what the modifiers say to a rounded float32 result."""
    if ftz:
        result = flush_f32(result)
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
        return _finish(np.add(a, b), ftz, sat)
    high, low = two_sum(a.astype(np.float64), b.astype(np.float64))
    result = narrow_f32(high, low, rounding)
    return _finish(_signed_zero(result, high == 0, np.signbit(a) | np.signbit(b), rounding), ftz, sat)


def sub_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Subtract with one rounding (``sub{.rnd}{.ftz}{.sat}.f32``)."""
    return add_f32(a, -b, rounding=rounding, ftz=ftz, sat=sat)


def mul_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Multiply with one rounding (``mul{.rnd}{.ftz}{.sat}.f32``)."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    if rounding == "rn":
        return _finish(np.multiply(a, b), ftz, sat)
    return _finish(narrow_f32(np.multiply(a, b, dtype=np.float64), None, rounding), ftz, sat)


def div_f32(a: Array, b: Array, *, rounding: str = "rn", ftz: bool = False) -> Array:
    """Divide with one rounding (``div.rnd{.ftz}.f32``)."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    if rounding == "rn":
        return _finish(np.divide(a, b), ftz, False)
    # A quotient of 24-bit numbers is never so near another one that rounding to 53 bits first would matter.
    return _finish(narrow_f32(np.divide(a, b, dtype=np.float64), None, rounding), ftz, False)


def rcp_f32(a: Array, *, rounding: str = "rn", ftz: bool = False) -> Array:
    """Give the reciprocal with one rounding (``rcp.rnd{.ftz}.f32``)."""
    return div_f32(np.ones((), np.float32), a, rounding=rounding, ftz=ftz)


def sqrt_f32(a: Array, *, rounding: str = "rn", ftz: bool = False) -> Array:
    """Give the square root with one rounding (``sqrt.rnd{.ftz}.f32``)."""
    if ftz:
        a = flush_f32(a)
    if rounding == "rn":
        return _finish(np.sqrt(a), ftz, False)
    # As for quotients, 53 bits of a root of a 24-bit number decide every rounding.
    return _finish(narrow_f32(np.sqrt(a, dtype=np.float64), None, rounding), ftz, False)


def fma_f32(a: Array, b: Array, c: Array, *, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Array:
    """Multiply and add with one rounding (``fma.rnd{.ftz}{.sat}.f32``)."""
    if ftz:
        a, b, c = flush_f32(a), flush_f32(b), flush_f32(c)
    if rounding == "rn":
        return _finish(_fma_nearest(a, b, c), ftz, sat)
    product = np.multiply(a, b, dtype=np.float64)
    high, low = two_sum(product, c.astype(np.float64))
    result = narrow_f32(high, low, rounding)
    return _finish(_signed_zero(result, high == 0, np.signbit(product) | np.signbit(c), rounding), ftz, sat)


def _fma_nearest(a: Array, b: Array, c: Array) -> Array:
    """Multiply and add through float64, whose product is exact, and mend what was rounded twice.

    The sum is rounded to 53 bits, then to 24. The second rounding errs only from a tie that the first one made,
    so ties of inexact sums are looked for, and the lanes that have one are done again.
    """
    shape = np.broadcast(a, b, c).shape
    product, total, bits = (scratch.take(f"fma_f32_{i}", shape) for i in range(3))
    np.multiply(a, b, out=product, dtype=np.float64)
    np.add(product, c, out=total)
    # A tie has a one and 28 zeros as the lowest 29 bits: shifted up, that is the least int64.
    shifted = bits.view(np.int64)
    np.left_shift(total.view(np.int64), 35, out=shifted)
    doubtful = shifted == _TIE if shifted.min(initial=0) == _TIE else None
    try:
        # Ties of subnormal results are elsewhere in the word; the conversion's underflow signal tells of those.
        with np.errstate(under="raise"):
            result: Array = total.astype(np.float32)
    except FloatingPointError:
        result = total.astype(np.float32)
        small = np.abs(total) < LEAST_NORMAL_F32
        doubtful = small if doubtful is None else doubtful | small
    if doubtful is None:
        return result
    # A sum is exact if and only if taking away either addend leaves the other.
    difference = bits
    np.subtract(total, product, out=difference)
    inexact = difference != c
    np.subtract(total, c, out=difference)
    inexact |= difference != product
    inexact &= doubtful
    if inexact.any():
        odd = to_odd(*two_sum(product[inexact], np.broadcast_to(c, shape)[inexact].astype(np.float64)))
        result[inexact] = odd.astype(np.float32)
    return result


add_rn_f32 = add_f32
add_rz_f32 = partial(add_f32, rounding="rz")
add_rm_f32 = partial(add_f32, rounding="rm")
add_rp_f32 = partial(add_f32, rounding="rp")
sub_rn_f32 = sub_f32
sub_rz_f32 = partial(sub_f32, rounding="rz")
sub_rm_f32 = partial(sub_f32, rounding="rm")
sub_rp_f32 = partial(sub_f32, rounding="rp")
mul_rn_f32 = mul_f32
mul_rz_f32 = partial(mul_f32, rounding="rz")
mul_rm_f32 = partial(mul_f32, rounding="rm")
mul_rp_f32 = partial(mul_f32, rounding="rp")
div_rn_f32 = div_f32
div_rz_f32 = partial(div_f32, rounding="rz")
div_rm_f32 = partial(div_f32, rounding="rm")
div_rp_f32 = partial(div_f32, rounding="rp")
rcp_rn_f32 = rcp_f32
rcp_rz_f32 = partial(rcp_f32, rounding="rz")
rcp_rm_f32 = partial(rcp_f32, rounding="rm")
rcp_rp_f32 = partial(rcp_f32, rounding="rp")
sqrt_rn_f32 = sqrt_f32
sqrt_rz_f32 = partial(sqrt_f32, rounding="rz")
sqrt_rm_f32 = partial(sqrt_f32, rounding="rm")
sqrt_rp_f32 = partial(sqrt_f32, rounding="rp")
fma_rn_f32 = fma_f32
fma_rz_f32 = partial(fma_f32, rounding="rz")
fma_rm_f32 = partial(fma_f32, rounding="rm")
fma_rp_f32 = partial(fma_f32, rounding="rp")

# `mad` of floating point is `fma` on every device since compute capability 2.0.
mad_rn_f32, mad_rz_f32, mad_rm_f32, mad_rp_f32 = fma_rn_f32, fma_rz_f32, fma_rm_f32, fma_rp_f32


# --- extremes -----------------------------------------------------------------------------------------------------


def _bits(a: Array) -> Array:
    return np.asarray(a).view(np.uint64 if a.dtype == np.float64 else np.uint32)


def _sign(a: Array) -> Array:
    return _bits(a) & (_SIGN_F64 if a.dtype == np.float64 else _SIGN_F32)


def _extreme(
    a: Array, b: Array, smaller: bool, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
) -> Array:
    """Give the smaller or larger operand; -0 is below +0, and a NaN loses unless ``nan`` asks that it win."""
    if ftz:
        a, b = flush_f32(a), flush_f32(b)
    signs = _sign(a) ^ _sign(b) if xorsign_abs else None
    if xorsign_abs:
        a, b = np.abs(a), np.abs(b)
    if smaller:
        result: Array = np.asarray((np.minimum if nan else np.fmin)(a, b))
    else:
        result = np.asarray((np.maximum if nan else np.fmax)(a, b))
    zeros = (result == 0) & (a == b)
    if zeros.any():
        # NumPy leaves open which zero it gives: the smaller has any operand's sign, the larger a common one.
        common = _bits(a) | _bits(b) if smaller else _bits(a) & _bits(b)
        result = np.where(zeros, common.view(result.dtype), result)
    if signs is not None:
        result = (_bits(result) | signs).view(result.dtype)
    return canonical_f32(result) if result.dtype == np.float32 else canonical_f64(result, a, b)


def min_f32(
    a: Array, b: Array, *, ftz: bool = False, nan: bool = False, xorsign: bool = False, abs: bool = False
) -> Array:
    """Give the smaller operand (``min{.ftz}{.NaN}{.xorsign.abs}.f32``).

    ``nan`` makes a NaN operand win; ``xorsign`` and ``abs`` together compare magnitudes and give the signs' product.
    """
    return _extreme(a, b, True, ftz, nan, xorsign and abs)


def max_f32(
    a: Array, b: Array, *, ftz: bool = False, nan: bool = False, xorsign: bool = False, abs: bool = False
) -> Array:
    """Give the larger operand; the flags are those of ``min_f32`` (``max{.ftz}{.NaN}{.xorsign.abs}.f32``)."""
    return _extreme(a, b, False, ftz, nan, xorsign and abs)


def min_f64(a: Array, b: Array) -> Array:
    """Give the smaller operand (``min.f64``)."""
    return _extreme(a, b, True)


def max_f64(a: Array, b: Array) -> Array:
    """Give the larger operand (``max.f64``)."""
    return _extreme(a, b, False)


# --- signs and classes --------------------------------------------------------------------------------------------


def abs_f32(a: Array, *, ftz: bool = False) -> Array:
    """Clear the sign (``abs{.ftz}.f32``)."""
    result: Array = np.abs(a)
    return flush_f32(result) if ftz else result


def neg_f32(a: Array, *, ftz: bool = False) -> Array:
    """Flip the sign (``neg{.ftz}.f32``)."""
    result: Array = np.negative(a)
    return flush_f32(result) if ftz else result


def abs_f64(a: Array) -> Array:
    """Clear the sign (``abs.f64``)."""
    result: Array = np.abs(a)
    return result


def neg_f64(a: Array) -> Array:
    """Flip the sign (``neg.f64``)."""
    result: Array = np.negative(a)
    return result


def copysign(a: Array, b: Array) -> Array:
    """Give the second operand's magnitude with the first one's sign (``copysign.f32``, ``copysign.f64``)."""
    result: Array = np.copysign(b, a)
    return result


def testp_finite(a: Array) -> Array:
    """Tell which are neither infinite nor NaN (``testp.finite``)."""
    return np.isfinite(a)


def testp_infinite(a: Array) -> Array:
    """Tell which are infinite (``testp.infinite``)."""
    return np.isinf(a)


def testp_number(a: Array) -> Array:
    """Tell which are not NaN (``testp.number``)."""
    return ~np.isnan(a)


def testp_notanumber(a: Array) -> Array:
    """Tell which are NaN (``testp.notanumber``)."""
    return np.isnan(a)


def testp_normal(a: Array) -> Array:
    """Tell which are finite, not zero and not subnormal (``testp.normal``)."""
    result: Array = np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).smallest_normal)
    return result


def testp_subnormal(a: Array) -> Array:
    """Tell which are subnormal; zero is not (``testp.subnormal``)."""
    result: Array = (np.abs(a) < np.finfo(a.dtype).smallest_normal) & (a != 0)
    return result


copysign_f32 = copysign_f64 = copysign
testp_finite_f32 = testp_finite_f64 = testp_finite
testp_infinite_f32 = testp_infinite_f64 = testp_infinite
testp_number_f32 = testp_number_f64 = testp_number
testp_notanumber_f32 = testp_notanumber_f64 = testp_notanumber
testp_normal_f32 = testp_normal_f64 = testp_normal
testp_subnormal_f32 = testp_subnormal_f64 = testp_subnormal
