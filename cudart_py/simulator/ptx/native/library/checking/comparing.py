"""The base class of the checks of accesses to global and shared memory, which reads and writes records and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ...layout import BlockCheck, Context, Doubt, HostCall, SiteCheck
from ...vectors import I1, I8, I16, I32, I64, PTR, vector
from ..frame import Spilled, ask_python, begin, when
from ..hosts import address_type
from .records import (
    BLOCK_SCOPE,
    GRANULE_BITS,
    LINE_BITS,
    OWN,
    SITE,
    STRONG,
    block_value,
    converged,
    first_thread,
    in_complete_records,
    raise_doubt,
    site_place,
    site_row,
)

Value = Any

# The kinds of accesses that don't change memory.
LOADS = ("load", "guess", "fetch")


class Comparison:
    """The function that checks one kind of access, while it is built."""

    def __init__(self, module: ir.Module, name: str) -> None:
        _, self.kind, self.strength, self.space, size, count, shift = name.split(".")
        self.size, self.count, self.shift = int(size), int(count), int(shift)
        self.whole = self.size * self.count
        self.pieces = max(1, self.whole >> self.shift)
        self.loads = self.kind in LOADS
        # A load with block scope is treated as a plain one: an unnecessary doubt costs only time.
        self.block_scope = self.strength == "block" and not self.loads
        self.strong = self.strength == "strong" or self.block_scope
        self.strong_flags = STRONG | (BLOCK_SCOPE if self.block_scope else 0)
        # Whether the access leaves records. Strong loads leave none, because they race only with block-scope accesses
        # of other blocks; guesses leave none, because they don't race with compare-and-swaps.
        self.leaves = not self.loads or (self.kind != "guess" and not self.strong)
        # Fetches race with all earlier writes of the launch, and may read memory that nothing has written.
        self.cached = self.kind == "fetch"
        self.types = [vector(ir.IntType(8 * self.size))] * (self.count if self.kind == "store" else 0)
        self.b, arguments = begin(module, name, ir.VoidType(), [PTR, address_type(self.space), I32, I32, *self.types])
        self.context, self.addresses, self.mask, self.site, *self.values = arguments
        b = self.b
        with when(b, b.icmp_unsigned("==", self.mask, I32(0)), likely=False):
            b.ret_void()
        self.wide = self.addresses if self.addresses.type.element == I64 else b.zext(self.addresses, vector(I64))

    # --- records

    def first_of_warp(self) -> Value:
        """Return the number of the first thread of the current warp."""
        b = self.b
        return b.add(first_thread(b, self.context), b.shl(b.word(self.context, Context.WARP_AT_HAND), I64(5)))

    def piece_of(self, address: Value, low: Value | None = None) -> Value:
        """Return the index of the piece at an address; in global memory, relative to the allocation at `low`."""
        b = self.b
        if self.space == "global":
            if low is None:
                low = b.load(b.at(site_row(b, self.context, self.site), 8 * SiteCheck.LOW), typ=I64)
            address = b.sub(address, b.and_(low, I64(-4)))
        return b.lshr(address, I64(self.shift))

    def record(self, table: Value, number: Value) -> Value:
        """Return the pointer to a record in a table."""
        return self.b.inttoptr(self.b.add(table, self.b.shl(number, I64(3))), PTR)

    def reach(self, piece: Value, count: int) -> list[Value]:
        """Return pieces, one at least in each line, of `count` pieces from `piece` on."""
        ends = [*range(0, count, 1 << LINE_BITS), *([count - 1] if count > 1 else [])]
        return [self.b.add(piece, I64(number)) for number in ends]

    def expand(self, records: Value, lines: Value, pieces: Sequence[Value]) -> None:
        """Replace the records of the lines that contain some pieces with records of each of their pieces."""
        b = self.b
        for piece in pieces:
            line = b.lshr(piece, I64(LINE_BITS))
            there = b.load(self.record(lines, line), typ=I64)
            with when(b, b.icmp_unsigned("!=", there, I64(0)), likely=False):
                b.invoke("expand.", ir.VoidType(), self.context, records, lines, line)

    def are_old(self, lines: Value, pieces: Sequence[Value], limit: Value) -> Value:
        """Return whether the lines that contain some pieces have records, and all of these are older than `limit`.

        The pieces then need no records of their own for an access that leaves none there.
        """
        b, old = self.b, I1(1)
        for piece in pieces:
            there = b.load(self.record(lines, b.lshr(piece, I64(LINE_BITS))), typ=I64)
            one = b.and_(b.icmp_unsigned("!=", there, I64(0)), b.icmp_unsigned("<", there, limit))
            old = b.and_(old, one)
        return old

    def seen(self, records: Value, lines: Value, piece: Value, limit: Value) -> Value:
        """Return the record of a piece where the access leaves none: that of its line if it is old, see `are_old`."""
        b = self.b
        line = self.record(lines, b.lshr(piece, I64(LINE_BITS)))
        kept = b.alloca(I64)
        b.store(b.load(line, typ=I64), kept)
        with when(b, b.not_(self.are_old(lines, [piece], limit)), likely=False):
            self.expand(records, lines, [piece])
            b.store(b.load(self.record(records, piece), typ=I64), kept)
        return b.load(kept, typ=I64)

    def leave_site(self, records: Value, number: Value, count: int = 1) -> None:
        """Store the site of `count` records from a number on, if other work may need it; see `in_complete_records`."""
        if self.space == "global":
            b = self.b
            with in_complete_records(b, self.context):
                site = b.trunc(self.site, I16)
                place = site_place(b, records, number, count)
                b.store(b.splat(site, count) if count > 1 else site, place, align=SITE)

    def plainly(self, record: Value, thread: Value, limit: Value) -> Value:
        """Return whether records are older than `limit`, or cover accesses by the same thread alone."""
        b = self.b
        own = b.icmp_unsigned("==", b.and_(record, b.like(record, OWN)), thread)
        return b.or_(b.icmp_unsigned("<", record, b.like(record, limit)), own)

    def hides(self, record: Value, thread: Value) -> Value:
        """Return whether a strong write by a thread must not replace a record of the same thread.

        This holds for a record of a plain write since the last barrier and since the thread last synchronised with
        lanes of its warp, which may race with strong writes of other threads.
        """
        b = self.b
        barrier = block_value(b, self.context, BlockCheck.BARRIER)
        recent = b.icmp_unsigned(">=", record, b.greatest(barrier, converged(b, self.context, thread), False))
        return b.and_(recent, b.compare("==", b.and_(record, I64(STRONG)), 0))

    def is_plain(self, record: Value, limit: Value) -> Value:
        """Return whether records are of plain accesses since `limit`, or since the block's last barrier."""
        b = self.b
        since = b.least(limit, block_value(b, self.context, BlockCheck.BARRIER), False)
        recent = b.icmp_unsigned(">=", record, b.like(record, since))
        return b.and_(recent, b.compare("==", b.and_(record, b.like(record, STRONG)), 0))

    def scoped(self, record: Value, limit: Value) -> Value:
        """Return whether records are of this launch's block-scope accesses, which are atomic only in their block."""
        b = self.b
        recent = b.icmp_unsigned(">=", record, b.like(record, limit))
        flags = b.and_(record, b.like(record, STRONG | BLOCK_SCOPE))
        return b.and_(recent, b.compare("==", flags, STRONG | BLOCK_SCOPE))

    def doubt(self) -> None:
        """Record that there may be a finding."""
        raise_doubt(self.b, self.context, self.site, Doubt.FINDING)

    def spill(self) -> None:
        """Store the lanes' addresses and values in memory, where they can be read one at a time."""
        self.spilled = [Spilled(self.b, values) for values in (self.wide, *self.values)]

    def lane(self, which: int, lane: Value) -> Value:
        """Return a lane's address if `which` is 0, or the `which`-th value that it stores, counted from 1."""
        return self.spilled[which].get(lane)

    # --- memory

    def _host(self, address: Value) -> Value:
        b = self.b
        base = Context.SHARED if self.space == "shared" else Context.DELTA
        return b.inttoptr(b.add(address, b.word(self.context, base)), PTR)

    def unchanged(self, address: Value, lane: Value) -> Value:
        """Return whether a lane's store writes the values that are already there."""
        b, place = self.b, self._host(address)
        same: Value = I1(1)
        for number, values in enumerate(self.values):
            there = b.load(b.at(place, number * self.size), typ=values.type.element, align=1)
            same = b.and_(same, b.icmp_unsigned("==", there, self.lane(1 + number, lane)))
        return same

    def put(self, address: Value, lane: Value) -> None:
        """Store a lane's values now, so that the checks of later lanes see them, unless the memory can't be saved."""
        b, place = self.b, self._host(address)
        aligned = b.icmp_unsigned("==", b.and_(address, I64(self.whole - 1)), I64(0))
        with when(b, aligned, likely=True), when(b, self.save(address), likely=True):
            for number in range(len(self.values)):
                b.store(self.lane(1 + number, lane), b.at(place, number * self.size), align=1)

    def save(self, address: Value) -> Value:
        """Have Python save a granule of memory before its first change; return whether it is saved.

        Only global memory is saved, because all other memory belongs to the launch.
        """
        b = self.b
        if self.space != "global":
            return I1(1)
        number = b.lshr(b.sub(address, b.word(self.context, Context.SAVED_BASE)), I64(GRANULE_BITS))
        flag = b.at(b.pointer(self.context, Context.SAVED), number)
        with when(b, b.icmp_unsigned("==", b.load(flag, typ=I8), I8(0)), likely=False):
            ask_python(b, self.context, HostCall.SAVE, number)
        return b.icmp_unsigned("!=", b.load(flag, typ=I8), I8(0))
