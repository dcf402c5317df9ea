"""The narrow floating-point formats of PTX as bit patterns: widening to float32 and rounding from wider numbers.

f16 and bf16 are uint16 patterns, tf32 is a float32 pattern whose low 13 bits are zero, fp8 values are bytes.
Rounding takes float64 numbers, or pairs as ``exact`` describes them, and rounds once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.floats import NAN_F32, has_nan, to_odd
from .exact import NAN_BF16, NAN_F16, direct

Array = NDArray[Any]

_SIGN_16 = np.uint16(0x8000)
_INFINITY = {"f16": np.uint16(0x7C00), "bf16": np.uint16(0x7F80)}
# of the formats with eight bits: exponent of the least normal number, bits of the fraction, greatest finite number
_FP8 = {"e4m3": (-6, 3, 448.0), "e5m2": (-14, 2, 57344.0)}
_F16_SCALE = np.float32(2.0**112)
# The pattern of f16's infinity, shifted to where float32 has its fraction.
_F16_SPECIAL = np.uint32(0x7C00 << 13)
_LEAST_NORMAL_F16 = np.float32(2.0**-14).view(np.uint32)
_NAN_FP8 = np.uint8(0x7F)


# --- widening -----------------------------------------------------------------------------------------------------


def widen_f16(a: Array) -> Array:
    """Return f16 patterns as float32, exactly; a NaN becomes the hardware's."""
    # Exponent and fraction, put where float32 has its own, stand for the number divided by 2**112.
    wide = np.asarray(a).astype(np.uint32)
    size = (wide & np.uint32(0x7FFF)) << np.uint32(13)
    result: Array = np.asarray(size.view(np.float32) * _F16_SCALE)
    bits = result.view(np.uint32)
    bits |= (wide & np.uint32(0x8000)) << np.uint32(16)
    special = size >= _F16_SPECIAL
    if special.any():
        np.copyto(bits, bits | np.uint32(0x7F800000), where=special)
        np.copyto(result, NAN_F32, where=size > _F16_SPECIAL)
    return result


def widen_bf16(a: Array) -> Array:
    """Return bf16 patterns as float32, exactly; the pattern of a NaN is kept."""
    return np.left_shift(a, 16, dtype=np.uint32).view(np.float32)


def widen(a: Array, kind: str) -> Array:
    """Return ``f16`` or ``bf16`` patterns as float32."""
    return widen_f16(a) if kind == "f16" else widen_bf16(a)


@lru_cache
def _table_fp8(kind: str) -> Array:
    """Tabulate the 256 values of an eight-bit format as float32."""
    least, fraction_bits, greatest = _FP8[kind]
    codes = np.arange(128)
    fraction = codes & ((1 << fraction_bits) - 1)
    exponent = codes >> fraction_bits
    significand = fraction + np.where(exponent > 0, 1 << fraction_bits, 0)
    values = np.ldexp(significand.astype(np.float32), np.maximum(exponent, 1) - 1 + least - fraction_bits)
    if kind == "e5m2":
        values[codes == 0x7C] = np.inf
        values[codes > 0x7C] = NAN_F32
    values[(values > greatest) & np.isfinite(values)] = NAN_F32
    both = np.concatenate([values, -values])
    both[np.isnan(both)] = NAN_F32
    return both


def widen_fp8(a: Array, kind: str) -> Array:
    """Return ``e4m3`` or ``e5m2`` bytes as float32."""
    result: Array = _table_fp8(kind)[a]
    return result


# --- rounding -----------------------------------------------------------------------------------------------------


def _nearest_f16(a: Array) -> Array:
    """Round float32 to f16 patterns, to nearest even, by arithmetic on its patterns."""
    pattern = a.view(np.uint32)
    size = pattern & np.uint32(0x7FFFFFFF)
    odd = (size >> np.uint32(13)) & np.uint32(1)
    # The exponent's bias is 112 less; a carry out of the fraction goes into it, at the top into infinity.
    rounded = np.asarray(((size + np.uint32(0xFFF) + odd) >> np.uint32(13)) - np.uint32(112 << 10))
    subnormal = size < _LEAST_NORMAL_F16
    if subnormal.any():
        # One half has the last bit of f16's subnormal numbers as its own: the addition rounds there.
        shifted = np.asarray(size.view(np.float32) + np.float32(0.5)).view(np.uint32) - np.uint32(0x3F000000)
        np.copyto(rounded, shifted, where=subnormal)
    np.minimum(rounded, np.uint32(0x7C00), out=rounded)
    rounded |= (pattern >> np.uint32(16)) & np.uint32(0x8000)
    if has_nan(a):
        np.copyto(rounded, np.uint32(NAN_F16), where=np.isnan(a))
    return rounded.astype(np.uint16)


