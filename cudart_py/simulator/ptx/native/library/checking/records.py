"""The checks' records of accesses: their format, their happens-before order, and how to find an allocation's records.

A record is a 64-bit word. Its lowest bits are the thread, the bits above are flags, and the upper half is the time. The
time advances at barriers and fences, when a warp synchronises, and when a block begins.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from llvmlite import ir

from ....running.observer import Apart, PieceRecords
from ....windows import RESERVED_SHARED
from ...layout import LANES, BlockCheck, Clock, Context, Doubt, ExtentCheck, Fault, HostCall, Readers, SiteCheck
from ...vectors import I1, I16, I32, I64, PTR, Builder, vector
from ..frame import ask_python, begin, each_number, element, when
from ..hosts import extent_of

Value = Any

# Memory is saved before the launch changes it, in granules of ``1 << GRANULE_BITS`` bytes.
GRANULE_BITS = 16

THREAD = PieceRecords.THREAD
MOST_THREADS = THREAD + 1
# Flags of a record: the access is strong with block scope; the record also covers accesses by other lanes of the warp,
# by other warps of the block, by other blocks; the access is strong. A record with the flag of block scope may also be
# that of a strong write after a plain one: by the same thread if the record is not strong, or else by the same block.
BLOCK_SCOPE, STRONG = PieceRecords.BLOCK_SCOPE, PieceRecords.STRONG
LANES_BIT, WARPS_BIT, BLOCKS_BIT = Apart
PARTS = LANES_BIT | WARPS_BIT | BLOCKS_BIT
# The bits that equal a thread's number if a record covers accesses by this thread alone, strong or not.
OWN = THREAD | PARTS
TICK = 1 << PieceRecords.TIME
# The size of a record in bytes, and a record that is older than all launches.
RECORD = 8
OLD = PieceRecords.WRITTEN
# The size of a site's number in bytes.
SITE = 2
# A line is ``1 << LINE_BITS`` pieces that can share one record. The lowest bits of that record are the binary logarithm
# of the number of consecutive pieces per thread.
LINE_BITS = 5
_SPREAD = 3


def block_word(b: Builder, context: Value, word: BlockCheck) -> Value:
    """Return the pointer to a word of the checks' state for the current block."""
    return b.at(b.pointer(context, Context.BLOCK_CHECKS), 8 * word)


def block_value(b: Builder, context: Value, word: BlockCheck) -> Value:
    """Return a word of the checks' state for the current block."""
    return b.load(block_word(b, context, word), typ=I64)


def raise_doubt(b: Builder, context: Value, site: Value, doubt: Value | Doubt) -> None:
    """Record that the launch must run again, unless it has a fault or doubt already."""
    with when(b, b.icmp_unsigned("==", b.word(context, Context.FAULT), I64(0))):
        b.set_word(context, Context.FAULT, I64(Fault.DOUBT))
        b.set_word(context, Context.FAULT_SITE, b.zext(site, I64))
        b.set_word(context, Context.FAULT_MASK, I64(doubt))


def doubt_if(b: Builder, context: Value, truth: Value, site: Value, doubt: Doubt = Doubt.FINDING) -> None:
    """Return from a function without a result, with a doubt, under a condition."""
    with when(b, truth, likely=False):
        raise_doubt(b, context, site, doubt)
        b.ret_void()


def note_unwritten(b: Builder, context: Value, site: Value, lanes: Value) -> None:
    """Record that lanes load unwritten memory, which is a doubt unless the code follows undefined values."""
    b.set_word(context, Context.UNWRITTEN, b.or_(b.word(context, Context.UNWRITTEN), b.zext(lanes, I64)))
    with when(b, b.icmp_unsigned("==", b.word(context, Context.FOLLOWS), I64(0))):
        raise_doubt(b, context, site, Doubt.UNWRITTEN)


def first_thread(b: Builder, context: Value) -> Value:
    """Return the number of the first thread of the current block; each warp counts as 32 threads."""
    return b.mul(b.word(context, Context.BLOCK), threads_of_block(b, context))


