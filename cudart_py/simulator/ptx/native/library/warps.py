"""Permutations, reductions and matches across the lanes of a warp, and functions of the C library for all lanes.

``permute(values, lanes)`` returns, for each lane, the value of the lane whose index it passes.
``redux.OPERATION.TYPE(values, members)`` reduces, for each lane, the values of the lanes in its `members` mask.
``match.TYPE(values)`` returns, for each lane, the mask of the lanes with the same value. ``math.FUNCTION(values)``
calls a function of the C library.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...syntax.types import type_size
from ..layout import LANES
from ..vectors import F64, I32, I64, Builder, vector
from .frame import begin, each_number, element

Value = Any


def build_permute(module: ir.Module, name: str) -> None:
    """Build the permutation of 32-bit words."""
    kind = vector(I32)
    b, (values, lanes) = begin(module, name, kind, [kind, kind])
    kept = b.alloca(kind)
    b.store(values, kept, align=64)
    result: Value = ir.Constant(kind, ir.Undefined)
    for lane in range(LANES):
        source = b.zext(b.extract_element(lanes, I32(lane)), I64)
        result = b.insert_element(result, b.load(element(b, kept, source, I32), typ=I32), I32(lane))
    b.ret(result)


def build_redux(module: ir.Module, name: str) -> None:
    """Build a reduction."""
    _, operation, ptx_type = name.split(".")
    kind = vector(I32)
    b, (values, members) = begin(module, name, kind, [kind, kind])
    neutral = {
        "min": 0x7FFFFFFF if ptx_type == "s32" else 0xFFFFFFFF,
        "max": 0x80000000 if ptx_type == "s32" else 0,
        "and": 0xFFFFFFFF,
    }.get(operation, 0)
    kept, result = b.alloca(kind), b.alloca(kind)
    b.store(values, kept, align=64)
    b.store(b.const(I32, neutral), result, align=64)

    def join(lane: Value) -> None:
        value = b.splat(b.load(element(b, kept, b.zext(lane, I64), I32), typ=I32))
        counts = b.compare("!=", b.and_(b.lshr(members, b.splat(lane)), b.const(I32, 1)), 0)
        operand = b.select(counts, value, b.const(I32, neutral))
        total = b.load(result, typ=kind, align=64)
        joined = _joined(b, operation, ptx_type == "s32", total, operand)
        b.store(joined, result, align=64)

    each_number(b, LANES, join)
    b.ret(b.load(result, typ=kind, align=64))


def _joined(b: Builder, operation: str, signed: bool, x: Value, y: Value) -> Value:
    if operation in ("min", "max"):
        return (b.least if operation == "min" else b.greatest)(x, y, signed)
    return {"add": b.add, "and": b.and_, "or": b.or_, "xor": b.xor}[operation](x, y)


def build_match(module: ir.Module, name: str) -> None:
    """Build the search for equal values."""
    kind = ir.IntType(8 * type_size(name.split(".")[1]))
    words = vector(I32)
    b, (values,) = begin(module, name, words, [vector(kind)])
    kept, result = b.alloca(vector(kind)), b.alloca(words)
    b.store(values, kept, align=64)
    b.store(b.const(I32, 0), result, align=64)

    def look(lane: Value) -> None:
        value = b.splat(b.load(element(b, kept, b.zext(lane, I64), kind), typ=kind))
        same = b.zext(b.icmp_unsigned("==", values, value), words)
        found = b.or_(b.load(result, typ=words, align=64), b.shl(same, b.splat(lane)))
        b.store(found, result, align=64)

    each_number(b, LANES, look)
    b.ret(b.load(result, typ=words, align=64))


def build_math(module: ir.Module, name: str) -> None:
    """Build the function that calls a double-precision function of the C library for all lanes."""
    kind = vector(F64)
    b, (values,) = begin(module, name, kind, [kind])
    function = b.declared(name.split(".")[1], F64, [F64])
    kept, result = b.alloca(kind), b.alloca(kind)
    b.store(values, kept, align=64)

    def call(lane: Value) -> None:
        place = b.zext(lane, I64)
        value = b.load(element(b, kept, place, F64), typ=F64)
        b.store(b.call(function, [value]), element(b, result, place, F64))

    each_number(b, LANES, call)
    b.ret(b.load(result, typ=kind, align=64))
