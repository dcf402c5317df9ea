"""Integer arithmetic of PTX over arrays of lanes.

A function serves all integer types of its opcode; ``sat``, ``relu`` and ``add`` are keywords. Operands are arrays
over the lanes, or NumPy scalars, already viewed as the operand's type (``u``/``b`` as unsigned, ``s`` as signed
NumPy integers), and the result is a new array of the result's type. Callers run under
``numpy.errstate(all="ignore")``, because wrapping and division by zero give values here and are no errors.

Plain wrapping operations are NumPy's own ufuncs and have no function here: ``add``, ``sub``, ``mul.lo``, ``and``,
``or``, ``xor``, ``not``, ``neg``, ``abs``, ``min`` and ``max``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_UNSIGNED: dict[np.dtype[Any], type[np.unsignedinteger[Any]]] = {
    np.dtype(np.int8): np.uint8, np.dtype(np.int16): np.uint16,
    np.dtype(np.int32): np.uint32, np.dtype(np.int64): np.uint64,
    np.dtype(np.uint8): np.uint8, np.dtype(np.uint16): np.uint16,
    np.dtype(np.uint32): np.uint32, np.dtype(np.uint64): np.uint64,
}  # fmt: skip  # rows of a table
_WIDER: dict[np.dtype[Any], type[np.integer[Any]]] = {
    np.dtype(np.uint8): np.uint16, np.dtype(np.uint16): np.uint32, np.dtype(np.uint32): np.uint64,
    np.dtype(np.int8): np.int16, np.dtype(np.int16): np.int32, np.dtype(np.int32): np.int64,
}  # fmt: skip  # rows of a table


def _bits(a: Array) -> int:
    """Return the width of one element in bits."""
    return a.dtype.itemsize * 8


def _clip_s32(wide: Array) -> Array:
    """Saturate 64-bit values to the range of s32."""
    return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)


# --- products ---------------------------------------------------------------------------------------------------


def mul_wide(a: Array, b: Array) -> Array:
    """Multiply into a type of twice the width (``mul.wide``, 16 and 32 bits)."""
    return np.multiply(a, b, dtype=_WIDER[a.dtype])


def mul_hi(a: Array, b: Array) -> Array:
    """Return the upper half of the full product (``mul.hi``, ``__umul64hi``, ``__mul64hi``)."""
    if a.dtype.itemsize == 8:
        return _mul_hi_u64(a, b) if a.dtype.kind == "u" else _mul_hi_s64(a, b)
    wide = mul_wide(a, b)
    wide >>= _bits(a)
    return wide.astype(a.dtype)


def _mul_hi_u64(a: Array, b: Array) -> Array:
    low = np.uint64(0xFFFFFFFF)
    a_low, a_high = a & low, a >> 32
    b_low, b_high = b & low, b >> 32
    middle = a_high * b_low + (a_low * b_low >> 32)
    other = a_low * b_high + (middle & low)
    result: Array = a_high * b_high + (middle >> 32) + (other >> 32)
    return result


def _mul_hi_s64(a: Array, b: Array) -> Array:
    high = _mul_hi_u64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    # A negative operand read as unsigned is 2**64 too large.
    result: Array = high - (b & (a >> 63)) - (a & (b >> 63))
    return result


def mad_hi(a: Array, b: Array, c: Array, *, sat: bool = False) -> Array:
    """Add to the upper half of the product (``mad.hi``, ``mad.hi.sat.s32``)."""
    if sat:
        return _clip_s32((mul_wide(a, b) >> 32) + c)
    high = mul_hi(a, b)
    high += c
    return high


def _low_24(a: Array) -> Array:
    """Widen the low 24 bits to 64, with the sign of bit 23 for signed types."""
    wide = a.astype(_WIDER[a.dtype])
    return (wide << 40) >> 40


def mul24_lo(a: Array, b: Array) -> Array:
    """Return bits 0 to 31 of the 48-bit product of 24-bit operands (``mul24.lo``)."""
    return (_low_24(a) * _low_24(b)).astype(a.dtype)


def mul24_hi(a: Array, b: Array) -> Array:
    """Return bits 16 to 47 of the 48-bit product of 24-bit operands (``mul24.hi``)."""
    return (_low_24(a) * _low_24(b) >> 16).astype(a.dtype)


def mad24_lo(a: Array, b: Array, c: Array) -> Array:
    """Add to bits 0 to 31 of the product of 24-bit operands (``mad24.lo``)."""
    return mul24_lo(a, b) + c


def mad24_hi(a: Array, b: Array, c: Array, *, sat: bool = False) -> Array:
    """Add to bits 16 to 47 of the product of 24-bit operands (``mad24.hi``, ``mad24.hi.sat.s32``)."""
    if not sat:
        return mul24_hi(a, b) + c
    return _clip_s32((_low_24(a) * _low_24(b) >> 16) + c)


def sad(a: Array, b: Array, c: Array) -> Array:
    """Add the absolute difference of the first two operands to the third (``sad``)."""
    difference: Array = np.maximum(a, b) - np.minimum(a, b)
    return difference + c


# --- saturating sums and clamped extremes -------------------------------------------------------------------------


def add_s32(a: Array, b: Array, *, sat: bool) -> Array:
    """Add, saturating (``add.sat.s32``)."""
    assert sat
    return _clip_s32(np.add(a, b, dtype=np.int64))


def sub_s32(a: Array, b: Array, *, sat: bool) -> Array:
    """Subtract, saturating (``sub.sat.s32``)."""
    assert sat
    return _clip_s32(np.subtract(a, b, dtype=np.int64))


def min_s32(a: Array, b: Array, *, relu: bool = False) -> Array:
    """Return the smaller operand, not below zero with ``relu`` (``min{.relu}.s32``)."""
    smaller: Array = np.minimum(a, b)
    return np.maximum(smaller, 0) if relu else smaller


def max_s32(a: Array, b: Array, *, relu: bool = False) -> Array:
    """Return the larger operand, not below zero with ``relu`` (``max{.relu}.s32``)."""
    larger: Array = np.maximum(a, b)
    return np.maximum(larger, 0) if relu else larger


# --- division -----------------------------------------------------------------------------------------------------


def _quotient(a: Array, b: Array) -> Array:
    quotient: Array = np.floor_divide(a, b)
    if ((a | b) < 0).any():
        remainder = a - quotient * b
        # NumPy floors: the quotient is one too small where the remainder has not the dividend's sign.
        quotient = quotient + ((remainder != 0) & ((remainder ^ a) < 0))
    return quotient


def _ones_for_zero(result: Array, b: Array) -> Array:
    """Put all ones where the divisor is zero."""
    zero = np.equal(b, 0)
    return np.where(zero, ~np.zeros((), result.dtype), result) if zero.any() else result


def div(a: Array, b: Array) -> Array:
    """Divide, truncating toward zero (``div`` for integers).

    PTX leaves division by zero open; the machine code of NVIDIA's compiler gives all ones for 32 and 64 bits,
    so that is the result here for every width. The least integer divided by -1 wraps to itself.
    """
    return _ones_for_zero(_quotient(a, b), b)


def rem(a: Array, b: Array) -> Array:
    """Return the remainder with the dividend's sign (``rem``); of a division by zero, all ones."""
    return _ones_for_zero(a - _quotient(a, b) * b, b)


