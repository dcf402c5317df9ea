"""Write the conversions that NumPy has; others call functions."""

from __future__ import annotations

from ...syntax.instructions import Instruction
from ..forms import Form
from ..writer import Writer


def widen(w: Writer, i: Instruction, form: Form) -> None:
    """Write the conversion of single to double precision, which is exact."""
    expression, uniform = w.value(i.operands[1], form.type)
    w.write(i.operands[0], f"{expression}.astype(f8)", "f8", uniform)
