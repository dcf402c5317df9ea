"""Follow undefined values through the current block's shared memory; `writing/undefined.py` follows them in registers.

``undefined.store.SIZE(context, addresses, mask, lanes)`` marks the bytes that lanes store, as undefined for some lanes
and as defined for the others. ``undefined.load.SIZE(context, addresses, mask)`` returns the lanes that load undefined
bytes. The marks are the bytes after a word that says whether there may be any.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...layout import Context
from ...vectors import I32, I64, PTR, Builder, vector
from ..frame import Spilled, begin, each_active, when

Value = Any

# The size in bytes of the word that says whether there may be undefined bytes.
WORD = 8


def build_undefined(module: ir.Module, name: str) -> None:
    """Build one of the two functions."""
    _, verb, size = name.split(".")
    stores = verb == "store"
    arguments = [PTR, vector(I32), I32, *([I32] if stores else [])]
    b, (context, addresses, mask, *lanes) = begin(module, name, ir.VoidType() if stores else I32, arguments)
    marks = b.pointer(context, Context.SHARED_UNDEFINED)
    bits = ir.IntType(8 * int(size))
    every = bits(int.from_bytes(b"\1" * int(size), "little"))
    # Other lanes fault, which the access itself detects.
    last = b.sub(b.trunc(b.word(context, Context.SHARED_LIMIT), I32), I32(int(size)))
    mask = b.and_(mask, b.bits(b.icmp_unsigned("<=", addresses, b.splat(last))))
    kept, found = Spilled(b, addresses), b.alloca(I32)
    b.store(I32(0), found)
    if stores:
        with when(b, b.icmp_unsigned("!=", lanes[0], I32(0))):
            b.store(I64(1), marks)

    def visit(lane: Value) -> None:
        place = b.at(marks, b.add(b.zext(kept.get(lane), I64), I64(WORD)))
        if stores:
            chosen = b.icmp_unsigned("!=", b.and_(b.lshr(lanes[0], lane), I32(1)), I32(0))
            b.store(b.select(chosen, every, bits(0)), place, align=1)
        else:
            some = b.icmp_unsigned("!=", b.load(place, typ=bits, align=1), bits(0))
            b.store(b.or_(b.load(found, typ=I32), b.shl(b.zext(some, I32), lane)), found)

    each_active(b, mask, visit)
    if stores:
        b.ret_void()
    else:
        b.ret(b.load(found, typ=I32))


def may_be_some(b: Builder, context: Value) -> Value:
    """Return whether there may be undefined bytes in the block's shared memory."""
    return b.icmp_unsigned("!=", b.load(b.pointer(context, Context.SHARED_UNDEFINED), typ=I64), I64(0))