def threads_of_block(b: Builder, context: Value) -> Value:
    """Return the number of thread numbers per block: 32 per warp."""
    return b.shl(b.word(context, Context.WARPS), I64(5))


def of_warps(b: Builder, context: Value, times: Value) -> Value:
    """Return times with one element per warp; the elements that belong to no warp get the latest time."""
    exists = b.icmp_unsigned("<", b.lanes(I64), b.splat(b.word(context, Context.WARPS)))
    return b.select(exists, times, b.const(I64, -1))


def converged(b: Builder, context: Value, thread: Value) -> Value:
    """Return the time at which a thread of the current block last synchronised with lanes of its warp."""
    number = b.sub(thread, first_thread(b, context))
    return b.load(element(b, block_word(b, context, BlockCheck.CONVERGED), number, I64), typ=I64)


def build_ordered(module: ir.Module, name: str) -> None:
    """Build ``ordered.SPACE(context, record, thread)``: whether a record's access happens before a thread's next.

    Order by fences is considered only for global memory.
    """
    b, (context, record, thread) = begin(module, name, I1, [PTR, I64, I64])
    with when(b, b.icmp_unsigned("==", b.and_(record, I64(OWN)), thread), likely=True):
        b.ret(I1(1))
    owner = b.and_(record, I64(THREAD))
    own_block = b.icmp_unsigned("<", b.sub(owner, first_thread(b, context)), threads_of_block(b, context))
    one_block = b.icmp_unsigned("==", b.and_(record, I64(BLOCKS_BIT)), I64(0))
    past = b.icmp_unsigned("<", record, block_value(b, context, BlockCheck.BARRIER))
    with when(b, b.and_(b.and_(own_block, one_block), past)):
        b.ret(I1(1))
    own_warp = b.icmp_unsigned("==", b.lshr(owner, I64(5)), b.lshr(thread, I64(5)))
    alone = b.icmp_unsigned("==", b.and_(record, I64(WARPS_BIT | BLOCKS_BIT)), I64(0))
    warp = b.lshr(b.sub(thread, first_thread(b, context)), I64(5))
    time = b.load(element(b, block_word(b, context, BlockCheck.WARPS), warp, I64), typ=I64)
    with when(b, b.and_(b.and_(own_warp, alone), b.icmp_unsigned("<", record, time))):
        # It is not known which other lanes a record covers, so synchronising any lanes counts as ordering all of them.
        several = b.icmp_unsigned("!=", b.and_(record, I64(LANES_BIT)), I64(0))
        both = b.least(*(converged(b, context, one) for one in (owner, thread)), False)
        with when(b, b.or_(several, b.icmp_unsigned("<", record, both))):
            b.ret(I1(1))
    width = b.word(context, Context.CLUSTER)
    rank = b.urem(b.word(context, Context.BLOCK), width)
    from_first = b.sub(owner, b.sub(first_thread(b, context), b.mul(rank, threads_of_block(b, context))))
    own_cluster = b.icmp_unsigned("<", from_first, b.mul(width, threads_of_block(b, context)))
    past = b.icmp_unsigned("<", record, b.word(context, Context.CLUSTER_TIME))
    with when(b, b.and_(b.and_(own_cluster, one_block), past)):
        b.ret(I1(1))
    clocks = b.word(context, Context.CLOCKS)
    with when(b, b.and_(b.and_(own_block, one_block), b.icmp_unsigned("!=", clocks, I64(0)))):
        _return_if_told(b, context, record, thread, (warp, time))
    if name.endswith("shared"):
        b.ret(I1(0))
        return
    acquired = block_value(b, context, BlockCheck.ACQUIRED)
    with when(b, b.icmp_unsigned("==", acquired, I64(0)), likely=True):
        b.ret(I1(0))
    from_known = b.sub(owner, block_value(b, context, BlockCheck.KNOWN_FIRST))
    known = b.and_(
        b.icmp_unsigned("<", from_known, I64(LANES)),
        b.icmp_unsigned("<", record, block_value(b, context, BlockCheck.KNOWN_UNTIL)),
    )
    with when(b, b.and_(known, b.icmp_unsigned("==", b.and_(record, I64(WARPS_BIT | BLOCKS_BIT)), I64(0)))):
        b.ret(I1(1))
    b.set_word(context, Context.RECORD, record)
    b.set_word(context, Context.ANSWER, I64(0))
    ask_python(b, context, HostCall.ORDERED, thread)
    b.ret(b.icmp_unsigned("!=", b.word(context, Context.ANSWER), I64(0)))


