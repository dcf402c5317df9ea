"""Emit operations on the matrices of whole warps, and of warpgroups.

The former are ``wmma``, ``mma``, ``ldmatrix``, ``stmatrix`` and ``movmatrix``. In ``wgmma``, one or both factors are in
shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...operations.matrices import Fragment
from ...syntax.instructions import Access, Immediate, Instruction, Operand, Symbol, Vector
from ...syntax.types import dtype_of
from ..forms import Form
from ..fragments import fragment_length, fragment_of, fragments_of, type_of_registers
from ..writer import Writer, spread

_ROUNDINGS = ("rn", "rz", "rm", "rp")


def access_units(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``wmma.load`` and ``wmma.store``."""
    fragment = fragment_of(form)
    distance = _distance(w, form, fragment, i.operands[2:])
    _access(w, i, form, f"units(g, {_base(w, i.access, form)}, {bind_fragment(w, fragment)}, {distance}", fragment.kind)


def access_rows(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``ldmatrix`` and ``stmatrix``."""
    rows = f"rows(g, {_base(w, i.access, form)}, {fragment_length(form, 0)}, {'trans' in form.words}"
    _access(w, i, form, rows, form.type)


def _access(w: Writer, i: Instruction, form: Form, call: str, kind: str) -> None:
    """Emit a call that loads the registers of a fragment or stores them; `call` is without its last arguments."""
    if form.row.access == "ld":
        write_registers(w, i.operands[0], f"g.chunk.matrices.{call}, [], {w.site()})", kind)
    else:
        w.emit(f"g.chunk.matrices.{call}, {registers(w, i.operands[1], kind)}, {w.site()})")


def move_matrix(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``movmatrix``, which transposes."""
    source = spread(w.value(i.operands[1], "b32"), "u4")
    w.write(i.operands[0], f"g.chunk.matrices.transpose(g, {source}, {w.site()})", "u4", False)


def multiply_matrices(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``wmma.mma`` and ``mma``."""
    fragments = fragments_of(form)
    names = "".join(f"{bind_fragment(w, fragment)}, " for fragment in fragments)
    operands = "".join(
        f"{registers(w, operand, fragment.kind)}, "
        for operand, fragment in zip(i.operands[1:], fragments[1:], strict=True)
    )
    modifiers = "".join(f", rounding={word!r}" for word in form.modifiers if word in _ROUNDINGS)
    modifiers += ", satfinite=True" if "satfinite" in form.modifiers else ""
    call = f"g.chunk.matrices.multiply(g, ({names}), ({operands}), {w.site()}{modifiers})"
    write_registers(w, i.operands[0], call, fragments[0].kind)


def _base(w: Writer, access: Access, form: Form) -> str:
    """Return source code for the space and for each lane's address."""
    base, space = access.base, form.space
    wide = w.word_type(base, "u64")
    if isinstance(base, Symbol) and space == "generic" and base.name in w.environment.shared_addresses:
        space = "shared"
    address = spread(w.value(base, wide), dtype_of(wide))
    return f"{space!r}, {address} + {access.offset}" if access.offset else f"{space!r}, {address}"


def _distance(w: Writer, form: Form, fragment: Fragment, stride: Sequence[Operand]) -> str:
    """Return source code for a pair: whether a matrix is column-major, and its leading dimension in elements."""
    by_columns = "col" in form.words
    steps = str(fragment.rows if by_columns else fragment.columns)
    if stride:
        steps = str(stride[0].value) if isinstance(stride[0], Immediate) else w.value(stride[0], "u32")[0]
    return f"({by_columns}, {steps})"


def bind_fragment(w: Writer, fragment: Fragment) -> str:
    """Return source code for a fragment."""
    w.bind("Fragment", Fragment)
    return repr(fragment)


def registers(w: Writer, operand: Operand, kind: str) -> str:
    """Return source code for a list of arrays, one per register of a fragment."""
    assert isinstance(operand, Vector)
    dtype = dtype_of(type_of_registers(kind))
    return f"[{', '.join(spread(w.typed(item, dtype), dtype) for item in operand.items)}]"


def write_registers(w: Writer, destination: Operand, call: str, kind: str) -> None:
    """Assign the list of arrays that a call returns to the registers of a fragment."""
    w.write_all(destination, call, dtype_of(type_of_registers(kind)))


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
    call = f"g.chunk.matrices.multiply_groups(g, {arguments}, {w.site()}, {', '.join(modifiers)})"
    write_registers(w, destination, call, fragments[0].kind)


def _factor(w: Writer, operand: Operand, kind: str) -> str:
    """Return the registers of a fragment as a list of arrays, or each lane's descriptor as an array."""
    return registers(w, operand, kind) if isinstance(operand, Vector) else spread(w.value(operand, "b64"), "u8")


def _number(operand: Operand) -> int:
    assert isinstance(operand, Immediate)
    return operand.value
