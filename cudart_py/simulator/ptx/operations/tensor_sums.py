"""Sums of products of narrow floating-point numbers, bit for bit as an H200's ``mma`` returns them.

NVIDIA does not document how tensor cores add. The rules here were found by comparing with an H200, whose results are in
``tests/launch/data/products.npz``. For 16-bit numbers and tf32, one addition takes the accumulator and all products of
a row and a column. Each of these terms is exact, and is truncated, toward zero, 25 binary places after the leading
place of the largest term. The leading place of a product is the sum of its factors' exponents, although the product of
their significands may be 2 or more. The sum of the truncated terms is exact, and is rounded once: toward zero to single
precision, to nearest even to half precision. The treatment of subnormal numbers and of overflow has not been compared.

8-bit floats (``e4m3``, ``e5m2``) are first converted to half precision. Of each four consecutive elements of a row, the
products of the first two go into one such addition, and the products of the other two into a second. The accumulator is
added last.

Matrices are arrays of float64 numbers of the shape (warps, rows, columns).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.floats import canonical_f32
from .formats import cut_single, narrow, widen

Array = NDArray[Any]
_PLACES = 25
# The arrays of this many warps stay in the processor's cache, which saves a third of the time.
_WARPS = 64
# Less than the exponent of any product that is not zero, and far enough from the limits of double precision.
_LEAST = -400


def add_products(a: Array, b: Array, c: Array, kind: str) -> Array:
    """Return ``a * b + c`` rounded to `kind`, f32 as numbers or f16 as patterns, in one addition per element."""
    pieces = [slice(first, first + _WARPS) for first in range(0, len(a), _WARPS)]
    total = np.concatenate([_sums(a[piece], b[piece], c[piece]) for piece in pieces])
    return canonical_f32(cut_single(total)) if kind == "f32" else narrow(total, kind)


def _sums(a: Array, b: Array, c: Array) -> Array:
    """Return the sums of the truncated terms."""
    depths = range(a.shape[2])
    of_a, of_b, greatest = _exponents(a), _exponents(b), _exponents(c)
    for depth in depths:
        np.maximum(greatest, of_a[:, :, depth, None] + of_b[:, None, depth], out=greatest)
    # The scale turns the last place that is kept into the ones place. Scaling by a power of two is exact.
    scale = np.ldexp(1.0, _PLACES - greatest)
    total: Array = np.trunc(c * scale)
    for depth in depths:
        product = a[:, :, depth, None] * b[:, None, depth]
        product *= scale
        total += np.trunc(product, out=product)
    total /= scale
    return total


def add_bytes(a: Array, b: Array, c: Array, kind: str) -> Array:
    """Return ``a * b + c`` for products of 8-bit floats, in the form that `add_products` returns."""
    total = np.zeros_like(c)
    for first in (0, 1):
        chosen = np.arange(a.shape[2]) % 4 // 2 == first
        total = _numbers(add_products(a[:, :, chosen], b[:, chosen], total, kind), kind)
    total = total + c
    return canonical_f32(total.astype(np.float32)) if kind == "f32" else narrow(total, kind)


def _exponents(numbers: Array) -> Array:
    """Return the exponents of the leading places; the exponent of zeros is below all others."""
    return np.where(numbers == 0, _LEAST, np.frexp(numbers)[1] - 1)


def _numbers(rounded: Array, kind: str) -> Array:
    return (rounded if kind == "f32" else widen(rounded, kind)).astype(np.float64)
