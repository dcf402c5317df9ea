"""Compare an access with the records of all lanes of a warp at once, if their pieces are contiguous.

``noted.load.plain.global.SIZE.COUNT.SHIFT(context, addresses, mask, site)`` records loads from memory that a launch
does not store to, for work that may overlap the launch. It leaves records like those of ``check.load``, but compares
nothing: one load of a piece stands for all, because no access of the launch itself races with it. All lanes access the
current allocation of the site.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...layout import LANES, Context, SiteCheck
from ...vectors import I1, I16, I32, I64, vector
from ..frame import Spilled, each_active, when
from .comparing import Comparison
from .records import LINE_BITS, OLD, RECORD, in_complete_records, site_place, site_row

Value = Any

_ALL = 0xFFFFFFFF
# The maximum number of pieces per lane that are compared as vectors.
_MOST_PIECES = 4


class SideBySide(Comparison):
    """A check of lanes whose pieces are contiguous: it compares the records of lines, or else of pieces."""

    def side_by_side(
        self, first: Value, start: Value, tables: Sequence[tuple[Value, Value | None]], limit: Value, floor: Value
    ) -> None:
        """Compare the records of all lanes at once if their pieces are contiguous, and return if none is suspect.

        `tables` contains, for writes and for reads, the records of pieces and the records of lines.
        """
        if self.pieces > _MOST_PIECES:
            return
        b = self.b
        with when(b, self.follow(first), likely=True):
            base, now = self.first_of_warp(), b.word(self.context, Context.NOW)
            mark = now if self.loads or not self.strong else b.or_(now, I64(self.strong_flags))
            (writes, write_lines), (reads, read_lines) = tables
            aligned = b.icmp_unsigned("==", b.and_(start, I64(LANES - 1)), I64(0))
            if write_lines is not None:
                with when(b, aligned, likely=True):
                    self._whole_lines(first, start, (write_lines, read_lines), (base, mark), limit, floor)
            pieces = self.reach(start, LANES * self.pieces)
            numbers = [b.add(start, I64(part * LANES)) for part in range(self.pieces)]

            def load(records: Value) -> list[Value]:
                return [b.load(self.record(records, number), typ=vector(I64), align=RECORD) for number in numbers]

            befores = self._seen(tables[0], pieces, limit, load, not self.loads)
            # A load that leaves no records is compared with writes alone.
            earliers = self._seen(tables[1], pieces, limit, load, self.loads) if self.leaves else befores
            fine: Value = I1(1)
            parts = []
            for part, (before, earlier) in enumerate(zip(befores, earliers, strict=True)):
                lanes = [(part * LANES + index) // self.pieces for index in range(LANES)]
                thread = b.add(b.splat(base), b.each(I64, lanes))
                good = self._good(before, earlier, thread, limit, floor)
                fine = b.and_(fine, b.icmp_unsigned("==", b.bits(good), I32(_ALL)))
                parts.append((self.record(reads if self.loads else writes, numbers[part]), thread, numbers[part]))
            with when(b, fine, likely=True):
                if write_lines is not None:
                    with when(b, aligned, likely=True):
                        self.leave_lines(read_lines if self.loads else write_lines, start, base, mark)
                        others = (write_lines, befores) if self.loads else (read_lines, earliers)
                        self._forget(start, *others, limit)
                        self.end_side_by_side(first)
                if self.leaves:
                    for place, thread, number in parts:
                        b.store(b.or_(b.splat(mark), thread), place, align=RECORD)
                        self.leave_site(reads if self.loads else writes, number, LANES)
                self.end_side_by_side(first)
        if self.pieces == 1:
            self._partly_side_by_side(tables, limit, floor)

    def _seen(
        self,
        table: tuple[Value, Value | None],
        pieces: Sequence[Value],
        limit: Value,
        load: Callable[[Value], list[Value]],
        leaves: bool,
    ) -> list[Value]:
        """Return records that `load` loads from the table of writes or of reads, in whose lines `pieces` are.

        In the table in which the access `leaves` no records, old lines are not expanded: that would touch much memory.
        """
        b, (records, lines) = self.b, table
        if lines is None:
            return load(records)
        if leaves:
            self.expand(records, lines, pieces)
            return load(records)
        seen = [Spilled(b, b.const(I64, OLD)) for _ in range(self.pieces)]
        with when(b, b.not_(self.are_old(lines, pieces, limit)), likely=False):
            self.expand(records, lines, pieces)
            for one, values in zip(seen, load(records), strict=True):
                one.whole = values
        return [one.whole for one in seen]

    def follow(self, first: Value) -> Value:
        """Return whether all lanes take part, and their addresses are contiguous from the first lane's on."""
        b = self.b
        full = b.icmp_unsigned("==", self.mask, I32(_ALL))
        steps = b.each(I64, [lane * self.whole for lane in range(LANES)])
        follow = b.icmp_unsigned("==", b.sub(self.wide, b.splat(first)), steps)
        return b.and_(full, b.icmp_unsigned("==", b.bits(follow), I32(_ALL)))

    def _partly_side_by_side(self, tables: Sequence[tuple[Value, Value | None]], limit: Value, floor: Value) -> None:
        """Compare the records of the active lanes if their pieces are contiguous, and return if none is suspect."""
        b = self.b
        low = b.zext(b.trailing_zeros(self.mask), I64)
        high = b.zext(b.sub(I32(LANES - 1), b.leading_zeros(self.mask)), I64)
        lowest = b.extract_element(self.wide, b.trunc(low, I32))
        first = b.sub(lowest, b.mul(low, I64(self.whole)))
        steps = b.each(I64, [lane * self.whole for lane in range(LANES)])
        follow = b.bits(b.icmp_unsigned("==", b.sub(self.wide, b.splat(first)), steps))
        with when(b, b.icmp_unsigned("==", b.and_(follow, self.mask), self.mask)):
            start = b.sub(self.piece_of(lowest), low)
            thread = b.add(b.splat(self.first_of_warp()), b.lanes(I64))
            flags, nothing = b.truth(self.mask), b.const(I64, 0)

            def load(records: Value) -> list[Value]:
                place = self.record(records, start)
                return [b.invoke("llvm.masked.load.v32i64.p0", vector(I64), place, flags, nothing)]

            pieces = [b.add(start, end) for end in (low, high)]
            [before] = self._seen(tables[0], pieces, limit, load, not self.loads)
            [earlier] = self._seen(tables[1], pieces, limit, load, self.loads) if self.leaves else [before]
            good = b.bits(self._good(before, earlier, thread, limit, floor))
            with when(b, b.icmp_unsigned("==", b.and_(good, self.mask), self.mask), likely=True):
                if self.leaves:
                    now = b.word(self.context, Context.NOW)
                    mark = now if self.loads or not self.strong else b.or_(now, I64(self.strong_flags))
                    kept, records = b.or_(b.splat(mark), thread), tables[1 if self.loads else 0][0]
                    place = self.record(records, start)
                    b.invoke("llvm.masked.store.v32i64.p0", ir.VoidType(), kept, place, flags)
                    self._leave_some_sites(records, start, flags)
                self.end_side_by_side(lowest, b.sub(high, low))

    def _leave_some_sites(self, records: Value, start: Value, flags: Value) -> None:
        """Store the site of the records of the active lanes."""
        if self.space != "global":
            return
        b = self.b
        with in_complete_records(b, self.context):
            # The sites are in descending order.
            reversed_flags = b.shuffle_vector(flags, flags, b.each(I32, range(LANES - 1, -1, -1)))
            sites = b.splat(b.trunc(self.site, I16))
            place = site_place(b, records, start, LANES)
            b.invoke("llvm.masked.store.v32i16.p0", ir.VoidType(), sites, place, reversed_flags)

    def end_side_by_side(self, first: Value, last: Value | None = None) -> None:
        """Return from the check; before a store, first save the memory that it changes.

        `first` is the first lane's address, and `last` the number of lanes after it, by default 31.
        """
        b = self.b
        if not self.loads:
            last = I64(LANES - 1) if last is None else last
            self.save(first)
            self.save(b.add(first, b.mul(last, I64(self.whole))))
        b.ret_void()

    def _good(self, before: Value, earlier: Value, thread: Value, limit: Value, floor: Value) -> Value:
        """Return whether the records of the last write and the last read (vectors or scalars) raise no suspicion."""
        b = self.b
        if self.cached:
            is_old = b.icmp_unsigned("<", before, b.like(before, limit))
            return b.and_(is_old, self.plainly(earlier, thread, limit))
        good = self.plainly(before, thread, limit)
        if self.loads:
            there = b.icmp_unsigned(">=", before, b.like(before, floor))
            if self.strong:
                good = b.or_(good, b.not_(self.scoped(before, limit)))
            good = b.and_(good, there)
        if self.leaves:
            good = b.and_(good, self.plainly(earlier, thread, limit))
        if self.strong and not self.loads:
            good = b.and_(good, b.not_(self.is_plain(before, limit)))
            if not self.block_scope:
                good = b.and_(good, b.not_(self.scoped(before, limit)))
        return good

    def _line_threads(self, part: int, base: Value) -> Value:
        """Return the thread bits of the record of one of the lines that a warp accesses.

        They are the line's first thread, with the binary logarithm of the pieces per thread in the lowest bits.
        """
        spread = self.pieces.bit_length() - 1
        return self.b.add(base, I64(part * LANES // self.pieces | spread))

    def line(self, lines: Value, start: Value, part: int = 0) -> Value:
        """Return the pointer to the record of the line of a piece, or of the line `part` lines after it."""
        b = self.b
        return self.record(lines, b.add(b.lshr(start, I64(LINE_BITS)), I64(part)))

    def _whole_lines(
        self,
        first: Value,
        start: Value,
        tables: tuple[Value, Value],
        mine: tuple[Value, Value],
        limit: Value,
        floor: Value,
    ) -> None:
        """Compare the records of whole lines, and return if none is suspect."""
        b, (base, mark) = self.b, mine
        fine: Value = I1(1)
        for part in range(self.pieces):
            before, earlier = (b.load(self.line(lines, start, part), typ=I64) for lines in tables)
            good = self._good(before, earlier, self._line_threads(part, base), limit, floor)
            # A line whose record is 0 has records of its pieces instead.
            present = b.icmp_unsigned("!=", before, I64(0))
            if self.leaves:
                present = b.and_(present, b.icmp_unsigned("!=", earlier, I64(0)))
            fine = b.and_(fine, b.and_(good, present))
        with when(b, fine, likely=True):
            self.leave_lines(tables[1 if self.loads else 0], start, base, mark)
            self.end_side_by_side(first)

    def _forget(self, start: Value, lines: Value, pieces: list[Value], limit: Value) -> None:
        """Restore the single record of a line if the records of its pieces are all old."""
        b = self.b
        for part, records in enumerate(pieces):
            old = b.icmp_unsigned("==", b.bits(b.icmp_unsigned("<", records, b.splat(limit))), I32(_ALL))
            b.store(b.select(old, I64(OLD), I64(0)), self.line(lines, start, part))

    def leave_lines(self, lines: Value, start: Value, base: Value, mark: Value) -> None:
        """Leave the records of the whole lines from the piece `start` on."""
        if not self.leaves:
            return
        for part in range(self.pieces):
            self.b.store(self.b.or_(mark, self._line_threads(part, base)), self.line(lines, start, part))
            number = self.b.add(self.b.lshr(start, I64(LINE_BITS)), I64(part))
            self.leave_site(lines, number)


class _Note(SideBySide):
    """The function for one kind of load, while it is built."""

    def build(self) -> None:
        """Build the function."""
        b, site = self.b, site_row(self.b, self.context, self.site)
        records, lines = (b.load(b.at(site, 8 * word), typ=I64) for word in (SiteCheck.READS, SiteCheck.READ_LINES))
        base, limit, now = self.first_of_warp(), *(b.word(self.context, word) for word in (Context.BEGIN, Context.NOW))
        first = b.extract_element(self.wide, b.trailing_zeros(self.mask))
        start = self.piece_of(first)
        whole = b.icmp_unsigned("==", b.and_(start, I64(LANES - 1)), I64(0))
        with when(b, b.and_(whole, self.follow(first)), likely=True):
            self.leave_lines(lines, start, base, now)
            b.ret_void()
        same = b.bits(b.icmp_unsigned("==", self.wide, b.splat(first)))
        all_are = b.icmp_unsigned("==", b.and_(same, self.mask), self.mask)
        self.spill()

        def leave(lane: Value) -> None:
            piece = self.piece_of(self.lane(0, lane))
            for number in range(self.pieces):
                one = b.add(piece, I64(number))
                with when(b, b.icmp_unsigned("<", b.load(self.line(lines, one), typ=I64), limit)):
                    self.expand(records, lines, [one])
                    place = self.record(records, one)
                    with when(b, b.icmp_unsigned("<", b.load(place, typ=I64), limit)):
                        b.store(b.or_(now, b.add(base, b.zext(lane, I64))), place)
                        self.leave_site(records, one)

        each_active(b, b.select(all_are, b.and_(b.sub(I32(0), self.mask), self.mask), self.mask), leave)
        b.ret_void()


def build_note(module: ir.Module, name: str) -> None:
    """Build the function that records one kind of load."""
    _Note(module, name).build()