def _return_if_told(b: Builder, context: Value, record: Value, thread: Value, mine: tuple[Value, Value]) -> None:
    """Return true from the function if barriers in memory order a record's accesses before a thread's next one.

    `mine` is the thread's warp, and the time at which the warp last synchronised.
    """
    warp, together = mine
    clocks = b.pointer(context, Context.CLOCKS)
    clock = element(b, clocks, b.add(b.mul(warp, I64(Clock.ENTRIES)), I64(Clock.WARPS)), I64)
    several = b.icmp_unsigned("!=", b.and_(record, I64(WARPS_BIT)), I64(0))
    owner = _warp_of(b, context, b.and_(record, I64(THREAD)))
    passed = b.icmp_unsigned("<", record, b.load(element(b, clock, owner, I64), typ=I64))
    with when(b, b.and_(passed, b.not_(several))):
        b.ret(I1(1))
    with when(b, several):
        times = b.load(clock, typ=vector(I64), align=8)
        row, key = _readers(b, context, record, owner)
        known = b.icmp_unsigned("==", b.load(row, typ=I64), key)
        with when(b, b.and_(known, b.icmp_unsigned("==", b.and_(record, I64(STRONG)), I64(0)))):
            of_own = b.icmp_unsigned("==", b.lanes(I64), b.splat(warp))
            until = b.select(of_own, b.greatest(times, b.splat(together), False), times)
            reads = b.load(b.at(row, 8 * Readers.TIMES), typ=vector(I64), align=8)
            fine = b.or_(b.icmp_unsigned("<", reads, until), b.compare("==", reads, 0))
            # Reads by the thread itself need no order.
            mixed = b.or_(b.load(b.at(row, 8 * Readers.MIXED), typ=I64), _lanes_differ(b, record, thread))
            fine = b.or_(fine, b.and_(of_own, b.splat(b.icmp_unsigned("==", mixed, I64(0)))))
            with when(b, b.icmp_unsigned("==", b.bits(fine), I32(0xFFFFFFFF))):
                b.ret(I1(1))
        with when(b, b.icmp_unsigned("<", record, b.reduced("umin", of_warps(b, context, times)))):
            b.ret(I1(1))


def _lanes_differ(b: Builder, one: Value, other: Value) -> Value:
    """Return whether two threads have different lanes (not 0) or the same lane of perhaps different warps (0)."""
    return b.and_(b.xor(one, other), I64(LANES - 1))


def _warp_of(b: Builder, context: Value, thread: Value) -> Value:
    """Return the index in the current block of a thread's warp."""
    return b.lshr(b.sub(thread, first_thread(b, context)), I64(5))


def _readers(b: Builder, context: Value, record: Value, warp: Value) -> tuple[Value, Value]:
    """Return the pointer to the row of `Readers` for a read by a warp, and the key of that read."""
    time = b.lshr(record, I64(32))
    key = b.or_(b.shl(time, I64(5)), warp)
    number = b.and_(b.add(time, b.mul(warp, I64(11))), I64(Readers.ROWS - 1))
    return element(b, b.pointer(context, Context.READERS), b.mul(number, I64(Readers.WORDS)), I64), key


