"""Check bulk copies to shared memory, and accesses to what they have written; `checks.races.bulk` defines the rules.

``bulkcopy.SHIFT(context, shared, global, sizes, barriers, mask, site)`` examines the copies of a warp's lanes before
they are made. ``bulked.KIND.SPACE.SIZE(context, addresses, mask, site)`` examines an access to shared memory ("ld" or
"st"). Lanes that have waited at a copy's barrier since may access what it has written. ``waited.all(context)`` passes
this on to all lanes at a barrier of the block, and ``waited.warp(context)`` to a warp that synchronises.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....operations.matrix_descriptors import UNIT
from ....windows import RESERVED_SHARED
from ...layout import BlockCheck, Context, Doubt
from ...vectors import I1, I8, I32, I64, PTR, Builder, vector
from ..frame import Spilled, begin, each_active, each_number, element, when
from ..hosts import address_type, shared_offsets
from .clocks import MOST, number_of
from .records import OWN, block_value, block_word, doubt_if, first_thread

Value = Any

_WORD = 2
_ROW = vector(I32)


def waited_of(b: Builder, context: Value, warp: Value) -> Value:
    """Return the pointer to a warp's row: for each barrier, the lanes that have waited there since its last copy."""
    return b.at(b.pointer(context, Context.BULK_WAITED), b.mul(warp, I64(4 * MOST)))


def _not_waited(b: Builder, context: Value, mark: Value, lane: Value) -> Value:
    """Return whether a lane has not waited at the barrier that a word's mark names."""
    row = waited_of(b, context, b.word(context, Context.WARP_AT_HAND))
    lanes = b.load(element(b, row, b.sub(b.zext(mark, I64), I64(1)), I32), typ=I32)
    return b.icmp_unsigned("==", b.and_(b.lshr(lanes, lane), I32(1)), I32(0))


def build_bulk_check(module: ir.Module, name: str) -> None:
    """Build the check of copies."""
    shift = int(name.partition(".")[2])
    wide = vector(I64)
    types = [PTR, vector(I32), wide, vector(I32), vector(I32), I32, I32]
    b, (context, inside, outside, sizes, barriers, mask, site) = begin(module, name, ir.VoidType(), types)
    operands = (b.zext(inside, wide), outside, b.zext(sizes, wide), b.zext(barriers, wide))
    kept = [Spilled(b, values) for values in operands]
    barrier = block_value(b, context, BlockCheck.BARRIER)
    doubt_if(b, context, b.icmp_unsigned("==", block_value(b, context, BlockCheck.READ), barrier), site, Doubt.SHARED)
    b.store(barrier, block_word(b, context, BlockCheck.WRITTEN))
    marks = b.pointer(context, Context.BULK_MARKS)

    def check(lane: Value) -> None:
        here, there, size, at = (one.get(lane) for one in kept)
        end = b.add(here, size)
        good = b.icmp_unsigned("==", b.and_(b.or_(here, size), I64(UNIT - 1)), I64(0))
        for place, last in ((here, end), (at, b.add(at, I64(8)))):
            good = b.and_(good, b.icmp_unsigned(">=", place, I64(RESERVED_SHARED)))
            good = b.and_(good, b.icmp_unsigned("<=", last, b.word(context, Context.SHARED_END)))
        doubt_if(b, context, b.not_(good), site)

        def load(unit: Value) -> None:
            place, own = b.splat(b.add(there, b.shl(unit, I64(4)))), b.shl(I32(1), lane)
            b.invoke(f"check.load.plain.global.8.2.{shift}", ir.VoidType(), context, place, own, site)

        each_number(b, b.lshr(size, I64(4)), load)
        warp = b.word(context, Context.WARP_AT_HAND)
        thread = b.add(b.add(first_thread(b, context), b.shl(warp, I64(5))), b.zext(lane, I64))
        record = b.or_(b.word(context, Context.NOW), thread)

        def compare(number: Value) -> None:
            piece = b.add(b.lshr(here, I64(shift)), number)
            for table in (Context.SHARED_WRITES, Context.SHARED_READS):
                before = b.load(element(b, b.pointer(context, table), piece, I64), typ=I64)
                other = b.icmp_unsigned("!=", b.and_(before, I64(OWN)), thread)
                with when(b, b.and_(b.icmp_unsigned(">=", before, barrier), other)):
                    doubt_if(b, context, b.not_(b.invoke("ordered.shared", I1, context, before, thread)), site)
            b.store(record, element(b, b.pointer(context, Context.SHARED_WRITES), piece, I64))

        each_number(b, b.lshr(size, I64(shift)), compare)
        word = b.load(b.inttoptr(b.add(at, b.word(context, Context.SHARED)), PTR), typ=I64)
        counter = number_of(b, context, site, at, word)

        def mark(number: Value) -> None:
            place = b.at(marks, b.add(b.lshr(here, I64(_WORD)), number))
            before = b.load(place, typ=I8)
            with when(b, b.icmp_unsigned("!=", before, I8(0))):
                doubt_if(b, context, _not_waited(b, context, before, lane), site)
            b.store(b.trunc(b.add(counter, I64(1)), I8), place)

        each_number(b, b.lshr(size, I64(_WORD)), mark)
        each_number(
            b,
            b.word(context, Context.WARPS),
            lambda other: b.store(I32(0), element(b, waited_of(b, context, other), counter, I32)),
        )

    each_active(b, mask, check)
    b.invoke("clock.arrive.shared", ir.VoidType(), context, barriers, mask, site, b.const(I64, 0))
    b.ret_void()


