"""Comparisons and selections."""

from __future__ import annotations

from .halves import halves_of, joined
from .number_formats.formats import to_single
from .values import Value, where

# Python's operators for the comparisons of integers.
OPERATORS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip  # rows of a table
# LLVM's names for the comparisons of floats. If an operand is NaN, an ordered one is false and an unordered one true.
_FLOATS = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip  # rows of a table
# The words for comparisons.
RELATIONS = OPERATORS.keys() | _FLOATS.keys()
# The values that ``set`` writes where a comparison holds, if not all ones.
_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def setp(
    relation: str, kind: str, a: Value, b: Value, *c: Value, join: str = "", ftz: bool = False
) -> tuple[Value, Value]:
    """``setp``: return the comparison and its negation, both joined with `c`; for packed halves, one per half."""
    if kind.endswith("x2"):
        low, high = (_joined(truth, join, *c) for truth in _relations(relation, kind, a, b, ftz))
        return low, high
    [truth] = _relations(relation, kind, a, b, ftz)
    return _joined(truth, join, *c), _joined(~truth, join, *c)


def set_(to: str, relation: str, kind: str, a: Value, b: Value, *c: Value, join: str = "", ftz: bool = False) -> Value:
    """``set``: return 1.0 of a float type or all ones where the comparison holds, zeros elsewhere."""
    truths = _relations(relation, kind, a, b, ftz)
    single = to.removesuffix("x2")
    if kind.endswith("x2"):
        # Integer results of packed comparisons are packed too.
        return joined([_chosen(_joined(truth, join, *c), "u16", _TRUE.get(single, 0xFFFF)) for truth in truths])
    [truth] = truths
    width = 16 if single in ("u16", "s16", "f16", "bf16") else 32
    bits = _TRUE.get(single, (1 << width) - 1)
    chosen = _chosen(_joined(truth, join, *c), f"u{width}", bits)
    return chosen.read_as("f32") if to == "f32" else chosen


def _relations(relation: str, kind: str, a: Value, b: Value, ftz: bool) -> list[Value]:
    """Return the comparison of the operands; for packed halves there are two."""
    single = kind.removesuffix("x2")
    if single in ("f16", "bf16"):
        pairs = zip(halves_of(a, kind), halves_of(b, kind), strict=True)
        return [_floats(relation, *(to_single(single, x, ftz) for x in pair)) for pair in pairs]
    if kind in ("f32", "f64"):
        if ftz and kind == "f32":
            a, b = (a.of(raw) for raw in a.builder.flushed(a.raw, b.raw))
        return [_floats(relation, a, b)]
    if relation in ("lo", "ls", "hi", "hs"):
        a, b = (x.read_as(f"u{x.width}") for x in (a, b))
    return [a.compare(OPERATORS[relation], b)]


def _floats(relation: str, a: Value, b: Value) -> Value:
    return a.of(a.builder.floats(_FLOATS[relation], a.raw, b.raw), "pred")


def _joined(truth: Value, join: str, *c: Value) -> Value:
    if not c:
        return truth
    return {"and": truth.__and__, "or": truth.__or__, "xor": truth.__xor__}[join](c[0])


def _chosen(truth: Value, type: str, bits: int) -> Value:
    return where(truth, Value(truth.builder, type, known=bits), 0)


def selp(a: Value, b: Value, truth: Value) -> Value:
    """``selp``: choose by a predicate."""
    return where(truth, a, b)


def slct(a: Value, b: Value, c: Value, *, ftz: bool = False) -> Value:
    """``slct``: choose the first operand where the third one is at least 0."""
    if c.type != "f32":
        return where(c >= 0, a, b)
    [by] = c.builder.flushed(c.raw) if ftz else [c.raw]
    return where(_floats("ge", c.of(by), c.like(0)), a, b)