def build_readers(module: ir.Module, name: str) -> None:
    """Build ``readers.(context, before, mine)``: note that the record of a read now stands for an earlier one, too."""
    b, (context, before, mine) = begin(module, name, ir.VoidType(), [PTR, I64, I64])
    owner, warp = (_warp_of(b, context, b.and_(record, I64(THREAD))) for record in (before, mine))
    row, key = _readers(b, context, mine, warp)
    with when(b, b.icmp_unsigned("!=", b.load(row, typ=I64), key)):
        b.store(key, row)
        b.store(b.const(I64, 0), b.at(row, 8 * Readers.TIMES), align=8)
        b.store(b.and_(mine, I64(-TICK)), element(b, b.at(row, 8 * Readers.TIMES), warp, I64))
        b.store(I64(0), b.at(row, 8 * Readers.MIXED))
    parts = b.and_(before, I64(WARPS_BIT | LANES_BIT))
    within = b.zext(b.icmp_unsigned("==", parts, I64(LANES_BIT)), I64)
    mixed = b.alloca(I64)
    b.store(b.or_(within, _lanes_differ(b, before, mine)), mixed)
    when_read = b.splat(b.and_(before, I64(-TICK)))
    of_owner = b.icmp_unsigned("==", b.lanes(I64), b.splat(owner))
    earlier = b.alloca(vector(I64))
    b.store(b.select(of_owner, when_read, b.const(I64, 0)), earlier, align=64)
    with when(b, b.icmp_unsigned("!=", b.and_(before, I64(WARPS_BIT)), I64(0))):
        other, other_key = _readers(b, context, before, owner)
        kept = b.load(b.at(other, 8 * Readers.TIMES), typ=vector(I64), align=8)
        exists = b.icmp_unsigned("<", b.lanes(I64), b.splat(b.word(context, Context.WARPS)))
        known = b.icmp_unsigned("==", b.load(other, typ=I64), other_key)
        unknown = b.select(exists, when_read, b.const(I64, 0))
        b.store(b.select(b.splat(known), kept, unknown), earlier, align=64)
        others = b.select(known, b.load(b.at(other, 8 * Readers.MIXED), typ=I64), I64(1))
        b.store(b.or_(b.load(mixed, typ=I64), others), mixed)
    place = b.at(row, 8 * Readers.TIMES)
    times = b.load(place, typ=vector(I64), align=8)
    b.store(b.greatest(times, b.load(earlier, typ=vector(I64), align=64), False), place, align=8)
    place = b.at(row, 8 * Readers.MIXED)
    b.store(b.or_(b.load(place, typ=I64), b.load(mixed, typ=I64)), place)
    b.ret_void()


def build_find(module: ir.Module, name: str) -> None:
    """Build ``find.(context, site, address, stores)``.

    The function makes the allocation at the address the site's current allocation, and returns whether there is one.
    An allocation of which loads alone are checked, none of them recorded, needs no records.
    """
    b, (context, site, address, stores) = begin(module, name, I1, [PTR, I32, I64, I1])
    place, start, end = extent_of(b, context, address)
    inside = b.and_(b.icmp_signed(">=", place, I64(0)), b.icmp_unsigned("<", address, end))
    with when(b, b.not_(inside), likely=False):
        b.ret(I1(0))
    extent = b.at(b.pointer(context, Context.CHECK_EXTENTS), b.mul(place, I64(8 * ExtentCheck.WORDS)))

    def get(word: ExtentCheck) -> Value:
        return b.load(b.at(extent, 8 * word), typ=I64)

    kept = site_row(b, context, site)
    recorded = b.or_(b.load(b.at(kept, 8 * SiteCheck.RECORDS), typ=I64), b.word(context, Context.COMPLETE))
    recorded = b.or_(stores, b.icmp_unsigned("!=", recorded, I64(0)))

    def missing() -> Value:
        unready = b.icmp_unsigned("==", get(ExtentCheck.READY), I64(0))
        return b.or_(unready, b.and_(recorded, b.icmp_unsigned("==", get(ExtentCheck.WRITES), I64(0))))

    with when(b, missing(), likely=False):
        ask_python(b, context, HostCall.PREPARE, b.or_(place, b.shl(b.zext(recorded, I64), I64(LANES))))
        with when(b, missing()):
            b.ret(I1(0))
    for name in ("WRITES", "READS", "WRITE_LINES", "READ_LINES", "FLOOR"):
        b.store(get(ExtentCheck[name]), b.at(kept, 8 * SiteCheck[name]))
    b.store(start, b.at(kept, 8 * SiteCheck.LOW))
    b.store(end, b.at(kept, 8 * SiteCheck.HIGH))
    records = b.or_(b.load(b.at(kept, 8 * SiteCheck.RECORDS), typ=I64), get(ExtentCheck.FLOOR))
    b.store(I64(2), b.at(extent, 8 * ExtentCheck.READY))
    b.store(records, b.at(kept, 8 * SiteCheck.MODE))
    with when(b, stores):
        b.store(I64(1), b.at(extent, 8 * ExtentCheck.STORED))
        loaded = get(ExtentCheck.LOADED)
        with when(b, b.icmp_unsigned("!=", loaded, I64(0)), likely=False):
            raise_doubt(b, context, b.trunc(b.sub(loaded, I64(1)), I32), Doubt.GLOBAL)
        b.ret(I1(1))
    with when(b, b.icmp_unsigned("==", records, I64(0))):
        b.store(b.add(b.zext(site, I64), I64(1)), b.at(extent, 8 * ExtentCheck.LOADED))
        with when(b, b.icmp_unsigned("!=", get(ExtentCheck.STORED), I64(0)), likely=False):
            raise_doubt(b, context, site, Doubt.GLOBAL)
    b.ret(I1(1))


