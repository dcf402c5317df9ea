"""Track the copies of ``cp.async``: which threads have waited for them, and whether that wait happens before an access.

``issued.SIZE(context, addresses, mask)`` records copies to shared memory. ``awaited.N(context, mask)`` records that
lanes end a group of copies (N is "commit") or have waited for all groups but the last N (for all copies if N is "all").
``settle.block(context)`` determines which copies are complete for all threads of a block at a barrier, and
``settle.warp`` which copies are complete for the lanes of a warp that synchronises. ``settle.begin`` marks all copies
as complete when a block begins. ``copied.SPACE.SIZE(context, addresses, mask, site)`` examines an access, and raises a
doubt if it touches a word whose copy isn't complete for the lane.

Each block has a clock that these events advance. Each word of shared memory has a record of its last copy: the time,
and the index of the thread in the block. A thread's copies are complete for itself up to the time at which the last
group that it has waited for ended.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from llvmlite import ir

from ....windows import RESERVED_SHARED
from ...layout import LANES, BlockCheck, Clock, Context, CopyRow
from ...vectors import I32, I64, PTR, Builder, vector
from ..frame import Spilled, begin, each_active, element, repeat, when, words_at
from ..hosts import address_type, safe_addresses, shared_offsets
from .records import block_value, block_word, doubt_if

Value = Any

# The number of a thread's latest groups whose end times are kept.
GROUPS = CopyRow.WORDS - CopyRow.ENDED
_WORD = 2
# The lowest bits of a record are the index of the thread in its block.
_THREAD_BITS = 10
_THREAD = (1 << _THREAD_BITS) - 1
_ROW = 8 * LANES


def _row(b: Builder, context: Value, warp: Value, row: int) -> Value:
    """Return the pointer to one of a warp's rows, which has one time per lane."""
    rows = b.pointer(context, Context.COPY_ROWS)
    return b.at(rows, b.add(b.mul(warp, I64(_ROW * CopyRow.WORDS)), I64(_ROW * row)))


def _get(b: Builder, place: Value) -> Value:
    return b.load(place, typ=vector(I64), align=8)


def _put(b: Builder, place: Value, mask: Value, value: Value) -> None:
    """Set the times in a row for the lanes of a mask."""
    b.store(b.select(b.truth(mask), value, _get(b, place)), place, align=8)


def _tick(b: Builder, context: Value) -> Value:
    """Return the time of the block's clock of copies, and advance it."""
    word = block_word(b, context, BlockCheck.COPY_TIME)
    now = b.load(word, typ=I64)
    b.store(b.add(now, I64(1)), word)
    return now


def _complete(b: Builder, context: Value, warp: Value) -> tuple[Value, Value]:
    """Return which lanes of a warp have no incomplete copies, and up to which time each lane's copies are complete."""
    complete, for_all = (_get(b, _row(b, context, warp, row)) for row in (CopyRow.COMPLETE, CopyRow.FOR_ALL))
    until = b.greatest(complete, for_all, False)
    return b.icmp_unsigned("<=", _get(b, _row(b, context, warp, CopyRow.ISSUED)), until), until


def complete_copies(b: Builder, context: Value, warp: Value) -> Value:
    """Return up to which time the copies of all lanes of a warp are complete; 0 in a kernel without copies."""
    found = b.alloca(I64)
    b.store(I64(0), found)
    with when(b, b.icmp_unsigned("!=", b.word(context, Context.COPY_ROWS), I64(0))):
        idle, until = _complete(b, context, warp)
        b.store(b.reduced("umin", b.select(idle, b.splat(_tick(b, context)), until)), found)
    return b.load(found, typ=I64)


