"""Error-free transformations and single roundings: the arithmetic beneath PTX's floating-point opcodes.

Everything works on float64 arrays. A number that needs more than 53 bits is kept as a pair ``(high, low)``: ``high``
is the rounded value and ``low`` the rest, or something of the rest's sign and smaller than half a unit of ``high``,
which decides every rounding the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.floats import LEAST_NORMAL_F32, has_nan, to_odd

Array = NDArray[Any]

NAN_F16 = np.uint16(0x7FFF)
NAN_BF16 = np.uint16(0x7FFF)

# Far enough above the subnormal range of float32, and exact for every float64 that comes from float32.
_UP = 2.0**64


def flush_rounded_f32(result: Array, high: Array, low: Array | None, rounding: str) -> Array:
    """Return results with zeros of their sign for those whose ``high + low`` is subnormal (``.ftz`` of results).

    Recorded outputs of an H200 settle when a result counts as subnormal: when it is below the least normal number
    after a rounding to 24 bits that knows no least exponent. So 2**-126 * 0x3f7fffff is flushed, although rounding in
    the subnormal range gives the least normal number; 0x00800001 * 0x3f7ffffe in ``rn`` is not.
    """
    scaled = narrow_f32(high * _UP, None if low is None else low * _UP, rounding)
    tiny = (np.abs(result) <= LEAST_NORMAL_F32) & (np.abs(scaled) < LEAST_NORMAL_F32 * np.float32(_UP))
    return np.where(tiny, result * np.float32(0), result)


def saturate(a: Array) -> Array:
    """Clamp to the range from +0 to 1, NaN becoming +0 (``.sat``)."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    # Adding zero turns a negative zero positive.
    result: Array = np.asarray(np.clip(a, zero, one) + zero)
    if has_nan(result):
        np.copyto(result, zero, where=np.isnan(result))
    return result


# --- directed rounding --------------------------------------------------------------------------------------------


def direct(nearest: Array, rest: Array, rounding: str) -> Array:
    """Return a result rounded to nearest as one of a directed rounding (``rz``, ``rm``, ``rp``; ``rn`` keeps it).

    ``rest`` has the sign of the exact result minus ``nearest``. Works for float32 and float64 results.
    """
    if rounding == "rn":
        return nearest
    infinity = nearest.dtype.type(np.inf)
    if rounding == "rz":
        step = ((rest < 0) & (nearest > 0)) | ((rest > 0) & (nearest < 0))
        target = nearest.dtype.type(0)
    elif rounding == "rm":
        step, target = rest < 0, -infinity
    else:
        step, target = rest > 0, infinity
    moved = np.nextafter(nearest, target)
    # A step down from the least positive number, or up from the greatest negative one, keeps the sign of its zero.
    moved = np.where(moved == 0, np.copysign(moved, nearest), moved)
    return np.where(step, moved, nearest)


def narrow_f32(high: Array, low: Array | None, rounding: str) -> Array:
    """Round float64 numbers, or pairs, to float32 with one rounding."""
    if rounding == "rn":
        return (high if low is None else to_odd(high, low)).astype(np.float32)
    nearest = high.astype(np.float32)
    rest: Array = high - nearest
    if low is not None:
        rest = np.where(rest == 0, low, rest)
    return direct(nearest, rest, rounding)
