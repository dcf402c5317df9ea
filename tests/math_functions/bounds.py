"""Bounds on the distance of a result from the correctly rounded one, according to the CUDA C++ Programming Guide.

The guide states most bounds in ulps, the number of floating-point numbers between the result and the correctly rounded
one. It states some as an absolute error, and a few only for a range of arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .samples import Arguments

Array = NDArray[Any]
Range = Callable[[Arguments], Array]


@dataclass(frozen=True)
class Bound:
    """The largest allowed error: in ulps where `near` holds for the arguments, absolute elsewhere.

    `ulps` is a number, or a function that returns one per argument. Where `known` does not hold, nothing is documented.
    A bound of 0 ulps means bitwise equality, including the sign of a zero.
    """

    ulps: float | Range = 0
    absolute: float | None = None
    near: Range | None = None
    known: Range | None = None

    def __str__(self) -> str:
        if self == EXACT:
            return "exact"
        parts = [] if self.ulps == 0 else ["varies" if callable(self.ulps) else f"{self.ulps:g}"]
        return ", ".join(parts if self.absolute is None else [*parts, f"absolute {self.absolute:.2g}"])

    @np.errstate(all="ignore")
    def breaks(self, a: Arguments, expected: Array, got: Array, correct: Array) -> Array:
        """Return for each result in `got` whether it exceeds the bound.

        `expected` has the exact values in higher precision, and `correct` the same values, correctly rounded.
        """
        if self == EXACT:
            unsigned = f"u{got.dtype.itemsize}"
            return (got.view(unsigned) != correct.view(unsigned)) & ~(np.isnan(got) & np.isnan(correct))
        steps = distance(got, correct)
        ulps = self.ulps(a) if callable(self.ulps) else np.full(a.x.shape, self.ulps)
        fine = steps <= np.nan_to_num(ulps)
        if self.absolute is not None:
            small = np.abs(got.astype(expected.dtype) - expected) <= self.absolute
            fine = np.where(self.near(a), fine, small | (steps == 0)) if self.near else fine | small
        return ~fine if self.known is None else ~fine & self.known(a)

    @np.errstate(all="ignore")
    def counts(self, a: Arguments) -> Array:
        """Return for each argument whether its error in ulps is bounded."""
        inside = np.full(a.x.shape, self.absolute is None or self.ulps != 0)
        for range_ in (self.near, self.known):
            if range_ is not None:
                inside &= range_(a)
        return inside


EXACT = Bound()


def _ordinal(values: Array) -> Array:
    """Map floating-point numbers to consecutive integers in the same order; both zeros map to 0."""
    bits = values.view(f"i{values.dtype.itemsize}").astype(np.int64)
    least = np.int64(np.iinfo(f"i{values.dtype.itemsize}").min)
    return np.where(bits < 0, least - bits, bits)


def distance(got: Array, correct: Array) -> Array:
    """Return the distance in ulps: 0 between two NaNs, and infinity between a NaN and a number."""
    a, b = _ordinal(got), _ordinal(correct)
    steps = (np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)).astype(np.float64)
    nan_got, nan_correct = np.isnan(got), np.isnan(correct)
    return np.where(nan_got & nan_correct, 0.0, np.where(nan_got | nan_correct, np.inf, steps))
