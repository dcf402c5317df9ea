"""Atomic operations, executed one lane at a time.

``atom.SPACE.OPERATION.TYPE(context, addresses, mask, site, operand[, swapped])`` returns the old value for each lane.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions import halves
from ...instructions.values import Value as Number
from ...instructions.values import value_type
from ...syntax.types import type_size
from ...windows import SHARED_WINDOW
from ..vectors import F32, F64, I1, I32, I64, PTR, Builder, vector
from .frame import begin, each_active, element, when
from .hosts import address_type, checked

Value = Any

_HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def build_atomic(module: ir.Module, name: str) -> None:
    """Build an atomic operation."""
    _, space, operation, ptx_type = name.split(".")
    size = type_size(ptx_type)
    kind = ir.IntType(8 * size)
    count = 2 if operation == "cas" else 1
    arguments = [PTR, address_type(space), I32, I32, *[vector(kind)] * count]
    b, (context, given, mask, site, *values) = begin(module, name, vector(kind), arguments)
    right, hosts = checked(b, space, context, given, mask, site, size)
    with when(b, b.not_(right), likely=False):
        b.ret(b.const(kind, 0))
    places, found = b.alloca(vector(I64)), b.alloca(vector(kind))
    b.store(hosts, places, align=64)
    b.store(b.const(kind, 0), found, align=64)
    kept = [b.alloca(vector(kind)) for _ in values]
    for value, place in zip(values, kept, strict=True):
        b.store(value, place, align=64)

    def update(lane: Value) -> None:
        number = b.zext(lane, I64)
        place = b.inttoptr(b.load(element(b, places, number, I64), typ=I64), PTR)
        operands = [b.load(element(b, one, number, kind), typ=kind) for one in kept]
        old = b.load(place, typ=kind, align=size)
        # Float additions in global memory flush subnormal numbers; additions in shared memory don't.
        in_global = I1(0)
        if operation == "add" and ptx_type == "f32":
            in_global = _in_global(b, context, space, given, number)
        new = _updated(b, operation, ptx_type, old, operands, in_global)
        b.store(new, place, align=size)
        b.store(old, element(b, found, number, kind))

    each_active(b, mask, update)
    b.ret(b.load(found, typ=vector(kind), align=64))


def _in_global(b: Builder, context: Value, space: str, given: Value, number: Value) -> Value:
    if space != "generic":
        return I1(space == "global")
    return b.icmp_unsigned("<", b.extract_element(given, b.trunc(number, I32)), I64(SHARED_WINDOW))


def _updated(b: Builder, operation: str, ptx_type: str, old: Value, operands: list[Value], flushes: Value) -> Value:
    """Return the new value of an element."""
    operand, signed = operands[-1], ptx_type[0] == "s"
    kind = old.type
    if ptx_type in _HALVES:
        x, y = (Number(b, value_type(ptx_type), b.splat(bits)) for bits in (old, operand))
        return b.extract_element(halves.add(ptx_type, x, y).raw, I32(0))
    if operation == "add" and ptx_type in ("f32", "f64"):
        return _float_sum(b, ptx_type, old, operand, flushes)
    compare = b.icmp_signed if signed else b.icmp_unsigned
    if operation in ("add", "and", "or", "xor"):
        return {"add": b.add, "and": b.and_, "or": b.or_, "xor": b.xor}[operation](old, operand)
    if operation == "min":
        return b.select(compare("<", operand, old), operand, old)
    if operation == "max":
        return b.select(compare(">", operand, old), operand, old)
    if operation == "inc":
        return b.select(b.icmp_unsigned(">=", old, operand), kind(0), b.add(old, kind(1)))
    if operation == "dec":
        resets = b.or_(b.icmp_unsigned("==", old, kind(0)), b.icmp_unsigned(">", old, operand))
        return b.select(resets, operand, b.sub(old, kind(1)))
    if operation == "exch":
        return operand
    return b.select(b.icmp_unsigned("==", old, operands[0]), operand, old)


def _float_sum(b: Builder, ptx_type: str, old: Value, operand: Value, flushes: Value) -> Value:
    """Return the bits of a sum."""
    kind = F32 if ptx_type == "f32" else F64
    if kind == F32:
        exponent, sign = I32(0x7F800000), I32(0x80000000)

        def flushed(bits: Value) -> Value:
            tiny = b.icmp_unsigned("==", b.and_(bits, exponent), I32(0))
            return b.select(b.and_(tiny, flushes), b.and_(bits, sign), bits)

        total = b.bitcast(b.fadd(b.bitcast(flushed(old), kind), b.bitcast(flushed(operand), kind)), I32)
        return flushed(total)
    return b.bitcast(b.fadd(b.bitcast(old, kind), b.bitcast(operand, kind)), I64)