def build_bulked(module: ir.Module, name: str) -> None:
    """Build the check of accesses to words that copies may have written."""
    _, kind, space, text = name.split(".")
    size = int(text)
    b, (context, given, mask, site) = begin(module, name, ir.VoidType(), [PTR, address_type(space), I32, I32])
    wide, lanes = shared_offsets(b, space, given, mask)
    # Other lanes fault, which the access itself detects.
    last = b.sub(b.word(context, Context.SHARED_END), I64(size))
    lanes = b.and_(lanes, b.bits(b.icmp_signed("<=", wide, b.splat(last))))
    kept = Spilled(b, b.lshr(wide, b.const(I64, _WORD)))
    marks = b.pointer(context, Context.BULK_MARKS)

    def look(lane: Value) -> None:
        first = kept.get(lane)
        for index in range(max(1, size >> _WORD)):
            place = b.at(marks, b.add(first, I64(index)))
            mark = b.load(place, typ=I8)
            with when(b, b.icmp_unsigned("!=", mark, I8(0)), likely=False):
                doubt_if(b, context, _not_waited(b, context, mark, lane), site)
                if kind == "st":
                    b.store(I8(0), place)

    each_active(b, lanes, look)
    b.ret_void()


def build_waited(module: ir.Module, name: str) -> None:
    """Build the function that passes on the waits of some lanes to all lanes of a block or a warp."""
    b, (context,) = begin(module, name, ir.VoidType(), [PTR])
    nobody, everybody = b.const(I32, 0), b.const(I32, -1)
    if name.endswith("warp"):
        row = waited_of(b, context, b.word(context, Context.WARP_AT_HAND))
        lanes = b.load(row, typ=_ROW, align=4)
        b.store(b.select(b.compare("!=", lanes, 0), everybody, nobody), row, align=4)
        b.ret_void()
        return
    total, count = Spilled(b, nobody), b.word(context, Context.WARPS)

    def gather(warp: Value) -> None:
        lanes = b.load(waited_of(b, context, warp), typ=_ROW, align=4)
        total.whole = b.or_(total.whole, lanes)

    each_number(b, count, gather)
    found = b.select(b.compare("!=", total.whole, 0), everybody, nobody)
    each_number(b, count, lambda warp: b.store(found, waited_of(b, context, warp), align=4))
    b.ret_void()