def narrow_f16(high: Array, low: Array | None = None, rounding: str = "rn") -> Array:
    """Round to f16 patterns (``rn``, ``rz``, ``rm``, ``rp``); a NaN becomes 0x7fff."""
    if rounding == "rn" and low is None and high.dtype == np.float32:
        return _nearest_f16(high)
    if rounding == "rn":
        nearest: Array = np.asarray(high if low is None else to_odd(high, low)).astype(np.float16)
    else:
        nearest = np.asarray(high).astype(np.float16)
        rest: Array = high - nearest.astype(np.float64)
        nearest = direct(nearest, rest if low is None else np.where(rest == 0, low, rest), rounding)
    return np.where(np.isnan(nearest), NAN_F16, nearest.view(np.uint16))


def odd_f32(high: Array, low: Array | None = None) -> Array:
    """Round to float32, toward zero, with the last bit set where anything was cut off."""
    nearest = np.asarray(high).astype(np.float32)
    rest: Array = high - nearest
    if low is not None:
        rest = np.where(rest == 0, low, rest)
    cut = direct(nearest, rest, "rz")
    return (cut.view(np.uint32) | (np.abs(rest) > 0)).view(np.float32)


def round_bits(a: Array, dropped: int, rounding: str) -> Array:
    """Round float32 patterns (uint32) so that the low ``dropped`` bits are zero; NaNs must be treated by the caller."""
    mask = np.uint32((1 << dropped) - 1)
    half = np.uint32(1 << (dropped - 1))
    bump: Array
    match rounding:
        case "rn":
            bump = half - np.uint32(1) + ((a >> dropped) & np.uint32(1))
        case "rna":
            bump = np.full_like(a, half)
        case "rz":
            return a & ~mask
        case _:
            away = (a >> 31 == 1) == (rounding == "rm")
            bump = np.where(away, mask, np.uint32(0))
    return (a + bump) & ~mask


def narrow_bf16_f32(a: Array, rounding: str = "rn") -> Array:
    """Round float32 to bf16 patterns; a NaN becomes 0x7fff."""
    a = np.asarray(a)
    rounded = (round_bits(a.view(np.uint32), 16, rounding) >> 16).astype(np.uint16)
    return np.where(np.isnan(a), NAN_BF16, rounded)


def narrow(high: Array, low: Array | None, kind: str, rounding: str = "rn") -> Array:
    """Round float32 or float64 numbers, or pairs, to ``f16`` or ``bf16`` patterns."""
    if kind == "f16":
        return narrow_f16(high, low, rounding)
    if high.dtype == np.float32 and low is None:
        return narrow_bf16_f32(high, rounding)
    return narrow_bf16_f32(odd_f32(high, low), rounding)


def narrow_tf32(a: Array, rounding: str = "rna") -> Array:
    """Round float32 to the 10 fraction bits of tf32, as float32 patterns (uint32); a NaN becomes the hardware's."""
    a = np.asarray(a)
    return np.where(np.isnan(a), NAN_F32.view(np.uint32), round_bits(a.view(np.uint32), 13, rounding))


def narrow_fp8(a: Array, kind: str) -> Array:
    """Round float32 to ``e4m3`` or ``e5m2`` bytes, to nearest even, with too great numbers as the greatest finite."""
    least, fraction_bits, greatest = _FP8[kind]
    size = np.abs(a).astype(np.float64)
    _, exponent = np.frexp(size)
    unit = np.ldexp(1.0, np.maximum(exponent - 1, least) - fraction_bits)
    value = np.minimum(np.rint(size / unit) * unit, greatest)
    # Rounding may have reached the next power of two, so the exponent is asked again.
    _, exponent = np.frexp(value)
    exponent = np.where(value == 0, least, np.maximum(exponent - 1, least))
    units = np.ldexp(value, fraction_bits - exponent)
    number = np.isfinite(value)
    # The significand's hidden bit adds one to the exponent field of normal numbers, and nothing to subnormal ones.
    code = (exponent - least) * (1 << fraction_bits) + np.where(number, units, 0).astype(np.int64)
    code = np.where(np.signbit(a), code | 0x80, code)
    return np.where(np.isnan(a), _NAN_FP8, code.astype(np.uint8))


def rectify(pattern: Array, kind: str) -> Array:
    """Replace negative numbers by +0 (``.relu``), keeping NaN."""
    negative = (pattern & _SIGN_16 != 0) & (pattern & ~_SIGN_16 <= _INFINITY[kind])
    return np.where(negative, np.uint16(0), pattern)


def limit(pattern: Array, kind: str) -> Array:
    """Replace infinities by the greatest finite numbers (``.satfinite``)."""
    infinite = pattern & ~_SIGN_16 == _INFINITY[kind]
    # The pattern before an infinity's is the greatest finite number's.
    return np.where(infinite, pattern - np.uint16(1), pattern)
