"""Double-precision arithmetic of PTX with one rounding, in all four rounding modes.

NumPy rounds sums, products, quotients and roots to nearest; a directed rounding needs only the sign of the exact
remainder, which error-free transformations give. ``fma`` needs them for every rounding. Operands that
could overflow or underflow on the way are scaled first. The conventions are those of ``floating``. Recorded outputs of
an H200 agree bit for bit, in every rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exact import (
    canonical_f64,
    direct,
    multiply_add_by_power,
    ordered_two_sum,
    overflow_rest,
    round_scaled,
    scratch,
    to_odd,
    two_product,
    two_sum,
)

Array = NDArray[Any]

# Lanes worked on at a time in the long chain of `fma`: its work arrays together stay in a core's cache.
_BLOCK = 4096
_SPLITTER = 2.0**27 + 1.0
# A tie of the last sum has at most three significant bits in the smaller addend: of its pattern, what is left
# after shifting out sign, exponent and four bits of the significand is zero.
_TIE_SHIFT = 16
# Below this product its error term could underflow.
_LEAST_PRODUCT = 2.0**-960


def add_f64(a: Array, b: Array, *, rounding: str = "rn") -> Array:
    """Add with one rounding (``add{.rnd}.f64``)."""
    result: Array = np.asarray(np.add(a, b))
    if rounding != "rn":
        _, rest = ordered_two_sum(a, b)
        rest = overflow_rest(result, rest, np.isfinite(a) & np.isfinite(b))
        result = _negative_zero(direct(result, rest, rounding), np.signbit(a) | np.signbit(b), rounding)
    return canonical_f64(result, a, b)


def sub_f64(a: Array, b: Array, *, rounding: str = "rn") -> Array:
    """Subtract with one rounding (``sub{.rnd}.f64``)."""
    if rounding == "rn":
        return canonical_f64(np.asarray(np.subtract(a, b)), a, b)
    # The sign of a NaN operand survives in a difference.
    return canonical_f64(add_f64(a, -b, rounding=rounding), a, b)


def _negative_zero(result: Array, negative: Array, rounding: str) -> Array:
    """Make exact zero sums negative in ``rm`` where any addend was; zeros here are never underflows."""
    return np.where((result == 0) & negative, -0.0, result) if rounding == "rm" else result


def _scaled_back(result: Array, exponent: Array) -> Array:
    """Scale a result by a power of two; exact, because the scaled value has moderate size."""
    scaled: Array = np.ldexp(result, exponent)
    return scaled


def mul_f64(a: Array, b: Array, *, rounding: str = "rn") -> Array:
    """Multiply with one rounding (``mul{.rnd}.f64``)."""
    result: Array = np.asarray(np.multiply(a, b))
    if rounding != "rn":
        (a_part, a_exponent), (b_part, b_exponent) = np.frexp(a), np.frexp(b)
        product, error = two_product(a_part, b_part)
        rest = (product - _scaled_back(result, -(a_exponent + b_exponent))) + error
        finite = np.isfinite(a) & np.isfinite(b)
        result = direct(result, overflow_rest(result, np.where(finite, rest, 0.0), finite), rounding)
    return canonical_f64(result, a, b)


def div_f64(a: Array, b: Array, *, rounding: str = "rn") -> Array:
    """Divide with one rounding (``div.rnd.f64``)."""
    result: Array = np.asarray(np.divide(a, b))
    if rounding != "rn":
        (a_part, a_exponent), (b_part, b_exponent) = np.frexp(a), np.frexp(b)
        product, error = two_product(_scaled_back(result, b_exponent - a_exponent), b_part)
        rest = ((a_part - product) - error) * np.sign(b_part)
        finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
        result = direct(result, overflow_rest(result, np.where(finite, rest, 0.0), finite), rounding)
    return canonical_f64(result, a, b)


def rcp_f64(a: Array, *, rounding: str = "rn") -> Array:
    """Return the reciprocal with one rounding (``rcp.rnd.f64``)."""
    return div_f64(np.ones((), np.float64), a, rounding=rounding)


def sqrt_f64(a: Array, *, rounding: str = "rn") -> Array:
    """Return the square root with one rounding (``sqrt.rnd.f64``)."""
    result: Array = np.asarray(np.sqrt(a))
    if rounding != "rn":
        _, exponent = np.frexp(a)
        half = exponent >> 1
        square, error = two_product(*[_scaled_back(result, -half)] * 2)
        rest = (np.ldexp(a, -2 * half) - square) - error
        result = direct(result, np.where(np.isfinite(result), rest, 0.0), rounding)
    return canonical_f64(result, a)


# --- fused multiply-add -------------------------------------------------------------------------------------------


def fma_f64(a: Array, b: Array, c: Array, *, rounding: str = "rn") -> Array:
    """Multiply and add with one rounding (``fma.rnd.f64``)."""
    simple = multiply_add_by_power(a, b, c) if rounding == "rn" else None
    if simple is not None:
        return canonical_f64(simple, a, b, c)
    a, b, c = np.broadcast_arrays(a, b, c)
    if rounding != "rn":
        return canonical_f64(_fma_any(a, b, c, rounding), a, b, c)
    result: Array = np.empty(a.shape, np.float64)
    if a.ndim != 1:
        result[...] = _fma_any(a, b, c, "rn")
    else:
        for start in range(0, a.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            _fma_block(a[part], b[part], c[part], result[part])
    return canonical_f64(result, a, b, c)


def _fma_block(a: Array, b: Array, c: Array, result: Array) -> None:
    """Multiply and add to nearest: product, its error, sum, its error, and the two errors added last.

    With ``p + e`` the exact product and ``s + t`` the exact ``p + c``, the result is ``s + (e + t)``. If ``s`` is
    inexact, no great cancellation took place and ``e + t`` is less than two units of ``s``. Rounding it
    first can only change the result by landing on a tie of the last sum, and such a value has very few bits.
    Lanes with so few bits, rounded, are done again by the general way, as are those near the format's limits.
    """
    shape = a.shape
    product, error, high, low, other, work = (scratch.take(f"fma{i}", shape) for i in range(6))
    np.multiply(a, b, out=product)
    # The high half of `a` goes to `high`, the low one to `low`.
    np.multiply(a, _SPLITTER, out=high)
    np.subtract(high, a, out=low)
    np.subtract(high, low, out=high)
    np.subtract(a, high, out=low)
    # The high half of `b` goes to `other`.
    np.multiply(b, _SPLITTER, out=other)
    np.subtract(other, b, out=work)
    np.subtract(other, work, out=other)
    np.multiply(high, other, out=error)
    np.subtract(error, product, out=error)
    np.multiply(low, other, out=work)
    np.add(error, work, out=error)
    # From here `other` is the low half of `b`.
    np.subtract(b, other, out=other)
    np.multiply(high, other, out=high)
    np.add(error, high, out=error)
    np.multiply(low, other, out=low)
    np.add(error, low, out=error)
    # The sum goes to `result`, its error to `low`, both errors added to `other`.
    np.add(product, c, out=result)
    np.subtract(result, product, out=high)
    np.subtract(c, high, out=low)
    np.subtract(result, high, out=high)
    np.subtract(product, high, out=high)
    np.add(low, high, out=low)
    np.add(error, low, out=other)
    np.add(result, other, out=result)
    np.left_shift(other.view(np.int64), _TIE_SHIFT, out=work.view(np.int64))
    lanes: Array | None = None
    if not work.view(np.int64).all():
        # Only an inexact sum of the errors counts: taking away either would leave the other of an exact one.
        lanes = (work.view(np.int64) == 0) & ((other - error != low) | (other - low != error))
    lanes = _doubtful((a, b, c), product, result, lanes)
    if lanes is not None:
        result[lanes] = _fma_any(a[lanes], b[lanes], c[lanes], "rn")


def _doubtful(operands: tuple[Array, Array, Array], product: Array, result: Array, lanes: Array | None) -> Array | None:
    """Add to the lanes whose result may be wrong those near the format's limits; None if there are none.

    Also mends the sign of zero results. `product` is used up.
    """
    a, b, c = operands
    # The least of an array with a NaN is NaN, so these questions are asked the way that a NaN answers yes.
    np.abs(product, out=product)
    if not product.min() >= _LEAST_PRODUCT:
        small = (product < _LEAST_PRODUCT) & (a != 0) & (b != 0)
        lanes = small if lanes is None else lanes | small
    # Any overflow on the way leaves an infinity or a NaN.
    np.abs(result, out=product)
    if not product.min() > 0:
        # Adding an error of +0 last has made negative zeros positive; the plain sum has the right sign.
        np.copyto(result, a * b + c, where=result == 0)
    if not product.max() < np.inf:
        large = ~np.isfinite(result)
        lanes = large if lanes is None else lanes | large
    return lanes if lanes is not None and lanes.any() else None


def _fma_any(a: Array, b: Array, c: Array, rounding: str) -> Array:
    """Multiply and add any operands in any rounding, scaled so that nothing is lost on the way."""
    product_sign = np.signbit(a) ^ np.signbit(b)
    plain = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, a * b + c)
    (a_part, a_exponent), (b_part, b_exponent), (c_part, c_exponent) = np.frexp(a), np.frexp(b), np.frexp(c)
    general = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
    a_part, b_part, c_part = (np.where(general, x, 1.0) for x in (a_part, b_part, c_part))
    product, error = two_product(a_part, b_part)
    exponent = a_exponent + b_exponent
    # Where the sizes differ by far, the smaller addend decides by its sign alone: bring it nearer.
    distance = np.where(c_part == 0, 0, c_exponent - exponent)
    nearer = np.clip(distance, -400, 130)
    exponent = np.where(distance > nearer, exponent + (distance - nearer), exponent)
    addend = np.ldexp(c_part, nearer)
    head, tail = two_sum(addend, error)
    high, rest = two_sum(product, head)
    low = to_odd(*two_sum(tail, rest))
    rounded = round_scaled(high, low, np.where(general, exponent, 0), rounding)
    exact_zero = (high == 0) & (low == 0)
    zero = np.where(rounding == "rm", -0.0, 0.0)
    result = np.where(general, np.where(exact_zero, zero, rounded), plain)
    if rounding == "rm":
        # A zero product leaves the addend; two zeros of different signs make the negative one.
        zeros = ~general & (plain == 0) & (product_sign | np.signbit(c))
        result = np.where(zeros, -0.0, result)
    return result
