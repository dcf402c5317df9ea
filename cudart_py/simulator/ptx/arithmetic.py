"""Write arithmetic: NumPy's own operators where they agree with PTX, else the functions named after the opcodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .exact import canonical_f32
from .instructions import Immediate, Instruction
from .library import find, one
from .operands import DTYPES, Writer, dtype_of

__all__ = ["EMITTERS", "library_call"]

Emitter = Callable[[Writer, Instruction], None]
_HALVES = {"f16", "bf16", "f16x2", "bf16x2"}
_FLOATS = {"f32", "f64", *_HALVES}
_DOUBLED = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def library_call(w: Writer, i: Instruction, result: str, types: Sequence[str]) -> None:
    """Write a call of the function named after the opcode, its operands of the given types."""
    function = find(i.opcode)
    if function is None:
        raise w.unsupported()
    name = w.bind("f_" + i.opcode.replace(".", "_").replace(":", "_"), function)
    values = [w.value(operand, ptx_type) for operand, ptx_type in zip(i.operands[1:], types, strict=True)]
    same = all(uniform for _, uniform in values)
    arguments = ", ".join(expression for expression, _ in values)
    if same:
        w.bind("one", one)
        call = f"one({name}, {arguments})"
    else:
        call = f"{name}({arguments})"
    w.write(i.operands[0], call, dtype_of(result), same)


def _generic(w: Writer, i: Instruction) -> None:
    """Call the opcode's function with all operands and the result of the opcode's type."""
    ptx_type = i.parts[-1]
    library_call(w, i, ptx_type, [ptx_type] * (len(i.operands) - 1))


def _operator(w: Writer, i: Instruction, template: str, ptx_type: str, count: int = 2) -> None:
    values = [w.value(operand, ptx_type) for operand in i.operands[1 : count + 1]]
    same = all(uniform for _, uniform in values)
    w.write(i.operands[0], template.format(*(expression for expression, _ in values)), dtype_of(ptx_type), same)


def _unsigned(ptx_type: str) -> str:
    return "u" + ptx_type[1:]


def _plain(operator: str) -> Emitter:
    """Write wrapping integer arithmetic as an operator on unsigned arrays, and plain float arithmetic likewise."""

    def emit(w: Writer, i: Instruction) -> None:
        parts = i.parts
        ptx_type = parts[-1]
        if "cc" in parts or parts[0] in ("addc", "subc", "madc"):
            _carry(w, i)
        elif "sat" in parts or ptx_type in _HALVES or ptx_type.endswith("x2") or len(parts) > 3:
            _generic(w, i)
        elif ptx_type == "f32" and parts[1] in ("f32", "rn"):
            _float(w, i, f"{{}} {operator} {{}}")
        elif ptx_type in _FLOATS:
            _generic(w, i)
        else:
            _operator(w, i, f"{{}} {operator} {{}}", _unsigned(ptx_type))

    return emit


def _float(w: Writer, i: Instruction, template: str) -> None:
    values = [w.value(operand, "f32") for operand in i.operands[1:]]
    if all(uniform for _, uniform in values):
        _generic(w, i)
        return
    w.bind("canonical_f32", canonical_f32)
    w.write(i.operands[0], f"canonical_f32({template.format(*(x for x, _ in values))})", "f4", False)


def _carry(w: Writer, i: Instruction) -> None:
    """Write arithmetic with the carry flag.

    A subtraction leaves the flag as the carry of ``a + ~b + 1``, set when there was no borrow: what NVVM makes of
    128-bit division reads it so with ``addc``.
    """
    parts = i.parts
    ptx_type = parts[-1]
    subtracts = parts[0] in ("sub", "subc")
    values = [w.value(operand, ptx_type) for operand in i.operands[1:]]
    slot = w.code.slot("%CC")
    if parts[0] in ("addc", "subc", "madc"):
        flag = w.read(slot, "?")
        values.append((f"~{flag}" if subtracts else flag, w.uniform[slot]))
    same = all(uniform for _, uniform in values)
    name = "_".join(parts[:-1])
    function = find(name)
    if function is None:
        raise w.unsupported()
    w.bind(f"f_{name}", function)
    w.bind("one", one)
    arguments = ", ".join(expression for expression, _ in values)
    call = f"one(f_{name}, {arguments})" if same else f"f_{name}({arguments})"
    if "cc" not in parts:
        w.write(i.operands[0], call, dtype_of(ptx_type), same)
        return
    temporary = w.temporary()
    w.emit(f"{temporary} = {call}")
    w.write(i.operands[0], f"{temporary}[0]", dtype_of(ptx_type), same)
    w.write_slot(slot, f"{'~' if subtracts else ''}{temporary}[1]", "?", same)
    w.emit(f"{temporary} = None")


def _mul(w: Writer, i: Instruction) -> None:
    parts = i.parts
    ptx_type = parts[-1]
    if parts[1] == "wide":
        values = [w.value(operand, ptx_type) for operand in i.operands[1:]]
        wide = _DOUBLED[ptx_type]
        same = all(uniform for _, uniform in values)
        expression = f"np.multiply({values[0][0]}, {values[1][0]}, dtype={dtype_of(wide)})"
        w.write(i.operands[0], expression, dtype_of(wide), same)
    elif parts[1] == "lo":
        _operator(w, i, "{} * {}", _unsigned(ptx_type))
    elif parts[1] == "hi":
        _generic(w, i)
    else:
        _plain("*")(w, i)


def _mad(w: Writer, i: Instruction) -> None:
    parts = i.parts
    ptx_type = parts[-1]
    if "cc" in parts or parts[0] == "madc":
        _carry(w, i)
    elif parts[1] == "lo" and "sat" not in parts:
        _operator(w, i, "{} * {} + {}", _unsigned(ptx_type), 3)
    elif parts[1] == "wide":
        wide = _DOUBLED[ptx_type]
        a, b = (w.value(operand, ptx_type) for operand in i.operands[1:3])
        c = w.value(i.operands[3], wide)
        expression = f"np.multiply({a[0]}, {b[0]}, dtype={dtype_of(wide)}) + {c[0]}"
        w.write(i.operands[0], expression, dtype_of(wide), a[1] and b[1] and c[1])
    elif ptx_type in _FLOATS:
        rounded = parts if any(part in ("rn", "rz", "rm", "rp") for part in parts) else ["mad", "rn", *parts[1:]]
        i.opcode = "fma." + ".".join(rounded[1:])
        _generic(w, i)
    else:
        _generic(w, i)


def _logic(operator: str) -> Emitter:
    def emit(w: Writer, i: Instruction) -> None:
        _operator(w, i, f"{{}} {operator} {{}}", i.parts[-1])

    return emit


def _not(w: Writer, i: Instruction) -> None:
    _operator(w, i, "~{}", i.parts[-1], 1)


def _cnot(w: Writer, i: Instruction) -> None:
    _operator(w, i, "({} == 0).astype(" + dtype_of(i.parts[-1]) + ")", i.parts[-1], 1)


def _neg(w: Writer, i: Instruction) -> None:
    if i.parts[-1] in _FLOATS:
        _generic(w, i)
    else:
        _operator(w, i, "-{}", _unsigned(i.parts[-1]), 1)


def _abs(w: Writer, i: Instruction) -> None:
    if i.parts[-1] in _FLOATS:
        _generic(w, i)
    else:
        _operator(w, i, "np.abs({})", i.parts[-1], 1)


def _extreme(ufunc: str) -> Emitter:
    def emit(w: Writer, i: Instruction) -> None:
        # Integers name .relu behind the type.
        ptx_type = next(part for part in i.parts if part in DTYPES)
        if ptx_type in _FLOATS or ptx_type.endswith("x2") or "relu" in i.parts:
            library_call(w, i, ptx_type, [ptx_type, ptx_type])
        else:
            _operator(w, i, f"np.{ufunc}({{}}, {{}})", ptx_type)

    return emit


def _shift(operator: str) -> Emitter:
    def emit(w: Writer, i: Instruction) -> None:
        ptx_type = i.parts[-1]
        amount = i.operands[2]
        a, same = w.value(i.operands[1], ptx_type)
        if isinstance(amount, Immediate) and 0 <= amount.value < int(ptx_type[1:]):
            count = w.constant(np.array(amount.value, dtype_of(ptx_type))[()])
            w.write(i.operands[0], f"{a} {operator} {count}", dtype_of(ptx_type), same)
            return
        library_call(w, i, ptx_type, [ptx_type, "u32"])

    return emit


def _typed(result: str | None, *types: str | None) -> Emitter:
    """Write a call whose operands have these types, None standing for the opcode's own."""

    def emit(w: Writer, i: Instruction) -> None:
        own = i.parts[-1]
        library_call(w, i, result or own, [ptx_type or own for ptx_type in types])

    return emit


