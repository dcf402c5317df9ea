"""Report to Python the strong accesses by which lanes release what they have fenced or acquire what others released.

``strong.KIND.SPACE(context, addresses, mask)`` examines an access before it happens. `KIND` is "st" for an access that
only writes (including ``red``), "ld" for one that only reads, and "at" for an atomic that returns the previous value.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ...layout import LANES, BlockCheck, Context, HostCall
from ...vectors import I8, I32, I64, PTR, vector
from ..frame import ask_python, begin, element, when
from .records import block_word

Value = Any

# The number of hash values of an address. The hash is the lowest bits of the index of the address's 32-bit word.
HASHES = 1 << 12
# A flag in a warp's word at `BlockCheck.FENCED`, above the mask of lanes: set if its lanes have executed a fence or an
# acquire since they last synchronised.
EVENT = 1 << LANES


def build_strong(module: ir.Module, name: str) -> None:
    """Build the function that examines a strong access of one kind to one space."""
    _, kind, space = name.split(".")
    b, (context, addresses, mask) = begin(module, name, ir.VoidType(), [PTR, vector(I64), I32])
    if space == "generic":
        # Only shared and local memory are left out. The grid's barriers are in a window of their own, and are included.
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