def site_row(b: Builder, context: Value, site: Value) -> Value:
    """Return the pointer to the checks' state for a site."""
    return b.at(b.pointer(context, Context.CHECK_SITES), b.mul(b.zext(site, I64), I64(8 * SiteCheck.WORDS)))


def build_expand(module: ir.Module, name: str) -> None:
    """Build ``expand.(context, records, lines, line)``, which replaces a line's record by records of its pieces."""
    b, (context, records, lines, line) = begin(module, name, ir.VoidType(), [PTR, I64, I64, I64])
    place = b.inttoptr(b.add(lines, b.shl(line, I64(3))), PTR)
    record = b.load(place, typ=I64)
    spread = b.and_(record, I64(_SPREAD))
    threads = b.lshr(b.lanes(I64), b.splat(spread))
    pieces = b.inttoptr(b.add(records, b.shl(line, I64(3 + LINE_BITS))), PTR)
    b.store(b.add(b.splat(b.sub(record, spread)), threads), pieces, align=RECORD)
    b.store(I64(0), place)
    with in_complete_records(b, context):
        site = b.load(site_place(b, lines, line), typ=I16)
        b.store(b.splat(site), site_place(b, records, b.shl(line, I64(LINE_BITS)), LANES), align=SITE)
    b.ret_void()


def in_complete_records(b: Builder, context: Value) -> AbstractContextManager[None]:
    """Return the context of code for launches that other work may overlap, so that records have sites."""
    return when(b, b.icmp_unsigned("!=", b.word(context, Context.COMPLETE), I64(0)), likely=False)


def site_place(b: Builder, records: Value, number: Value, count: int = 1) -> Value:
    """Return the pointer to the sites of `count` records from a number on, which are kept below them, last first."""
    return b.inttoptr(b.sub(records, b.mul(b.add(number, I64(count)), I64(SITE))), PTR)


def build_filled(module: ir.Module, name: str) -> None:
    """Build ``filled.SHIFT(context)``: whether all of a block's shared memory has been written."""
    shift = int(name.partition(".")[2])
    b, (context,) = begin(module, name, I1, [PTR])
    writes, floor = b.pointer(context, Context.SHARED_WRITES), block_value(b, context, BlockCheck.BEGIN)
    # The loop may read beyond the last piece: the records there count as written.
    end = b.lshr(b.add(b.word(context, Context.SHARED_END), I64((1 << shift) - 1)), I64(shift))

    def look(piece: Value) -> None:
        records = b.load(element(b, writes, piece, I64), typ=vector(I64), align=RECORD)
        missing = b.bits(b.icmp_unsigned("<", records, b.splat(floor)))
        with when(b, b.icmp_unsigned("!=", missing, I32(0)), likely=False):
            b.ret(I1(0))

    each_number(b, end, look, RESERVED_SHARED >> shift, LANES)
    b.ret(I1(1))
