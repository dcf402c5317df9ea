"""Operations on integers that take several NumPy calls; each works on arrays and scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def high_product(a: Array, b: Array) -> Array:
    """Return the upper halves of unsigned products, computed from products of the operands' halves."""
    low = np.uint64(0xFFFFFFFF)
    a_low, a_high = a & low, a >> 32
    b_low, b_high = b & low, b >> 32
    middle = a_high * b_low + (a_low * b_low >> 32)
    other = a_low * b_high + (middle & low)
    result: Array = a_high * b_high + (middle >> 32) + (other >> 32)
    return result


def high_product_signed(a: Array, b: Array) -> Array:
    """Return the upper halves of signed products."""
    high = high_product(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    # A negative operand read as unsigned is 2**64 too large.
    result: Array = high - (b & (a >> 63)) - (a & (b >> 63))
    return result


def truncated(a: Array, b: Array) -> Array:
    """Return signed quotients, rounded toward zero."""
    quotient: Array = a // b
    if ((a | b) < 0).any():
        remainder = a - quotient * b
        # NumPy rounds down, so the quotient is one too small if the remainder's sign isn't the dividend's.
        quotient = quotient + ((remainder != 0) & ((remainder ^ a) < 0))
    return quotient


def leading_zeros(a: Array) -> Array:
    """Count the leading zeros, as u32."""
    if a.dtype.itemsize == 8:
        high, low = leading_zeros((a >> 32).astype(np.uint32)), leading_zeros(a.astype(np.uint32))
        both: Array = high + low * (high == 32)
        return both
    # A 32-bit integer is exact in double precision, so the exponent is the position of its highest set bit.
    exponent = a.astype(np.float64).view(np.int64) >> 52
    zeros: Array = np.minimum(1023 + 31 - exponent, 32).astype(np.uint32)
    return zeros


def reversed_bits(a: Array) -> Array:
    """Reverse the order of the bits."""
    for shift, byte in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        mask = a.dtype.type(int.from_bytes(bytes([byte] * a.dtype.itemsize)))
        a = ((a >> shift) & mask) | ((a & mask) << shift)
    return a.byteswap()


def join_halves(low: Any, high: Any) -> Any:
    """Join 64-bit halves to 128-bit patterns."""
    low, high = np.broadcast_arrays(low, high)
    return np.ascontiguousarray(np.stack([low, high], axis=-1)).view(np.complex128)[..., 0][()]


def halves(value: Any) -> tuple[Any, Any]:
    """Split 128-bit patterns into 64-bit halves."""
    pairs = np.ascontiguousarray(np.atleast_1d(value)).view(np.uint64).reshape(-1, 2)
    if isinstance(value, np.generic):
        return pairs[0, 0], pairs[0, 1]
    return pairs[:, 0].copy(), pairs[:, 1].copy()
