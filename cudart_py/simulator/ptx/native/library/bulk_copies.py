"""Bulk copies between global and shared memory (``cp.async.bulk``), for all lanes of a warp.

``bulk.TO(context, shared, global, sizes, mask)`` makes the lanes' copies, one after another, to the space `TO`, and
returns true; or it copies nothing and returns false if any copy is misaligned, out of bounds or in several allocations.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...operations.matrix_descriptors import UNIT
from ...windows import RESERVED_SHARED
from ..layout import Context
from ..vectors import I1, I32, I64, PTR, vector
from .frame import Spilled, begin, each_active, when
from .hosts import extent_of

Value = Any


def build_bulk_copy(module: ir.Module, name: str) -> None:
    """Build the function for one direction."""
    to = name.partition(".")[2]
    types = [PTR, vector(I32), vector(I64), vector(I32), I32]
    b, (context, inside, outside, sizes, mask) = begin(module, name, I1, types)
    kept = [Spilled(b, values) for values in (b.zext(inside, vector(I64)), outside, b.zext(sizes, vector(I64)))]

    def operands(lane: Value) -> list[Value]:
        return [values.get(lane) for values in kept]

    def check(lane: Value) -> None:
        here, there, size = operands(lane)
        aligned = b.icmp_unsigned("==", b.and_(b.or_(b.or_(here, there), size), I64(UNIT - 1)), I64(0))
        fits = b.icmp_unsigned("<=", b.add(here, size), b.word(context, Context.SHARED_LIMIT))
        good = b.and_(b.and_(aligned, fits), b.icmp_unsigned(">=", here, I64(RESERVED_SHARED)))
        place, _, end = extent_of(b, context, there)
        found = b.and_(b.icmp_signed(">=", place, I64(0)), b.icmp_unsigned("<=", b.add(there, size), end))
        with when(b, b.not_(b.and_(good, found)), likely=False):
            b.ret(I1(0))

    def copy(lane: Value) -> None:
        here, there, size = operands(lane)
        ends = [
            b.inttoptr(b.add(address, b.word(context, base)), PTR)
            for address, base in ((here, Context.SHARED), (there, Context.DELTA))
        ]
        ends = ends if to == "shared" else ends[::-1]
        b.invoke("llvm.memcpy.p0.p0.i64", ir.VoidType(), *ends, size, I1(0))

    each_active(b, mask, check)
    each_active(b, mask, copy)
    b.ret(I1(1))
