"""Tell Python of strong accesses by which lanes release what they have fenced, or acquire what others have released.

``strong.KIND.SPACE(context, addresses, mask)`` looks at an access before it happens. `KIND` is "st" for one that only
writes, "ld" for one that only reads, and "at" for an atomic whose former value the lanes get.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ..layout import LANES, BlockCheck, Context, HostCall
from ..vectors import I8, I32, I64, PTR, vector
from .frame import ask_python, begin, element, when
from .records import block_word

Value = Any

# How many hashes addresses have: that of a word is its number's lowest bits.
HASHES = 1 << 12
# In a warp's word of lanes with fences: whether something has happened since its lanes came together.
EVENT = 1 << LANES


def build_strong(module: ir.Module, name: str) -> None:
    """Build the function that looks at a strong access of one kind to one space."""
    _, kind, space = name.split(".")
    b, (context, addresses, mask) = begin(module, name, ir.VoidType(), [PTR, vector(I64), I32])
    if space == "generic":
        # Barriers of the grid are kept in a window of their own.
        for window in (SHARED_WINDOW, LOCAL_WINDOW):
            offsets = b.sub(addresses, b.const(I64, window))
            mask = b.and_(mask, b.bits(b.compare(">=", offsets, WINDOW_BYTES)))
    writers: Value = I64(0)
    readers: Value = I64(0)
    if kind != "ld":
        warp = b.word(context, Context.WARP_AT_HAND)
        fenced = b.load(element(b, block_word(b, context, BlockCheck.FENCED), warp, I64), typ=I64)
        writers = b.and_(fenced, b.zext(mask, I64))
    if kind != "st":
        released = b.pointer(context, Context.RELEASED)
        hashes = b.and_(b.lshr(addresses, b.const(I64, 2)), b.const(I64, HASHES - 1))
        found: Value = b.const(I8, 0)
        for lane in range(LANES):
            there = b.load(b.at(released, b.extract_element(hashes, I32(lane))), typ=I8)
            found = b.insert_element(found, there, I32(lane))
        readers = b.zext(b.and_(b.bits(b.compare("!=", found, 0)), mask), I64)
    with when(b, b.icmp_unsigned("!=", b.or_(writers, readers), I64(0)), likely=False):
        b.store(addresses, b.pointer(context, Context.STRONG_ADDRESSES), align=8)
        ask_python(b, context, HostCall.STRONG, b.or_(writers, b.shl(readers, I64(LANES))))
    b.ret_void()