# --- shifts -------------------------------------------------------------------------------------------------------


def shl(a: Array, amount: Array) -> Array:
    """Shift left, clamping amounts (u32) above the width (``shl.b16/.b32/.b64``)."""
    unsigned = _UNSIGNED[a.dtype]
    count = np.minimum(amount, _bits(a)).astype(unsigned)
    # NumPy defines shifts by the width or more: zero here, copies of the sign in a signed right shift.
    return np.left_shift(a.view(unsigned), count).view(a.dtype)


def shr(a: Array, amount: Array) -> Array:
    """Shift right, with zeros or the sign by the type, clamping amounts (u32) above the width (``shr``)."""
    count = np.minimum(amount, _bits(a)).astype(a.dtype)
    result: Array = np.right_shift(a, count)
    return result


def _funnel(low: Array, high: Array) -> Array:
    joined: Array = np.left_shift(high, 32, dtype=np.uint64)
    joined |= low
    return joined


def _low_word(a: Array) -> Array:
    return a.astype(np.uint32)


def shf_l_wrap(low: Array, high: Array, amount: Array) -> Array:
    """Shift the pair left by the amount modulo 32 and give the upper word (``shf.l.wrap.b32``)."""
    shifted = _funnel(low, high) << (amount & np.uint32(31))
    return _low_word(shifted >> 32)


def shf_l_clamp(low: Array, high: Array, amount: Array) -> Array:
    """Shift the pair left by at most 32 and give the upper word (``shf.l.clamp.b32``)."""
    shifted = _funnel(low, high) << np.minimum(amount, np.uint32(32))
    return _low_word(shifted >> 32)


def shf_r_wrap(low: Array, high: Array, amount: Array) -> Array:
    """Shift the pair right by the amount modulo 32 and give the lower word (``shf.r.wrap.b32``)."""
    return _low_word(_funnel(low, high) >> (amount & np.uint32(31)))


def shf_r_clamp(low: Array, high: Array, amount: Array) -> Array:
    """Shift the pair right by at most 32 and give the lower word (``shf.r.clamp.b32``)."""
    return _low_word(_funnel(low, high) >> np.minimum(amount, np.uint32(32)))


