"""Compare the records of an access with what its lanes do, and leave their own."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..layout import LANES, Context, Doubt
from ..vectors import I1, I8, I32, I64, PTR, vector
from .frame import begin, each_active, element, when
from .hosts import address_type
from .records import (
    BLOCKS_BIT,
    GRANULE_BITS,
    LANES_BIT,
    LINE_BITS,
    OLD,
    OWN,
    PARTS,
    RECORD,
    STRONG,
    THREAD,
    WARPS_BIT,
    call_python,
    first_thread,
    raise_doubt,
    threads_of_block,
)  # fmt: skip  # sorted

__all__ = ["Comparison"]

Value = Any

_ALL = 0xFFFFFFFF
# So many pieces of a lane at most are compared as vectors.
_MOST_PIECES = 4


class Comparison:
    """A check while it is built: what global and shared memory have in common."""

    def __init__(self, module: ir.Module, name: str) -> None:
        _, self.kind, self.space, size, count, shift = name.split(".")
        self.size, self.count, self.shift = int(size), int(count), int(shift)
        self.whole = self.size * self.count
        self.pieces = max(1, self.whole >> self.shift)
        self.loads = self.kind in ("ld", "ls")
        self.strong = self.kind in ("ls", "sv", "at")
        self.types = [vector(ir.IntType(8 * self.size))] * (self.count if self.kind in ("st", "sv") else 0)
        self.b, arguments = begin(module, name, ir.VoidType(), [PTR, address_type(self.space), I32, I32, *self.types])
        self.context, self.given, self.mask, self.site, *self.values = arguments
        b = self.b
        with when(b, b.icmp_unsigned("==", self.mask, I32(0)), likely=False):
            b.ret_void()
        self.wide = self.given if self.given.type.element == I64 else b.zext(self.given, vector(I64))

    # --- records

    def _base(self) -> Value:
        """Return the number of the first thread of the warp at hand."""
        b = self.b
        return b.add(first_thread(b, self.context), b.shl(b.word(self.context, Context.WARP_AT_HAND), I64(5)))

    def _expand(self, records: Value, lines: Value, piece: Value, count: int) -> None:
        """Give the pieces of lines their own records where the lines have some for all."""
        b = self.b
        line, last = (b.lshr(b.add(piece, I64(number)), I64(LINE_BITS)) for number in (0, count - 1))
        touched = [b.add(line, I64(number)) for number in range((count - 1 >> LINE_BITS) + 1)]
        for one in [*touched, *([last] if count > 1 else [])]:
            there = b.load(b.inttoptr(b.add(lines, b.shl(one, I64(3))), PTR), typ=I64)
            with when(b, b.icmp_unsigned("!=", there, I64(0)), likely=False):
                b.call(b.declared("expand.", ir.VoidType(), [I64, I64, I64]), [records, lines, one])

    def _side_by_side(
        self, first: Value, start: Value, tables: tuple[tuple[Value, Value | None], ...], limit: Value, floor: Value
    ) -> None:
        """Compare the records of all lanes at once where their pieces lie side by side, and return if all is well.

        `tables` are the records of pieces and of lines, those of writes and of reads.
        """
        if self.pieces > _MOST_PIECES:
            return
        b = self.b
        full = b.icmp_unsigned("==", self.mask, I32(_ALL))
        steps = b.each(I64, [lane * self.whole for lane in range(LANES)])
        follow = b.icmp_unsigned("==", b.sub(self.wide, b.splat(first)), steps)
        with when(b, b.and_(full, b.icmp_unsigned("==", b.bits(follow), I32(_ALL))), likely=True):
            base, now = self._base(), b.word(self.context, Context.NOW)
            mark = now if self.loads or not self.strong else b.or_(now, I64(STRONG))
            (writes, write_lines), (reads, read_lines) = tables
            aligned = b.icmp_unsigned("==", b.and_(start, I64(LANES - 1)), I64(0))
            if write_lines is not None:
                with when(b, aligned, likely=True):
                    self._whole_lines(first, start, (write_lines, read_lines), (base, mark), limit, floor)
                for records, lines in tables:
                    self._expand(records, lines, start, LANES * self.pieces)
            fine: Value = I1(1)
            parts, others = [], []
            for part in range(self.pieces):
                lanes = [(part * LANES + index) // self.pieces for index in range(LANES)]
                thread = b.add(b.splat(base), b.each(I64, lanes))
                offset = b.shl(b.add(start, I64(part * LANES)), I64(3))
                write, read = (b.inttoptr(b.add(table, offset), PTR) for table in (writes, reads))
                before, earlier = (b.load(one, typ=vector(I64), align=RECORD) for one in (write, read))
                good = self._good(before, earlier, thread, limit, floor)
                fine = b.and_(fine, b.icmp_unsigned("==", b.bits(good), I32(_ALL)))
                parts.append((read if self.loads else write, thread))
                others.append(before if self.loads else earlier)
            with when(b, fine, likely=True):
                if write_lines is not None:
                    with when(b, aligned, likely=True):
                        self._leave_lines(read_lines if self.loads else write_lines, start, base, mark)
                        self._forget(write_lines if self.loads else read_lines, start, others, limit)
                        self._end_side_by_side(first)
                if self.kind != "ls":
                    for place, thread in parts:
                        b.store(b.or_(b.splat(mark), thread), place, align=RECORD)
                self._end_side_by_side(first)

    def _end_side_by_side(self, first: Value) -> None:
        """Return, after memory is saved that a store changes."""
        if not self.loads and self.space == "global":
            self._save(first)
            self._save(self.b.add(first, I64(LANES * self.whole - 1)))
        self.b.ret_void()

    def _good(self, before: Value, earlier: Value, thread: Value, limit: Value, floor: Value) -> Value:
        """Return where neither the last write nor the last read may matter, by their records: vectors, or one each."""
        b = self.b
        good = self._plainly(before, thread, limit)
        if self.loads:
            same = b.splat(floor) if isinstance(before.type, ir.VectorType) else floor
            there = b.icmp_unsigned(">=", before, same)
            good = there if self.strong else b.and_(good, there)
        if self.kind != "ls":
            good = b.and_(good, self._plainly(earlier, thread, limit))
        return good

    def _line_threads(self, part: int, base: Value) -> Value:
        """Return the threads in the record of one of the lines that a warp accesses, as one number."""
        spread = self.pieces.bit_length() - 1
        return self.b.add(base, I64(part * LANES // self.pieces | spread))

    def _line(self, lines: Value, start: Value, part: int) -> Value:
        b = self.b
        number = b.add(b.lshr(start, I64(LINE_BITS)), I64(part))
        return b.inttoptr(b.add(lines, b.shl(number, I64(3))), PTR)

    def _whole_lines(
        self,
        first: Value,
        start: Value,
        tables: tuple[Value, Value],
        mine: tuple[Value, Value],
        limit: Value,
        floor: Value,
    ) -> None:
        """Compare the records of whole lines, and return if all is well."""
        b, (base, mark) = self.b, mine
        fine: Value = I1(1)
        for part in range(self.pieces):
            before, earlier = (b.load(self._line(lines, start, part), typ=I64) for lines in tables)
            good = self._good(before, earlier, self._line_threads(part, base), limit, floor)
            # Where a line has no record, its pieces have.
            present = b.icmp_unsigned("!=", before, I64(0))
            if self.kind != "ls":
                present = b.and_(present, b.icmp_unsigned("!=", earlier, I64(0)))
            fine = b.and_(fine, b.and_(good, present))
        with when(b, fine, likely=True):
            self._leave_lines(tables[1 if self.loads else 0], start, base, mark)
            self._end_side_by_side(first)

    def _forget(self, lines: Value, start: Value, pieces: list[Value], limit: Value) -> None:
        """Give lines a record again whose pieces' records are all old."""
        b = self.b
        for part, records in enumerate(pieces):
            old = b.icmp_unsigned("==", b.bits(b.icmp_unsigned("<", records, b.splat(limit))), I32(_ALL))
            b.store(b.select(old, I64(OLD), I64(0)), self._line(lines, start, part))

    def _leave_lines(self, lines: Value, start: Value, base: Value, mark: Value) -> None:
        if self.kind == "ls":
            return
        for part in range(self.pieces):
            self.b.store(self.b.or_(mark, self._line_threads(part, base)), self._line(lines, start, part))

    def _plainly(self, record: Value, thread: Value, limit: Value) -> Value:
        """Return whether records are old, or of the same threads alone."""
        b = self.b
        if isinstance(record.type, ir.VectorType):
            own = b.icmp_unsigned("==", b.and_(record, b.const(I64, OWN)), thread)
            return b.or_(b.icmp_unsigned("<", record, b.splat(limit)), own)
        own = b.icmp_unsigned("==", b.and_(record, I64(OWN)), thread)
        return b.or_(b.icmp_unsigned("<", record, limit), own)

    def _spill(self) -> None:
        """Put the addresses and values of the lanes where they can be read one by one."""
        b = self.b
        self.spilled = []
        for values in (self.wide, *self.values):
            kept = b.alloca(values.type)
            b.store(values, kept, align=64)
            self.spilled.append((kept, values.type.element))

    def _lane(self, which: int, lane: Value) -> Value:
        """Return the address of a lane, or one of the values that it stores, counted from 1."""
        kept, kind = self.spilled[which]
        return self.b.load(element(self.b, kept, self.b.zext(lane, I64), kind), typ=kind)

    def _one_by_one(self, place: Any, limit: Value) -> None:
        """Compare and leave the records of one lane after the other."""
        b = self.b
        base, now = self._base(), b.word(self.context, Context.NOW)
        self._spill()

        def judge(lane: Value) -> None:
            thread = b.add(base, b.zext(lane, I64))

            def compare(address: Value, piece: Value, writes: Value, reads: Value, floor: Value) -> None:
                for number in range(self.pieces):
                    offset = b.shl(b.add(piece, I64(number)), I64(3))
                    write, read = (b.inttoptr(b.add(table, offset), PTR) for table in (writes, reads))
                    self._compare(write, read, thread, limit, floor, now, lambda: self._unchanged(address, lane))

            place(lane, compare)

        each_active(b, self.mask, judge)
        if not self.loads:

            def record(lane: Value) -> None:
                thread = b.add(base, b.zext(lane, I64))

                def leave(address: Value, piece: Value, writes: Value, reads: Value, floor: Value) -> None:
                    if self.space == "global":
                        self._save(address)
                    for number in range(self.pieces):
                        write = b.inttoptr(b.add(writes, b.shl(b.add(piece, I64(number)), I64(3))), PTR)
                        self._leave(write, thread, limit, now, lambda: self._unchanged(address, lane))
                    if self.values:
                        self._put(address, lane)

                place(lane, leave)

            each_active(b, self.mask, record)
        b.ret_void()

    def _compare(
        self, write: Value, read: Value, thread: Value, limit: Value, floor: Value, now: Value, unchanged: Any
    ) -> None:
        """Compare one piece's records with what a lane does; a load leaves its own."""
        b = self.b
        before = b.load(write, typ=I64)
        if self.loads:
            with when(b, b.icmp_unsigned("<", before, floor), likely=False):
                self._doubt()
            if self.strong:
                return
            with when(b, self._conflicts(before, thread, limit), likely=False):
                self._doubt()
            self._merge(read, b.load(read, typ=I64), thread, limit, now)
            return
        with when(b, self._conflicts(before, thread, limit), likely=False):
            meets: Value = I1(1)
            if self.strong:
                meets = b.icmp_unsigned("==", b.and_(before, I64(STRONG)), I64(0))
            if self.values:
                meets = b.and_(meets, b.not_(unchanged()))
            with when(b, meets, likely=False):
                self._doubt()
        with when(b, self._conflicts(b.load(read, typ=I64), thread, limit), likely=False):
            meets = b.not_(unchanged()) if self.values else I1(1)
            with when(b, meets, likely=False):
                self._doubt()

    def _conflicts(self, record: Value, thread: Value, limit: Value) -> Value:
        """Return whether a record is of this launch, and nothing puts it before what a thread does now."""
        b = self.b
        start, look, after = b.block, b.append_basic_block(), b.append_basic_block()
        b.cbranch(b.icmp_unsigned("<", record, limit), after, look)
        b.position_at_end(look)
        function = b.declared("ordered.", I1, [PTR, I64, I64])
        found = b.not_(b.call(function, [self.context, record, thread]))
        end = b.block
        b.branch(after)
        b.position_at_end(after)
        result = b.phi(I1)
        result.add_incoming(I1(0), start)
        result.add_incoming(found, end)
        return result

    def _merge(self, place: Value, before: Value, thread: Value, limit: Value, now: Value, extra: int = 0) -> None:
        """Leave a record that tells whether others had a part in it too."""
        b = self.b
        mine = b.or_(b.or_(now, thread), I64(extra))
        kept = b.alloca(I64)
        b.store(mine, kept)
        with when(b, self._conflicts(before, thread, limit)):
            owner = b.and_(before, I64(THREAD))
            flags = b.or_(b.and_(before, I64(PARTS)), I64(LANES_BIT))
            other_warp = b.icmp_unsigned("!=", b.lshr(owner, I64(5)), b.lshr(thread, I64(5)))
            flags = b.or_(flags, b.select(other_warp, I64(WARPS_BIT), I64(0)))
            distance = b.sub(owner, first_thread(b, self.context))
            other_block = b.icmp_unsigned(">=", distance, threads_of_block(b, self.context))
            flags = b.or_(flags, b.select(other_block, I64(BLOCKS_BIT), I64(0)))
            b.store(b.or_(mine, flags), kept)
        b.store(b.load(kept, typ=I64), place)

    def _leave(self, write: Value, thread: Value, limit: Value, now: Value, unchanged: Any) -> None:
        """Leave the record of a lane's write."""
        b = self.b
        before = b.load(write, typ=I64)
        if self.strong:
            self._merge(write, before, thread, limit, now, STRONG)
            return
        # Another lane of the same instruction may have stored something else.
        recent = b.icmp_unsigned(">=", before, now)
        with when(b, recent), when(b, self._conflicts(before, thread, limit)), when(b, b.not_(unchanged())):
            self._doubt()
        b.store(b.or_(now, thread), write)

    def _doubt(self) -> None:
        raise_doubt(self.b, self.context, self.site, Doubt.FINDING)

    # --- memory

    def _host(self, address: Value) -> Value:
        b = self.b
        base = Context.SHARED if self.space == "shared" else Context.DELTA
        return b.inttoptr(b.add(address, b.word(self.context, base)), PTR)

    def _aligned(self, address: Value) -> Value:
        return self.b.icmp_unsigned("==", self.b.and_(address, I64(self.whole - 1)), I64(0))

    def _unchanged(self, address: Value, lane: Value) -> Value:
        """Return whether a store leaves what is there."""
        b, place = self.b, self._host(address)
        same: Value = I1(1)
        for number, values in enumerate(self.values):
            there = b.load(b.at(place, number * self.size), typ=values.type.element, align=1)
            same = b.and_(same, b.icmp_unsigned("==", there, self._lane(1 + number, lane)))
        return same

    def _put(self, address: Value, lane: Value) -> None:
        """Store at once what the access will store, so that the lanes behind see it."""
        b, place = self.b, self._host(address)
        with when(b, self._aligned(address), likely=True):
            for number in range(len(self.values)):
                b.store(self._lane(1 + number, lane), b.at(place, number * self.size), align=1)

    def _save(self, address: Value) -> None:
        """Let Python save a granule of memory before it changes for the first time."""
        b = self.b
        number = b.lshr(b.sub(address, b.word(self.context, Context.SAVED_BASE)), I64(GRANULE_BITS))
        flag = b.at(b.pointer(self.context, Context.SAVED), number)
        with when(b, b.icmp_unsigned("==", b.load(flag, typ=I8), I8(0)), likely=False):
            call_python(b, self.context, Doubt.SAVE, number)
