"""Atomic operations, executed one lane at a time.

``atom.SPACE.OPERATION.TYPE(context, addresses, mask, site, operand[, swapped])`` returns the old value for each lane.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions import warps
from ...instructions.values import Value as Number
from ...instructions.values import value_type
from ...syntax.types import type_size
from ...windows import SHARED_WINDOW
from ..vectors import I32, I64, PTR, Builder, vector
from .frame import Spilled, begin, each_active
from .hosts import address_type, checked

Value = Any


def build_atomic(module: ir.Module, name: str) -> None:
    """Build an atomic operation."""
    _, space, operation, ptx_type = name.split(".")
    size = type_size(ptx_type)
    kind, type = ir.IntType(8 * size), value_type(ptx_type)
    count = 2 if operation == "cas" else 1
    arguments = [PTR, address_type(space), I32, I32, *[vector(kind)] * count]
    b, (context, given, mask, site, *values) = begin(module, name, vector(kind), arguments)
    hosts = checked(b, space, context, given, mask, site, size)
    places, found = Spilled(b, hosts), Spilled(b, b.const(kind, 0))
    kept = [Spilled(b, value) for value in values]

    def update(lane: Value) -> None:
        number = b.zext(lane, I64)
        place = b.inttoptr(places.get(number), PTR)
        operands = [one.get(number) for one in kept]
        old = b.load(place, typ=kind, align=size)
        # Float additions in global memory flush subnormal numbers; additions in shared memory don't.
        flushes = _in_global(b, space, given, number) if operation == "add" and ptx_type == "f32" else False
        words = (Number(b, f"u{8 * size}", b.splat(word)).read_as(type) for word in (old, *operands))
        new = warps.updated(operation, ptx_type, flushes, *words)
        b.store(b.extract_element(new.bits.raw, I32(0)), place, align=size)
        found.put(number, old)

    each_active(b, mask, update)
    b.ret(found.whole)


def _in_global(b: Builder, space: str, given: Value, number: Value) -> bool | Number:
    """Return whether a lane's address is in global memory."""
    if space != "generic":
        return space == "global"
    truth = b.icmp_unsigned("<", b.extract_element(given, b.trunc(number, I32)), I64(SHARED_WINDOW))
    return Number(b, "pred", b.splat(truth))