# --- products of bytes and halves ---------------------------------------------------------------------------------


def _piece(a: Array, index: int, bits: int) -> Array:
    """Extract one byte or half as a 32-bit integer, sign-extended for signed types."""
    return (a << (32 - bits * (index + 1))) >> (32 - bits)


def _dot(pairs: list[tuple[Array, Array]], c: Array) -> Array:
    total = c
    for left, right in pairs:
        # The pieces fit either sign, and the sum wraps, so the accumulator's type serves for mixed signs too.
        total = total + left.astype(c.dtype) * right.astype(c.dtype)
    return total


def dp4a(a: Array, b: Array, c: Array) -> Array:
    """Add the products of four byte pairs to ``c``; signs follow the arrays' types (``dp4a.atype.btype``)."""
    return _dot([(_piece(a, i, 8), _piece(b, i, 8)) for i in range(4)], c)


def dp2a_lo(a: Array, b: Array, c: Array) -> Array:
    """Add the products of both halves of ``a`` and the two low bytes of ``b`` (``dp2a.lo``)."""
    return _dot([(_piece(a, i, 16), _piece(b, i, 8)) for i in range(2)], c)


def dp2a_hi(a: Array, b: Array, c: Array) -> Array:
    """Add the products of both halves of ``a`` and the two high bytes of ``b`` (``dp2a.hi``)."""
    return _dot([(_piece(a, i, 16), _piece(b, j, 8)) for i, j in ((0, 2), (1, 3))], c)


def _pack_halves(low: Array, high: Array) -> Array:
    return (high.astype(np.uint32) << 16) | (low.astype(np.uint32) & np.uint32(0xFFFF))


def add_16x2(a: Array, b: Array) -> Array:
    """Add both halves separately, wrapping (``add.u16x2``, ``add.s16x2``)."""
    a, b = a.view(np.uint32), b.view(np.uint32)
    high = np.uint32(0xFFFF0000)
    result: Array = ((a & high) + (b & high)) | ((a + b) & np.uint32(0xFFFF))
    return result


def _extreme_16x2(ufunc: np.ufunc, dtype: type[np.integer[Any]], a: Array, b: Array, relu: bool) -> Array:
    a, b = a.view(dtype), b.view(dtype)
    halves = [ufunc(_piece(a, i, 16), _piece(b, i, 16)) for i in range(2)]
    if relu:
        halves = [np.maximum(half, 0) for half in halves]
    return _pack_halves(*halves)


def min_s16x2(a: Array, b: Array, *, relu: bool = False) -> Array:
    """Return the smaller of each pair of signed halves (``min{.relu}.s16x2``)."""
    return _extreme_16x2(np.minimum, np.int32, a, b, relu)


def max_s16x2(a: Array, b: Array, *, relu: bool = False) -> Array:
    """Return the larger of each pair of signed halves (``max{.relu}.s16x2``)."""
    return _extreme_16x2(np.maximum, np.int32, a, b, relu)


def min_u16x2(a: Array, b: Array) -> Array:
    """Return the smaller of each pair of unsigned halves (``min.u16x2``)."""
    return _extreme_16x2(np.minimum, np.uint32, a, b, False)


def max_u16x2(a: Array, b: Array) -> Array:
    """Return the larger of each pair of unsigned halves (``max.u16x2``)."""
    return _extreme_16x2(np.maximum, np.uint32, a, b, False)


def _absolute_differences(a: Array, b: Array, c: Array, bits: int, add: bool) -> Array:
    """Return the absolute differences of all pieces of `bits` bits, packed; with ``add``, their sum plus ``c``."""
    pieces = range(32 // bits)
    pairs = [(_piece(a, i, bits).astype(np.int64), _piece(b, i, bits).astype(np.int64)) for i in pieces]
    differences = [np.abs(left - right) for left, right in pairs]
    total: Array = np.zeros_like(differences[0])
    for place, difference in enumerate(differences):
        total = total + (difference if add else difference << bits * place)
    result: Array = total.astype(c.dtype)
    return result + c if add else result


def vabsdiff2(a: Array, b: Array, c: Array, *, add: bool = False) -> Array:
    """Return the absolute differences of both pairs of halves, packed; with ``add``, their sum plus ``c``."""
    return _absolute_differences(a, b, c, 16, add)


def vabsdiff4(a: Array, b: Array, c: Array, *, add: bool = False) -> Array:
    """Return the absolute differences of four byte pairs, packed; with ``add``, their sum plus ``c``.

    Signs follow the arrays' types. Without ``add`` the differences of all four bytes replace those of ``c``.
    """
    return _absolute_differences(a, b, c, 8, add)
