"""Emit the matrix products of warpgroups, in which one or both factors are in shared memory (``wgmma``)."""

from __future__ import annotations

from ...syntax.instructions import Immediate, Instruction, Operand, Vector
from ..forms import Form
from ..fragments import fragments_of
from ..writer import Writer, spread
from .matrices import bind_fragment, registers, write_registers


def multiply_group_matrices(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``wgmma.mma_async``: the product is computed immediately, so waiting for it does nothing."""
    destination, left, right, scale, *literals = i.operands
    fragments = fragments_of(form)
    names = "".join(f"{bind_fragment(w, fragment)}, " for fragment in fragments)
    factors = [_factor(w, left, fragments[1].kind), _factor(w, right, fragments[2].kind)]
    adds, _ = w.value(scale, "pred")
    signs, turned = literals[:2], literals[2:]
    modifiers = [f"negated={[_number(sign) < 0 for sign in signs].count(True) == 1}"]
    flags = [bool(_number(flag)) for flag in turned]
    # A left matrix in registers has no flag for transposing.
    modifiers.append(f"turned={tuple([False] * (2 - len(flags)) + flags)}")
    if "satfinite" in form.modifiers:
        modifiers.append("satfinite=True")
    arguments = f"({names}), {registers(w, destination, fragments[0].kind)}, {', '.join(factors)}, {adds}"
    call = f"g.chunk.group_matrices.multiply(g, {arguments}, {w.site()}, {', '.join(modifiers)})"
    write_registers(w, destination, call, fragments[0].kind)


def _factor(w: Writer, operand: Operand, kind: str) -> str:
    """Return the registers of a fragment as a list of arrays, or each lane's descriptor as an array."""
    return registers(w, operand, kind) if isinstance(operand, Vector) else spread(w.value(operand, "b64"), "u8")


def _number(operand: Operand) -> int:
    assert isinstance(operand, Immediate)
    return operand.value
