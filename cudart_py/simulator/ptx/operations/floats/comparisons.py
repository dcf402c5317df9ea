"""Floating-point comparisons of PTX's ``setp``, ``set`` and ``slct`` over arrays of lanes.

Ordered comparisons are false, unordered ones (with a ``u``) true, where an operand is NaN. Operands are float32 or
float64 arrays or NumPy scalars (half precision: widen first); the result is a boolean array. PTX's ``ne`` is
ordered, unlike NumPy's. With ``.ftz`` flush the operands first (``exact.flush_f32``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def eq(a: Array, b: Array) -> Array:
    """Return where both are numbers and equal."""
    return np.equal(a, b)


def ne(a: Array, b: Array) -> Array:
    """Return where both are numbers and differ."""
    return np.logical_or(np.less(a, b), np.greater(a, b))


def lt(a: Array, b: Array) -> Array:
    """Return where both are numbers and the first is less."""
    return np.less(a, b)


def le(a: Array, b: Array) -> Array:
    """Return where both are numbers and the first is not greater."""
    return np.less_equal(a, b)


def gt(a: Array, b: Array) -> Array:
    """Return where both are numbers and the first is greater."""
    return np.greater(a, b)


def ge(a: Array, b: Array) -> Array:
    """Return where both are numbers and the first is not less."""
    return np.greater_equal(a, b)


def equ(a: Array, b: Array) -> Array:
    """Return where they are equal or any is NaN."""
    return ~(np.less(a, b) | np.greater(a, b))


def neu(a: Array, b: Array) -> Array:
    """Return where they differ or any is NaN."""
    return np.not_equal(a, b)


def ltu(a: Array, b: Array) -> Array:
    """Return where the first is less or any is NaN."""
    return ~np.greater_equal(a, b)


def leu(a: Array, b: Array) -> Array:
    """Return where the first is not greater or any is NaN."""
    return ~np.greater(a, b)


def gtu(a: Array, b: Array) -> Array:
    """Return where the first is greater or any is NaN."""
    return ~np.less_equal(a, b)


def geu(a: Array, b: Array) -> Array:
    """Return where the first is not less or any is NaN."""
    return ~np.less(a, b)


def num(a: Array, b: Array) -> Array:
    """Return where both are numbers."""
    return ~(np.isnan(a) | np.isnan(b))


def nan(a: Array, b: Array) -> Array:
    """Return where any is NaN."""
    return np.isnan(a) | np.isnan(b)


# The functions by the words that PTX has for them.
RELATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge,
    "equ": equ, "neu": neu, "ltu": ltu, "leu": leu, "gtu": gtu, "geu": geu, "num": num, "nan": nan,
}  # fmt: skip  # rows of a table
