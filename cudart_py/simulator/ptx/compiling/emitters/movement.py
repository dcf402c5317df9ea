"""Emit 128-bit moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...syntax.instructions import Instruction, Vector
from ..forms import Form
from ..writer import Writer


def mov_wide(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``mov.b128``, which may pack or unpack two 64-bit halves."""
    destination, source = i.operands[0], i.operands[1]
    w.bind("join_halves", _join_halves)
    w.bind("halves", _halves)
    if isinstance(source, Vector):
        (low, low_same), (high, high_same) = (w.typed(item, "u8") for item in source.items)
        w.write(destination, f"join_halves({low}, {high})", "c16", low_same and high_same)
        return
    expression, same = w.value(source, "b128")
    if not isinstance(destination, Vector):
        w.write(destination, expression, "c16", same)
        return
    for index, item in enumerate(destination.items):
        w.write(item, f"halves({expression})[{index}]", "u8", same)


def _join_halves(low: Any, high: Any) -> Any:
    """Join 64-bit halves to 128-bit patterns."""
    low, high = np.broadcast_arrays(low, high)
    return np.ascontiguousarray(np.stack([low, high], axis=-1)).view(np.complex128)[..., 0][()]


def _halves(value: Any) -> tuple[Any, Any]:
    """Split 128-bit patterns into 64-bit halves."""
    pairs = np.ascontiguousarray(np.atleast_1d(value)).view(np.uint64).reshape(-1, 2)
    if isinstance(value, np.generic):
        return pairs[0, 0], pairs[0, 1]
    return pairs[:, 0].copy(), pairs[:, 1].copy()