def _lop3(w: Writer, i: Instruction) -> None:
    table = i.operands[4]
    if not isinstance(table, Immediate) or len(i.operands) != 5 or i.parts[1] != "b32":
        raise w.unsupported()
    function = find("lop3_b32")
    w.bind("f_lop3_b32", function)
    w.bind("one", one)
    values = [w.value(operand, "b32") for operand in i.operands[1:4]]
    same = all(uniform for _, uniform in values)
    arguments = ", ".join(expression for expression, _ in values)
    call = f"one(f_lop3_b32, {arguments}, {table.value})" if same else f"f_lop3_b32({arguments}, {table.value})"
    w.write(i.operands[0], call, "u4", same)


def _dot(w: Writer, i: Instruction) -> None:
    left, right = i.parts[-2], i.parts[-1]
    third = "s32" if "s32" in (left, right) else "u32"
    library_call(w, i, third, [left, right, third])


EMITTERS: dict[str, Emitter] = {
    "add": _plain("+"), "sub": _plain("-"), "addc": _carry, "subc": _carry, "mul": _mul, "mad": _mad, "madc": _mad,
    "fma": _generic, "div": _generic, "rem": _generic, "and": _logic("&"), "or": _logic("|"), "xor": _logic("^"),
    "not": _not, "cnot": _cnot, "neg": _neg, "abs": _abs, "min": _extreme("minimum"), "max": _extreme("maximum"),
    "shl": _shift("<<"), "shr": _shift(">>"), "sad": _generic, "mul24": _generic, "mad24": _generic, "lop3": _lop3,
    "shf": _typed("b32", "b32", "b32", "u32"), "prmt": _typed("b32", "b32", "b32", "b32"),
    "bfe": _typed(None, None, "u32", "u32"), "bfi": _typed(None, None, None, "u32", "u32"),
    "bmsk": _typed("b32", "u32", "u32"), "szext": _typed(None, None, "u32"), "popc": _typed("u32", None),
    "clz": _typed("u32", None), "bfind": _typed("u32", None), "brev": _generic,
    "fns": _typed("b32", "b32", "b32", "s32"),
    "testp": _typed("pred", None), "copysign": _generic, "dp4a": _dot, "dp2a": _dot, "sqrt": _generic,
    "rsqrt": _generic,
    "rcp": _generic, "sin": _generic, "cos": _generic, "lg2": _generic, "ex2": _generic, "tanh": _generic,
}  # fmt: skip  # rows of a table


def _video(w: Writer, i: Instruction) -> None:
    types: list[Any] = [part for part in i.parts[1:] if part[0] in "us" and part[1:].isdigit()]
    library_call(w, i, types[0], [*types[1:], types[0]])


for _name in ("vabsdiff2", "vabsdiff4"):
    EMITTERS[_name] = _video