def build_issued(module: ir.Module, name: str) -> None:
    """Build the function that records copies of one size."""
    size = int(name.partition(".")[2])
    b, (context, addresses, mask) = begin(module, name, ir.VoidType(), [PTR, vector(I32), I32])
    now, warp = block_value(b, context, BlockCheck.COPY_TIME), b.word(context, Context.WARP_AT_HAND)
    idle, until = _complete(b, context, warp)
    _put(b, _row(b, context, warp, CopyRow.COMPLETE), mask, b.select(idle, b.splat(b.sub(now, I64(1))), until))
    _put(b, _row(b, context, warp, CopyRow.ISSUED), mask, b.splat(now))
    wide = b.zext(safe_addresses(b, addresses, mask), vector(I64))
    low, high = (block_word(b, context, word) for word in (BlockCheck.COPY_LOW, BlockCheck.COPY_HIGH))
    b.store(b.least(b.load(low, typ=I64), b.reduced("umin", wide), False), low)
    b.store(b.greatest(b.load(high, typ=I64), b.add(b.reduced("umax", wide), I64(size)), False), high)
    # Lanes outside shared memory fault, which the access itself detects.
    end = b.sub(b.word(context, Context.SHARED_END), I64(size))
    inside = b.bits(b.and_(b.compare(">=", wide, RESERVED_SHARED), b.icmp_signed("<=", wide, b.splat(end))))
    words, kept = b.pointer(context, Context.COPY_WORDS), Spilled(b, wide)
    first = b.or_(b.shl(now, I64(_THREAD_BITS)), b.shl(warp, I64(5)))

    def note(lane: Value) -> None:
        number = b.zext(lane, I64)
        word = b.lshr(kept.get(number), I64(_WORD))
        for index in range(size >> _WORD):
            b.store(b.or_(first, number), element(b, words, b.add(word, I64(index)), I64))

    each_active(b, b.and_(mask, inside), note)
    b.ret_void()


def build_awaited(module: ir.Module, name: str) -> None:
    """Build the function that records the end of a group of copies, or a wait for groups."""
    what = name.partition(".")[2]
    b, (context, mask) = begin(module, name, ir.VoidType(), [PTR, I32])
    warp = b.word(context, Context.WARP_AT_HAND)
    complete = _row(b, context, warp, CopyRow.COMPLETE)
    if what in ("commit", "all"):
        ended = [_row(b, context, warp, CopyRow.ENDED + age) for age in range(GROUPS)]
        for newer, older in reversed(list(pairwise(ended))):
            _put(b, older, mask, _get(b, newer))
        _put(b, ended[0], mask, b.splat(_tick(b, context)))
    if what != "commit":
        age = 0 if what == "all" else int(what)
        _put(
            b,
            complete,
            mask,
            b.greatest(_get(b, complete), _get(b, _row(b, context, warp, CopyRow.ENDED + age)), False),
        )
    b.ret_void()


def build_settle(module: ir.Module, name: str) -> None:
    """Build the function that determines which copies are complete at a barrier, for a warp, or as a block begins."""
    what = name.partition(".")[2]
    b, (context,) = begin(module, name, ir.VoidType(), [PTR])
    now = _tick(b, context)
    if what == "warp":
        _settle(b, context, b.word(context, Context.WARP_AT_HAND), now, [CopyRow.FOR_WARP])
        b.ret_void()
        return
    rows = [CopyRow.FOR_WARP, CopyRow.FOR_ALL]

    def settle(warp: Value, waiting: Value) -> list[Value]:
        if what == "begin":
            for row in rows:
                b.store(b.splat(now), _row(b, context, warp, row), align=8)
        else:
            waiting = b.or_(waiting, _settle(b, context, warp, now, rows))
        return [b.add(warp, I64(1)), waiting]

    warps = b.word(context, Context.WARPS)
    _, some = repeat(b, [I64(0), I32(0)], lambda warp, _: b.icmp_unsigned("<", warp, warps), settle)
    with when(b, b.icmp_unsigned("==", some, I32(0)), likely=True):
        b.store(I64(-1), block_word(b, context, BlockCheck.COPY_LOW))
        b.store(I64(0), block_word(b, context, BlockCheck.COPY_HIGH))
    b.ret_void()


