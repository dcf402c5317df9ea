"""Write comparisons: ``setp`` gives predicates, ``set`` numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...operations.floats import half
from ...operations.floats.exact import flush_f32
from ...syntax.instructions import Instruction, Vector
from ..forms import Form
from ..writer import Value, Writer
from .functions import call

_SIGNS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip  # rows of a table
# An unordered comparison holds where the opposite ordered one doesn't.
_OPPOSITES = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
_JOINS = {"and": "&", "or": "|", "xor": "^"}
# The values that ``set`` writes where a comparison holds, if not all ones.
_TRUE = {"f32": np.float32(1), "f16": np.uint16(0x3C00), "bf16": np.uint16(0x3F80)}


def _relation(w: Writer, i: Instruction, form: Form) -> Value:
    """Return the comparison of the second and third operands as an expression of truth values."""
    relation, ptx_type = form.words[0], form.type
    if ptx_type in ("f16", "bf16", "f16x2", "bf16x2"):
        return _half_relation(w, i, form)
    if relation in ("lo", "ls", "hi", "hs"):
        ptx_type = "u" + ptx_type[1:]
    left, right = w.value(i.operands[1], ptx_type), w.value(i.operands[2], ptx_type)
    if "ftz" in form.words:
        left, right = (call(w, "flush_f32", flush_f32, [value]) for value in (left, right))
    a, b, same = left[0], right[0], left[1] and right[1]
    if ptx_type[0] == "f":
        if relation == "ne":
            return f"(({a} < {b}) | ({a} > {b}))", same
        if relation == "equ":
            return f"~(({a} < {b}) | ({a} > {b}))", same
        if relation == "neu":
            return f"({a} != {b})", same
        if relation == "num":
            return f"(({a} == {a}) & ({b} == {b}))", same
        if relation == "nan":
            return f"(({a} != {a}) | ({b} != {b}))", same
        if relation in _OPPOSITES:
            return f"~({a} {_OPPOSITES[relation]} {b})", same
    return f"({a} {_SIGNS[relation]} {b})", same


def _half_relation(w: Writer, i: Instruction, form: Form) -> Value:
    """Return the comparison of halves; of packed ones it is a pair of truth values."""
    relation, ptx_type, ftz = form.words[0], form.type, "ftz" in form.words
    compare = half.compare_pairs if ptx_type.endswith("x2") else half.compare
    function = partial(compare, relation, ptx_type.removesuffix("x2"), ftz=ftz)
    values = [w.value(operand, ptx_type) for operand in i.operands[1:3]]
    return call(w, f"compare_{relation}_{ptx_type}{'_ftz' if ftz else ''}", function, values)


def setp(w: Writer, i: Instruction, form: Form) -> None:
    """Write a comparison into one or two predicates; the second gets the opposite."""
    join = next((_JOINS[word] for word in form.modifiers if word in _JOINS), None)
    expression, same = _relation(w, i, form)
    destination = i.operands[0]
    if form.type in ("f16x2", "bf16x2"):
        assert isinstance(destination, Vector)
        name = w.temporary()
        w.emit(f"{name} = {expression}")
        for index, item in enumerate(destination.items):
            w.write(item, f"{name}[{index}]", "?", same)
        return
    results = destination.items if isinstance(destination, Vector) else (destination,)
    joined = ""
    if join is not None:
        c, c_same = w.value(i.operands[3], "pred")
        joined, same = f" {join} {c}", same and c_same
    if len(results) == 1:
        w.write(results[0], f"{expression}{joined}", "?", same)
        return
    # Both are computed before the first is written, which may be the predicate that they are joined with.
    name = w.temporary()
    w.emit(f"{name} = {expression}")
    w.emit(f"{name}_not = ~{name}{joined}")
    w.write(results[0], f"{name}{joined}", "?", same)
    w.write(results[1], f"{name}_not", "?", same)
    w.emit(f"{name} = {name}_not = None")


def set_(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``set``: one or all bits where the comparison holds, by the type of the result."""
    result_type, ptx_type = form.types
    expression, same = _relation(w, i, form)
    single = result_type.removesuffix("x2")
    width = "u2" if result_type in ("u16", "s16", "f16", "bf16", "f16x2", "bf16x2") else "u4"
    true = w.constant(
        _TRUE[single] if single in _TRUE else np.uint16(0xFFFF) if width == "u2" else np.uint32(0xFFFFFFFF)
    )
    name = w.temporary()
    w.emit(f"{name} = {expression}")
    if ptx_type.endswith("x2"):
        # Integer results of packed comparisons are packed all the same.
        true = w.constant(_TRUE.get(single, np.uint16(0xFFFF)))
        halves = [f"({name}[{place}] * {true}).astype(u4)" for place in range(2)]
        w.write(i.operands[0], f"{halves[0]} | {halves[1]} << 16", "u4", same)
        return
    join = next((_JOINS[word] for word in form.modifiers if word in _JOINS), None)
    if join is not None:
        c, c_same = w.value(i.operands[3], "pred")
        w.emit(f"{name} = {name} {join} {c}")
        same = same and c_same
    w.write(i.operands[0], f"{name} * {true}", "f4" if result_type == "f32" else width, same)
