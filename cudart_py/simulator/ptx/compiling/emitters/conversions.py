"""Write conversions between integers as NumPy does them, and packed conversions; others call functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...syntax.instructions import Instruction
from ...syntax.types import DTYPES
from ..forms import Form
from ..writer import Writer


def resize(w: Writer, i: Instruction, form: Form) -> None:
    """Write the conversion of integers, which cuts or extends them."""
    to, source = form.types
    expression, uniform = w.value(i.operands[1], source)
    if DTYPES[to] != DTYPES[source]:
        how = "view" if to[1:] == source[1:] else "astype"
        expression = f"{expression}.{how}({DTYPES[to]})"
    w.write(i.operands[0], expression, DTYPES[to], uniform)


def widen(w: Writer, i: Instruction, form: Form) -> None:
    """Write the conversion of single to double precision, which is exact."""
    expression, uniform = w.value(i.operands[1], form.type)
    w.write(i.operands[0], f"{expression}.astype(f8)", "f8", uniform)


def pack(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``cvt.pack.sat.type.s32``, with a third operand for types of up to 8 bits."""
    narrow = form.types[0]
    bits = int(narrow[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if narrow[0] == "s" else (0, (1 << bits) - 1)
    (a, a_same), (b, b_same) = w.value(i.operands[1], "s32"), w.value(i.operands[2], "s32")
    c, c_same = w.value(i.operands[3], "b32") if len(i.operands) > 3 else ("None", True)
    w.bind("packed", _packed)
    w.write(i.operands[0], f"packed({a}, {b}, {c}, {low}, {high}, {bits})", "u4", a_same and b_same and c_same)


def _packed(a: Any, b: Any, c: Any, low: int, high: int, bits: int) -> Any:
    """Return two numbers saturated to a few bits, the first above the second, with `c` shifted above both."""
    mask = (1 << bits) - 1
    upper, lower = (np.clip(x, low, high).astype(np.int64) & mask for x in (a, b))
    packed = upper << bits | lower
    if c is not None:
        packed |= np.asarray(c).astype(np.int64) << 2 * bits
    return (packed & 0xFFFFFFFF).astype(np.uint32)[()]
