"""Operations that combine values of several lanes: atomics (``atom``, ``red``) and a warp's reductions (``redux``)."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, and_, or_, xor

from . import halves
from .values import Value, maximum, minimum, where

# The types whose values are patterns of halves, or pairs of them.
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "add": add, "min": minimum, "max": maximum, "and": and_, "or": or_, "xor": xor,
}  # fmt: skip  # rows of a table
_OF_HALVES: dict[str, Callable[[str, Value, Value], Value]] = {
    "add": halves.add, "min": halves.min_, "max": halves.max_,
}  # fmt: skip  # rows of a table


def combine(operation: str, x: Value, y: Value) -> Value:
    """Return what a reduction makes of two values."""
    return _OPERATIONS[operation](x, y)


def neutral(operation: str, type: str) -> int:
    """Return the bits of the integer that a reduction with another value leaves unchanged."""
    ones = (1 << int(type[1:])) - 1
    least, greatest = (ones // 2 + 1, ones // 2) if type[0] == "s" else (0, ones)
    return {"min": greatest, "max": least, "and": ones}.get(operation, 0)


def updated(operation: str, kind: str, flushes: bool | Value, old: Value, *operands: Value) -> Value:
    """Return what an atomic stores; `kind` is its PTX type, and `cas` has the expected value and the new one.

    `flushes` says whether a sum of f32 flushes subnormal operands and results, as in global memory.
    """
    operand = operands[-1]
    if kind in HALVES and operation in _OF_HALVES:
        return _OF_HALVES[operation](kind, old, operand)
    match operation:
        case "add" if kind == "f32" and flushes is not False:
            total = _flush(_flush(old) + _flush(operand))
            return total if flushes is True else where(flushes, total, old + operand)
        case "inc":
            return where(old >= operand, old.like(0), old + 1)
        case "dec":
            return where(old.equals(0) | (old > operand), operand, old - 1)
        case "exch":
            return operand
        case "cas":
            return where(old.equals(operands[0]), operand, old)
    return combine(operation, old, operand)


def _flush(x: Value) -> Value:
    return x.of(x.builder.flush(x.raw))
