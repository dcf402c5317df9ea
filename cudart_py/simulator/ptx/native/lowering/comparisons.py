"""Comparisons: ``setp`` gives predicates, ``set`` numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Instruction, Vector
from ..errors import NotNative
from ..vectors import F32, I16, I32, Builder, vector
from .floats import flush_result
from .halves import halves_of, widen

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
          "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip  # rows of a table
_FLOATS = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip  # rows of a table
_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def _relation(e: Emitter, i: Instruction, form: Form) -> list[Value]:
    """Return the comparison of the second and third operands; of packed halves there are two."""
    b, relation, kind = e.b, form.words[0], form.type
    ftz = "ftz" in form.words
    if kind.removesuffix("x2") in ("f16", "bf16"):
        operands = [halves_of(b, e.value(operand, kind), kind) for operand in i.operands[1:3]]
        return [
            b.floats(_FLOATS[relation], *(widen(b, value, kind.removesuffix("x2"), ftz) for value in pair))
            for pair in zip(*operands, strict=True)
        ]
    x, y = (e.value(operand, kind, loose=True) for operand in i.operands[1:3])
    if kind in ("f32", "f64"):
        if ftz and kind == "f64":
            raise NotNative("a comparison of f64 with ftz")
        if ftz:
            x, y = (flush_result(b, value) for value in b.operands(x, y))
        return [b.floats(_FLOATS[relation], x, y)]
    signed = kind[0] == "s" and relation not in ("lo", "ls", "hi", "hs")
    return [b.compare(_SIGNS[relation], x, y, signed)]


def _joined(e: Emitter, i: Instruction, form: Form, truth: Value) -> Value:
    """Return a comparison joined with a predicate, where the form asks for it."""
    join = {"and": e.b.and_, "or": e.b.or_, "xor": e.b.xor}
    word = next((word for word in form.modifiers if word in join), None)
    return join[word](truth, e.value(i.operands[3], "pred")) if word else truth


def setp(e: Emitter, i: Instruction, form: Form) -> None:
    """Write a comparison into one or two predicates; the second gets the opposite."""
    truths = _relation(e, i, form)
    destination = i.operands[0]
    results = destination.items if isinstance(destination, Vector) else (destination,)
    if len(truths) == 1:
        truths = [_joined(e, i, form, truth) for truth in (truths[0], e.b.not_(truths[0]))]
    for item, truth in zip(results, truths, strict=False):
        e.write(item, truth, "pred")


def set_(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``set``: one or all bits where the comparison holds, by the type of the result."""
    b = e.b
    result_type, kind = form.types
    truths = _relation(e, i, form)
    single = result_type.removesuffix("x2")
    if kind.endswith("x2"):
        parts = [_chosen(b, truth, I16, _TRUE.get(single, 0xFFFF)) for truth in truths]
        low, high = (b.zext(part, vector(I32)) for part in parts)
        e.write(i.operands[0], b.or_(b.shl(high, b.const(I32, 16)), low), "b32")
        return
    truth = _joined(e, i, form, truths[0])
    if result_type == "f32":
        e.write(i.operands[0], b.as_type(_chosen(b, truth, I32, _TRUE["f32"]), F32), "f32")
    elif result_type in ("u16", "s16", "f16", "bf16"):
        e.write(i.operands[0], _chosen(b, truth, I16, _TRUE.get(single, 0xFFFF)), "b16")
    else:
        e.write(i.operands[0], _chosen(b, truth, I32, 0xFFFFFFFF), "b32")


def _chosen(b: Builder, truth: Value, element: Any, number: int) -> Value:
    return b.select(truth, b.const(element, number), b.const(element, 0))


LOWERINGS: dict[str, Any] = {"setp": setp, "set": set_}