def _settle(b: Builder, context: Value, warp: Value, now: Value, rows: list[CopyRow]) -> Value:
    """Mark each lane's complete copies as complete for others in `rows`; return the lanes with incomplete copies."""
    idle, until = _complete(b, context, warp)
    for row in rows:
        b.store(b.select(idle, b.splat(now), until), _row(b, context, warp, row), align=8)
    return b.not_(b.bits(idle))


def build_copied(module: ir.Module, name: str) -> None:
    """Build the function that checks whether an access touches a copy that isn't complete."""
    _, space, text = name.split(".")
    size = int(text)
    b, (context, given, mask, site) = begin(module, name, ir.VoidType(), [PTR, address_type(space), I32, I32])
    wide, lanes = shared_offsets(b, space, given, mask)
    low, high = (block_value(b, context, word) for word in (BlockCheck.COPY_LOW, BlockCheck.COPY_HIGH))
    end = b.sub(b.word(context, Context.SHARED_END), I64(size))
    high = b.least(high, b.add(end, I64(1)), False)
    # Other lanes access memory before or after the incomplete copies, or fault, which the access itself detects.
    near = b.and_(
        b.icmp_unsigned(">", b.add(wide, b.const(I64, size)), b.splat(low)), b.icmp_unsigned("<", wide, b.splat(high))
    )
    lanes = b.and_(lanes, b.bits(near))
    with when(b, b.icmp_unsigned("==", lanes, I32(0)), likely=True):
        b.ret_void()
    words, warp = b.pointer(context, Context.COPY_WORDS), b.word(context, Context.WARP_AT_HAND)
    clocks = b.word(context, Context.CLOCKS)
    complete = _get(b, _row(b, context, warp, CopyRow.COMPLETE))
    first = b.lshr(safe_addresses(b, wide, lanes), b.const(I64, _WORD))
    for index in range(max(1, size >> _WORD)):
        found = words_at(b, words, b.add(first, b.const(I64, index)))
        time, thread = b.lshr(found, b.const(I64, _THREAD_BITS)), b.and_(found, b.const(I64, _THREAD))
        owner = b.lshr(thread, b.const(I64, 5))
        row = b.select(
            b.icmp_unsigned("==", owner, b.splat(warp)),
            b.const(I64, CopyRow.FOR_WARP * LANES),
            b.const(I64, CopyRow.FOR_ALL * LANES),
        )
        place = b.add(b.mul(owner, b.const(I64, CopyRow.WORDS * LANES)), row)
        place = b.add(place, b.and_(thread, b.const(I64, LANES - 1)))
        fine = b.icmp_unsigned("<=", time, words_at(b, b.pointer(context, Context.COPY_ROWS), place))
        own = b.icmp_unsigned("==", thread, b.add(b.splat(b.shl(warp, I64(5))), b.lanes(I64)))
        fine = b.or_(fine, b.and_(own, b.icmp_unsigned("<=", time, complete)))
        late = b.and_(b.bits(b.not_(fine)), lanes)
        kept = b.alloca(I32)
        b.store(late, kept)
        with when(b, b.and_(b.icmp_unsigned("!=", late, I32(0)), b.icmp_unsigned("!=", clocks, I64(0)))):
            # Barriers in memory may have told the lane's warp.
            mine = b.add(b.mul(warp, I64(Clock.ENTRIES)), I64(Clock.WARPS + Clock.COPIES))
            known = words_at(b, b.inttoptr(clocks, PTR), b.add(b.splat(mine), owner))
            b.store(b.and_(late, b.bits(b.icmp_unsigned(">", time, known))), kept)
        doubt_if(b, context, b.icmp_unsigned("!=", b.load(kept, typ=I32), I32(0)), site)
    b.ret_void()
