"""Fused multiply-add in double precision, which NumPy doesn't have.

It uses error-free transformations: a number of more than 53 bits is kept as a pair ``(high, low)`` of the rounded value
and the residual. The C library computes the few lanes for which a pair isn't enough.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instructions.number_formats.rounding import two_sum
from .floats import multiply_add_by_power

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
_fma_in_c = ctypes.CDLL("libm.so.6").fma
_fma_in_c.argtypes, _fma_in_c.restype = (ctypes.c_double,) * 3, ctypes.c_double
# The C library computes one lane at a time: this is slow, but correct for all numbers.
_fma_by_lanes = np.frompyfunc(_fma_in_c, 3, 1)


def fma_f64(a: Array, b: Array, c: Array) -> Any:
    """Multiply and add, rounded once to nearest."""
    simple = multiply_add_by_power(a, b, c)
    if simple is not None:
        return simple
    shape = np.broadcast(a, b, c).shape
    if not shape:
        return np.float64(_fma_in_c(a, b, c))
    result: Array = np.empty(shape, np.float64)
    lanes = [operand.reshape(-1) for operand in (*np.broadcast_arrays(a, b, c), result)]
    for start in range(0, result.size, _BLOCK):
        _fma_block(*(operand[start : start + _BLOCK] for operand in lanes))
    return result


def _fma_block(a: Array, b: Array, c: Array, result: Array) -> None:
    """Multiply and add, rounded to nearest: compute the product, the sum and their errors, and add the errors last.

    With ``p + e`` the exact product and ``s + t`` the exact ``p + c``, the result is ``s + (e + t)``. If ``s`` is
    inexact, there was no large cancellation and ``e + t`` is less than two ulps of ``s``. Rounding ``e + t`` first can
    change the result only if it lands on a tie of the last sum, and such a value has very few significant bits. Lanes
    whose rounded ``e + t`` has so few bits are computed again, as are lanes near the format's limits.
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
        result[lanes] = _fma_by_lanes(a[lanes], b[lanes], c[lanes])


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
