"""Fused multiply-add in double precision, which NumPy doesn't have.

It uses error-free transformations: a number of more than 53 bits is kept as a pair ``(high, low)`` of the rounded value
and the residual. Any number with the residual's sign and less than half an ulp of ``high`` may replace the residual,
because it leads to the same roundings. Operands that could overflow or underflow on the way are scaled first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instructions.number_formats.rounding import two_sum
from .floats import multiply_add_by_power, to_odd

Array = NDArray[Any]

# The lanes that the long chain of operations in `fma_f64` processes at a time: few enough that all of its work arrays
# stay in a core's cache.
_BLOCK = 4096
_SPLITTER = 2.0**27 + 1.0
# At a tie of the last sum, the smaller addend has at most three significant bits. Its pattern is then zero after
# shifting out the sign, the exponent and four bits of the significand.
_TIE_SHIFT = 16
# The error term of a smaller product could underflow.
_LEAST_PRODUCT = 2.0**-960


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Multiply and add, rounded once to nearest."""
    simple = multiply_add_by_power(a, b, c)
    if simple is not None:
        return simple
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.ndim != 1:
        return _fma_any(a, b, c)[()]
    result: Array = np.empty(a.shape, np.float64)
    for start in range(0, a.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        _fma_block(a[part], b[part], c[part], result[part])
    return result


def _fma_block(a: Array, b: Array, c: Array, result: Array) -> None:
    """Multiply and add, rounded to nearest: compute the product, the sum and their errors, and add the errors last.

    With ``p + e`` the exact product and ``s + t`` the exact ``p + c``, the result is ``s + (e + t)``. If ``s`` is
    inexact, there was no large cancellation and ``e + t`` is less than two ulps of ``s``. Rounding ``e + t`` first can
    change the result only if it lands on a tie of the last sum, and such a value has very few significant bits. Lanes
    whose rounded ``e + t`` has so few bits are computed again by `_fma_any`, as are lanes near the format's limits.
    """
    product, error = _two_product(a, b)
    total, rest = two_sum(product, c)
    tail = error + rest
    np.add(total, tail, out=result)
    lanes = (tail.view(np.int64) << _TIE_SHIFT) == 0
    if lanes.any():
        # Only an inexact sum of the errors matters. If it were exact, subtracting either error would leave the other.
        # An overflow on the way has made it a NaN, whose pattern is zero here and which differs from everything.
        lanes &= (tail - error != rest) | (tail - rest != error)
    size = np.abs(product)
    # The minimum of an array with a NaN is NaN, so these conditions are written to be true for a NaN.
    if not size.min() >= _LEAST_PRODUCT:
        lanes |= (size < _LEAST_PRODUCT) & (a != 0) & (b != 0)
    if not result.all():
        # Adding an error of +0 last has made negative zeros positive; the plain sum has the right sign.
        np.copyto(result, product + c, where=result == 0)
    if lanes.any():
        result[lanes] = _fma_any(a[lanes], b[lanes], c[lanes])


def _fma_any(a: Array, b: Array, c: Array) -> Array:
    """Multiply and add any operands, scaled so that nothing is lost on the way."""
    operands = np.array([a, b, c])
    finite = np.isfinite(operands)
    # A finite product is not rounded before it is added to an infinity.
    plain = np.where(finite[:2].all(axis=0) & ~finite[2], c, a * b + c)
    (a_part, a_exponent), (b_part, b_exponent), (c_part, c_exponent) = np.frexp(a), np.frexp(b), np.frexp(c)
    general = finite.all(axis=0) & operands[:2].all(axis=0)
    a_part, b_part, c_part = (np.where(general, x, 1.0) for x in (a_part, b_part, c_part))
    product, error = _two_product(a_part, b_part)
    exponent = a_exponent + b_exponent
    # If the magnitudes differ greatly, only the sign of the smaller addend matters, so its exponent is brought nearer.
    distance = np.where(c_part == 0, 0, c_exponent - exponent)
    nearer = np.clip(distance, -400, 130)
    exponent = np.where(distance > nearer, exponent + (distance - nearer), exponent)
    addend = np.ldexp(c_part, nearer)
    head, tail = two_sum(addend, error)
    high, rest = two_sum(product, head)
    low = to_odd(*two_sum(tail, rest))
    rounded = _round_scaled(high, low, np.where(general, exponent, 0))
    result: Array = np.where(general, rounded, plain)
    return result


# --- error-free transformations -----------------------------------------------------------------------------------


def _split(a: Array) -> tuple[Array, Array]:
    """Split into two halves of 26 bits, whose products are exact."""
    scaled = a * _SPLITTER
    high: Array = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Multiply exactly: return the rounded product and its error, for operands far from overflow and underflow."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error: Array = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _round_scaled(high: Array, low: Array, exponent: Array) -> Array:
    """Round ``(high + low) * 2**exponent`` once into float64, through its subnormal range and into overflow.

    The pair must be non-overlapping, or its ``high`` zero. Its ``low`` must be rounded to odd, and its magnitude
    moderate.
    """
    total = high + low
    size = np.frexp(total)[1] + exponent
    subnormal = size <= -1022
    if np.any(subnormal):
        # The scaled value of one unit of the subnormal range. It is limited, since a much larger one rounds to the same
        # zero or smallest number.
        unit_exponent = np.minimum(-1074 - exponent, 500)
        # Adding 2**52 units makes that unit the last bit of the sum, so that the addition rounds where it must.
        magic = np.copysign(np.ldexp(1.0, unit_exponent + 52), total)
        shifted, error = two_sum(magic, high)
        tail = to_odd(*two_sum(error, low))
        rounded = shifted + tail
        count = np.copysign(rounded - magic, total)
        total = np.where(subnormal, count, total)
        exponent = np.where(subnormal, -1074 - unit_exponent, exponent)
    result: Array = np.ldexp(total, exponent)
    return result
