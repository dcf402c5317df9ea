"""Write integer arithmetic for which NumPy's own operators and functions agree with PTX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...operations import bits
from ...syntax.instructions import Immediate, Instruction
from ...syntax.types import dtype_of
from ..forms import Emitter, Form
from ..writer import Writer
from .functions import Calls, call, operands


def operator(template: str) -> Emitter:
    """Return the emitter of an expression of the operands, which stand for the template's braces."""

    def emit(w: Writer, i: Instruction, form: Form) -> None:
        values = operands(w, i, form)
        expression = template.format(*(value for value, _ in values))
        w.write(i.operands[0], expression, dtype_of(form.type), all(uniform for _, uniform in values))

    return emit


def wrapping(template: str) -> Emitter:
    """Return the emitter of an expression of integers without their sign, whose sums and products wrap."""

    def emit(w: Writer, i: Instruction, form: Form) -> None:
        unsigned = f"u{form.type[1:]}"
        values = [w.value(operand, unsigned) for operand in i.operands[1:]]
        expression = template.format(*(value for value, _ in values))
        w.write(i.operands[0], expression, dtype_of(unsigned), all(uniform for _, uniform in values))

    return emit


def mul_wide(w: Writer, i: Instruction, form: Form) -> None:
    """Write a product of twice the width of its factors."""
    (a, a_same), (b, b_same) = operands(w, i, form)
    wide = dtype_of(form.type_of("W"))
    w.write(i.operands[0], f"np.multiply({a}, {b}, dtype={wide})", wide, a_same and b_same)


def mad_wide(w: Writer, i: Instruction, form: Form) -> None:
    """Write a product of twice the width of its factors, to which a number of that width is added."""
    (a, a_same), (b, b_same), (c, c_same) = operands(w, i, form)
    wide = dtype_of(form.type_of("W"))
    w.write(i.operands[0], f"np.multiply({a}, {b}, dtype={wide}) + {c}", wide, a_same and b_same and c_same)


def shift(sign: str, function: Callable[..., Any]) -> Emitter:
    """Return the emitter of a shift: an operator where the amount is a literal in range, else a call."""
    calls = Calls(function)

    def emit(w: Writer, i: Instruction, form: Form) -> None:
        amount = i.operands[2]
        if not isinstance(amount, Immediate) or not 0 <= amount.value < int(form.type[1:]):
            calls(w, i, form)
            return
        dtype = dtype_of(form.type)
        value, uniform = w.value(i.operands[1], form.type)
        w.write(i.operands[0], f"{value} {sign} {w.immediate(amount, dtype)}", dtype, uniform)

    return emit


def lop3(w: Writer, i: Instruction, form: Form) -> None:
    """Write any function of three bits, whose values are a literal's bits."""
    table = i.operands[4]
    assert isinstance(table, Immediate)
    values = [w.value(operand, form.type) for operand in i.operands[1:4]]
    expression, uniform = call(w, "f_lop3", bits.lop3, [*values, (str(table.value), True)])
    w.write(i.operands[0], expression, dtype_of(form.type), uniform)
