"""Results that integers and fractions alone decide, in every direction of rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["each", "quotient_bits", "remainder"]

Array = NDArray[Any]
# The directions as PTX calls them.
ROUNDINGS = {"rn": "rn", "rz": "rz", "ru": "rp", "rd": "rm"}


def each(reference: Callable[..., float], direction: str, *operands: Array) -> Array:
    """Return what a reference of PTX operations, such as ``ieee_sum``, gives for each of the operands."""
    kind = operands[0].dtype
    how = f"f{8 * kind.itemsize}", ROUNDINGS[direction]
    lanes = zip(*(operand.tolist() for operand in operands), strict=True)
    return np.array([reference(*lane, *how) for lane in lanes], kind)


def remainder(x: Array, y: Array) -> Array:
    """Return the remainder of least size of x / y."""
    lanes = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([math.remainder(a, b) if math.isfinite(a) and b else math.nan for a, b in lanes], x.dtype)


def quotient_bits(x: Array, y: Array) -> NDArray[np.int64]:
    """Return the low three bits of the whole number next to x / y, with the quotient's sign; 0 where there is none."""

    def one(a: float, b: float) -> int:
        if not (math.isfinite(a) and math.isfinite(b) and b):
            return 0
        whole = round(Fraction(a) / Fraction(b))
        return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(whole) & 7)

    return np.array([one(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], np.int64)
