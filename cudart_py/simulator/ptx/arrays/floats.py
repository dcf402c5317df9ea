"""Floating point with the hardware's NaNs, subnormal numbers and single rounding, for arrays and scalars.

NumPy has no fused multiply-add. This module implements it for single precision, through double precision. `double`
implements it for double precision. Callers run under `device_arithmetic`.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instructions.number_formats.rounding import two_sum

Array = NDArray[Any]

# The NaNs that NVIDIA's hardware generates. In single precision, every NaN result is this one. In double precision, the
# result is the first NaN operand, made quiet, or the default NaN if no operand is NaN.
NAN_F32 = np.uint32(0x7FFFFFFF).view(np.float32)
NAN_F64 = np.uint64(0xFFF8000000000000).view(np.float64)

LEAST_NORMAL_F32 = np.float32(2.0**-126)
# Multiplying a subnormal number or the smallest normal one by this is inexact, so it signals underflow.
_SHRINK_F32 = np.float32(1 - 2.0**-24)
_QUIET_F64 = np.uint64(1 << 51)
_TIE = -(2**63)


class Scratch(threading.local):
    """Work arrays that are reused, so that temporaries don't fault in fresh pages each time.

    The arrays of one slot share storage: a caller uses each slot for one purpose at a time.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def take(self, slot: str, shape: tuple[int, ...]) -> Array:
        """Return an uninitialised float64 array of a shape."""
        size = math.prod(shape)
        buffer = self._buffers.get(slot)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[slot] = np.empty(max(size, 4096), np.float64)
        return np.ndarray(shape, np.float64, buffer)


scratch = Scratch()


# --- NaN and subnormal results ------------------------------------------------------------------------------------


def has_nan(a: Array) -> bool:
    """Return whether any number is NaN."""
    # The maximum of infinity and other numbers is infinity unless one of them is NaN; that is the cheapest search.
    return bool(np.maximum.reduce(a, axis=None, initial=np.inf) != np.inf)


def canonical_f32(a: Array) -> Array:
    """Return single-precision numbers with every NaN replaced by the hardware's only one."""
    return np.where(np.isnan(a), NAN_F32, a)[()] if has_nan(a) else a


def canonical_f64(result: Array, *operands: Array) -> Array:
    """Return double-precision numbers whose NaNs are the first NaN operand, made quiet, or the default NaN."""
    if not has_nan(result):
        return result
    chosen: Any = NAN_F64
    for operand in reversed(operands):
        quiet = (np.asarray(operand).view(np.uint64) | _QUIET_F64).view(np.float64)
        chosen = np.where(np.isnan(operand), quiet, chosen)
    return np.where(np.isnan(result), chosen, result)[()]


def has_tiny_f32(a: Array) -> np.bool_:
    """Return whether any number is subnormal or the smallest normal one (of either sign); zeros are neither."""
    # One multiplication whose underflow the processor signals costs less than comparisons of magnitudes.
    try:
        with np.errstate(under="raise"):
            np.multiply(a, _SHRINK_F32)
    except FloatingPointError:
        return np.True_
    return np.False_


def flush_f32(a: Array) -> Array:
    """Replace subnormal numbers of single precision by zeros of the same sign (``.ftz``)."""
    if not has_tiny_f32(a):
        return a
    return np.where(np.abs(a) < LEAST_NORMAL_F32, a * np.float32(0), a)[()]


def saturate(a: Array) -> Array:
    """Clamp to the range from +0 to 1, NaN becoming +0."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    # Adding zero turns a negative zero positive.
    result: Array = np.clip(a, zero, one) + zero
    if has_nan(result):
        result = np.where(np.isnan(result), zero, result)[()]
    return result


# --- fused multiply-add -------------------------------------------------------------------------------------------


def to_odd(high: Array, low: Array) -> Array:
    """Round a pair to odd: if a residual is cut off, the last bit of the result is one.

    A later rounding to at least two bits fewer then gives the same result as a single rounding. A NaN residual counts
    as zero.
    """
    bits = np.array(high).view(np.int64)
    inexact = (np.abs(low) > 0) & (bits & 1 == 0)
    # Away from zero the pattern grows, toward zero it shrinks.
    bits += np.where((low > 0) == (high > 0), 1, -1) * inexact
    return bits.view(np.float64)


def multiply_add_by_power(a: Array, b: Array, c: Array) -> Array | None:
    """Multiply by a scalar and add, if the product is exact in the operands' own format; otherwise return None.

    The product is exact for a zero and for powers of two, unless it overflows or underflows.
    """
    if a.ndim != 0 or np.abs(np.frexp(a)[0]) not in (0.0, 0.5):
        return None
    try:
        with np.errstate(over="raise", under="raise"):
            product = np.multiply(a, b)
    except FloatingPointError:
        return None
    return np.add(product, c)


def _wide(a: Array, into: Array) -> Array:
    """Return float32 numbers as float64, arrays in a work array."""
    if a.ndim == 0:
        return a.astype(np.float64)
    # Converting first and calculating then is twice as fast as letting one call do both.
    np.copyto(into, a)
    return into


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """Multiply and add in float64, where the product is exact, and correct results that double rounding made wrong.

    The sum is rounded to 53 bits, then to 24. The second rounding is wrong only at a tie that the first one created.
    Lanes with a tie are therefore computed again unless their sum is exact.
    """
    simple = multiply_add_by_power(a, b, c)
    if simple is not None:
        return simple
    shape = np.broadcast(a, b, c).shape
    total, other = scratch.take("total", shape), scratch.take("other", shape)
    np.multiply(_wide(a, total), _wide(b, other), out=total)
    np.add(total, _wide(c, other), out=total)
    doubtful: Array | None = None
    try:
        # A tie of a subnormal result can be at any bit, so the conversion's underflow signal finds those results.
        with np.errstate(under="raise"):
            result: Array = total.astype(np.float32)
    except FloatingPointError:
        result = total.astype(np.float32)
        doubtful = np.abs(total) < LEAST_NORMAL_F32
    # The lowest 29 bits of a tie are a one and 28 zeros. Shifted to the top, they are the smallest int64.
    shifted = total.view(np.int64)
    np.left_shift(shifted, 35, out=shifted)
    if np.minimum.reduce(shifted, axis=None, initial=0) == _TIE:
        doubtful = shifted == _TIE if doubtful is None else doubtful | (shifted == _TIE)
    if doubtful is not None:
        _mend(result, doubtful, a, b, c)
    return result[()]


def _mend(result: Array, doubtful: Array, a: Array, b: Array, c: Array) -> None:
    """Recompute the doubtful lanes of a multiply-add from the exact sum, if their sum in float64 is not exact."""
    lanes = np.nonzero(doubtful) if result.ndim else ()
    a, b, c = (x if x.ndim == 0 else np.broadcast_to(x, result.shape)[lanes] for x in (a, b, c))
    total, rest = two_sum(np.multiply(a, b, dtype=np.float64), c.astype(np.float64))
    if rest.any():
        result[lanes] = to_odd(total, rest).astype(np.float32)
