"""Video instructions: arithmetic on the bytes and halves of words."""

from __future__ import annotations

from .integers import piece
from .values import Value, maximum, minimum


def vabsdiff2(a: Value, b: Value, c: Value, *, add: bool = False) -> Value:
    """``vabsdiff2``: return the absolute differences of both pairs of halves; with ``add``, their sum plus `c`."""
    return _absolute_differences(a, b, c, 16, add)


def vabsdiff4(a: Value, b: Value, c: Value) -> Value:
    """``vabsdiff4``: return the absolute differences of four byte pairs, which replace all four bytes of `c`."""
    return _absolute_differences(a, b, c, 8, False)


def vabsdiff4_add(a: Value, b: Value, c: Value) -> Value:
    """``vabsdiff4.add``: add the absolute differences of four byte pairs to `c`."""
    return _absolute_differences(a, b, c, 8, True)


def _absolute_differences(a: Value, b: Value, c: Value, bits: int, add: bool) -> Value:
    total = c if add else c.like(0)
    for place in range(32 // bits):
        left, right = (piece(x, place, bits).read_as("s32") for x in (a, b))
        difference = (maximum(left, right) - minimum(left, right)).read_as(c.type)
        total = total + (difference if add else difference << bits * place)
    return total
