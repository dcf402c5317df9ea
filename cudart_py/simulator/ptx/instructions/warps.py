"""Warp-level operations: the part in which each lane computes its result from words that all lanes contribute to.

Reductions (``redux``) combine the values of lanes as atomics (``atom``, ``red``) combine them with memory.

Bit n of such a word belongs to lane n. `present` contains the lanes that execute the instruction together, and
`members` is the instruction's member mask, which may differ between the lanes of a warp.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add, and_, or_, xor

from . import halves
from .integer_math.integers import popc
from .values import Value, maximum, minimum, where

# The types whose values are patterns of halves, or pairs of them.
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "add": add, "min": minimum, "max": maximum, "and": and_, "or": or_, "xor": xor,
}  # fmt: skip  # rows of a table
_OF_HALVES: dict[str, Callable[[str, Value, Value], Value]] = {
    "add": halves.add, "min": partial(halves.extreme, "min"), "max": partial(halves.extreme, "max"),
}  # fmt: skip  # rows of a table


def shuffle_source(mode: str, lane: Value, offset: Value, control: Value) -> tuple[Value, Value]:
    """``shfl``: return the source lane of each lane, itself where that is out of range, and whether it is in range.

    `control` is the instruction's operand c: a clamp in bits 0 to 4, a segment mask in bits 8 to 12.
    """
    offset, segment = offset & 31, (control >> 8) & 31
    first = lane & segment
    limit = (first | (control & 31 & ~segment)).read_as("s32")
    match mode:
        case "up":
            source = lane - offset
        case "down":
            source = lane + offset
        case "bfly":
            source = lane ^ offset
        case _:
            source = first | (offset & ~segment)
    within = source.read_as("s32") >= limit if mode == "up" else source.read_as("s32") <= limit
    return where(within, source, lane), within


def vote(mode: str, votes: Value, present: Value, members: Value) -> Value:
    """``vote``: return the members whose predicate is true, or whether it is true for any, for all, or for all or none.

    `votes` contains the present lanes whose predicate is true.
    """
    votes = votes & members
    if mode == "ballot":
        return votes
    if mode == "any":
        return votes.differs(0)
    every = votes.equals(present & members)
    return every | votes.equals(0) if mode == "uni" else every


def match_any(same: Value, present: Value, members: Value) -> Value:
    """``match.any``: return the members that hold the same value as the lane; `same` holds all lanes that have it."""
    return same & present & members


def match_all(same: Value, present: Value, members: Value) -> tuple[Value, Value]:
    """``match.all``: return the members and true if all hold the same value, else zero and false."""
    everyone = present & members
    alike = (same & everyone).equals(everyone)
    return where(alike, everyone, 0), alike


def elect(lane: Value, present: Value, members: Value) -> tuple[Value, Value]:
    """``elect``: return the index of the lowest member, and whether the lane is that member."""
    everyone = present & members
    leader = popc((everyone & -everyone) - 1)
    return leader, leader.equals(lane)


# --- atomics and reductions


def combine(operation: str, x: Value, y: Value) -> Value:
    """Return the reduction of two values."""
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
