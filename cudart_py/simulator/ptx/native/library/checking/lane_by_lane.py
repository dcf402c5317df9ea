"""Compare an access with the records of its pieces one lane at a time, and record the access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...layout import LANES, BlockCheck, Context
from ...vectors import I1, I32, I64
from ..frame import each_active, when
from .records import (
    BLOCK_SCOPE,
    BLOCKS_BIT,
    LANES_BIT,
    PARTS,
    STRONG,
    THREAD,
    WARPS_BIT,
    block_value,
    first_thread,
    note_unwritten,
    threads_of_block,
)
from .side_by_side import SideBySide

Value = Any
# Returns the record of a lane's n-th piece.
Seen = Callable[[int], Value]


class LaneByLane(SideBySide):
    """A check of lanes whose pieces may be anywhere."""

    def one_by_one(self, place: Any, limit: Value) -> None:
        """Compare an access with the records and leave new records, one lane at a time.

        `place` calls a function with a lane's address and first piece, the table in which it leaves records, a function
        that returns the records in the other table, and the first record that counts as written.
        """
        b = self.b
        base, now = self.first_of_warp(), b.word(self.context, Context.NOW)
        self.spill()
        # Whether any lane stores the value that an unordered store of another thread has left.
        self.repeats = b.alloca(I1)
        b.store(I1(0), self.repeats)

        def judge(lane: Value) -> None:
            thread = b.add(base, b.zext(lane, I64))

            def compare(address: Value, piece: Value, own: Value, seen: Seen, floor: Value) -> None:
                for number in range(self.pieces):
                    mine = self.record(own, b.add(piece, I64(number)))
                    if self.loads:
                        self._load(mine, seen(number), thread, limit, floor, now)
                    else:
                        before = b.load(mine, typ=I64)
                        self._write(before, seen(number), thread, limit, lambda: self.unchanged(address, lane))
                    if self.kind == "atomic":
                        self._leave_strong(mine, thread, limit, now)
                    if self.leaves:
                        self.leave_site(own, b.add(piece, I64(number)))
                if self.kind == "atomic":
                    self.save(address)

            place(lane, compare)

        each_active(b, self.mask, judge)
        if self.values:

            def record(lane: Value) -> None:
                thread = b.add(base, b.zext(lane, I64))

                def leave(address: Value, piece: Value, own: Value, *_: Any) -> None:
                    for number in range(self.pieces):
                        write = self.record(own, b.add(piece, I64(number)))
                        self._leave(write, thread, limit, now, lambda: self.unchanged(address, lane))
                    self.put(address, lane)

                place(lane, leave)

            each_active(b, self.mask, record)
        b.ret_void()

    def _load(self, read: Value, before: Value, thread: Value, limit: Value, floor: Value, now: Value) -> None:
        """Compare a lane's load with the record of a write to one piece, and leave the record of the load."""
        b = self.b
        if self.cached:
            with when(b, b.icmp_unsigned(">=", before, limit), likely=False):
                self.doubt()
            self._merge(read, b.load(read, typ=I64), thread, limit, now)
            return
        with when(b, b.icmp_unsigned("<", before, floor), likely=False):
            lane = b.trunc(b.and_(thread, I64(LANES - 1)), I32)
            note_unwritten(b, self.context, self.site, b.shl(I32(1), lane))
        if self.strong:
            with (
                when(b, self.scoped(before, limit), likely=False),
                when(b, self._of_other_block(before)),
                when(b, self._conflicts(before, thread, limit)),
            ):
                self.doubt()
            return
        with when(b, self._conflicts(before, thread, limit), likely=False):
            swapped = b.icmp_unsigned("!=", b.and_(before, I64(STRONG)), I64(0))
            with when(b, I1(1) if self.leaves else b.not_(swapped)):
                self.doubt()
        if self.leaves:
            self._merge(read, b.load(read, typ=I64), thread, limit, now)

    def _write(self, before: Value, earlier: Value, thread: Value, limit: Value, unchanged: Any) -> None:
        """Compare a lane's store or atomic with the records of a write and a read of one piece."""
        b = self.b
        atomic = b.icmp_unsigned("!=", b.and_(before, I64(STRONG)), I64(0))
        scoped = I1(1) if self.block_scope else self.scoped(before, limit)
        agree = b.and_(atomic, b.not_(b.and_(scoped, self._of_other_block(before))))
        with (
            when(b, b.not_(agree) if self.strong else I1(1)),
            when(b, self._conflicts(before, thread, limit), likely=False),
        ):
            # A store of the value that is already there is no conflict, unless an atomic has left that value: whether
            # it did depends on the order of the two.
            meets = b.or_(atomic, b.not_(unchanged())) if self.values else I1(1)
            with when(b, meets, likely=False):
                self.doubt()
            b.store(I1(1), self.repeats)
        # Even a store of the value that is already there conflicts: it would race with the read if the read came later.
        with when(b, self._conflicts(earlier, thread, limit), likely=False):
            self.doubt()

    def _conflicts(self, record: Value, thread: Value, limit: Value) -> Value:
        """Return whether a record is of this launch and isn't ordered before the thread's current access."""
        b = self.b
        start, look, after = b.block, b.append_basic_block(), b.append_basic_block()
        b.cbranch(b.icmp_unsigned("<", record, limit), after, look)
        b.position_at_end(look)
        unordered = b.not_(b.invoke(f"ordered.{self.space}", I1, self.context, record, thread))
        end = b.block
        b.branch(after)
        b.position_at_end(after)
        result = b.phi(I1)
        result.add_incoming(I1(0), start)
        result.add_incoming(unordered, end)
        return result

    def _merge(self, place: Value, before: Value, thread: Value, limit: Value, now: Value) -> None:
        """Leave a record of a read; if the previous record isn't ordered before it, the new record covers both."""
        b = self.b
        mine = b.or_(now, thread)
        kept = b.alloca(I64)
        b.store(mine, kept)
        with when(b, self._conflicts(before, thread, limit)):
            parts = self._parts(before, thread)
            b.store(b.or_(mine, parts), kept)
            if self.space == "shared":
                several = b.icmp_unsigned("!=", b.and_(parts, I64(WARPS_BIT)), I64(0))
                clocked = b.icmp_unsigned("!=", b.word(self.context, Context.CLOCKS), I64(0))
                with when(b, b.and_(several, clocked), likely=False):
                    b.invoke("readers.", ir.VoidType(), self.context, before, mine)
        b.store(b.load(kept, typ=I64), place)

    def _leave_strong(self, place: Value, thread: Value, limit: Value, now: Value) -> None:
        """Leave a record of a strong write; it also covers the previous record of other threads, ordered or not."""
        b = self.b
        before = b.load(place, typ=I64)
        own = b.or_(now, thread)
        if self.block_scope:
            scope: Value = I64(BLOCK_SCOPE)
        else:
            # A strong write with a wider scope doesn't widen the scope of a record with block scope.
            scope = b.select(self.scoped(before, limit), I64(BLOCK_SCOPE), I64(0))
        strong = b.or_(own, b.or_(scope, I64(STRONG)))
        alone = self.plainly(before, thread, limit)
        mine = b.select(alone, strong, b.or_(strong, self._parts(before, thread)))
        b.store(mine, place)
        with when(b, self.is_plain(before, limit), likely=False):
            # A record of a plain write that must not be hidden stays plain, but gets the time of the strong write. Nor
            # does a strong write hide the block's earlier plain write from the strong writes of other blocks, unless a
            # fence may have released it.
            fenced = b.icmp_unsigned("<", before, block_value(b, self.context, BlockCheck.FENCE_TIME))
            narrow = b.select(b.or_(fenced, self._of_other_block(before)), I64(0), I64(BLOCK_SCOPE))
            stays = b.and_(alone, self.hides(before, thread))
            b.store(b.select(stays, b.or_(own, I64(BLOCK_SCOPE)), b.or_(mine, narrow)), place)

    def _parts(self, before: Value, thread: Value) -> Value:
        """Return the flags of a record that replaces another thread's and covers it, too."""
        b = self.b
        owner = b.and_(before, I64(THREAD))
        flags = b.or_(b.and_(before, I64(PARTS)), I64(LANES_BIT))
        other_warp = b.icmp_unsigned("!=", b.lshr(owner, I64(5)), b.lshr(thread, I64(5)))
        flags = b.or_(flags, b.select(other_warp, I64(WARPS_BIT), I64(0)))
        return b.or_(flags, b.select(self._of_other_block(before), I64(BLOCKS_BIT), I64(0)))

    def _of_other_block(self, record: Value) -> Value:
        """Return whether a record covers accesses by a block other than the current one."""
        b = self.b
        distance = b.sub(b.and_(record, I64(THREAD)), first_thread(b, self.context))
        others = b.icmp_unsigned("!=", b.and_(record, I64(BLOCKS_BIT)), I64(0))
        return b.or_(others, b.icmp_unsigned(">=", distance, threads_of_block(b, self.context)))

    def _leave(self, write: Value, thread: Value, limit: Value, now: Value, unchanged: Any) -> None:
        """Leave the record of a lane's write; it also covers an unordered store of the same value."""
        b = self.b
        before = b.load(write, typ=I64)
        if self.strong:
            self._leave_strong(write, thread, limit, now)
            return
        mine = b.or_(now, thread)
        kept = b.alloca(I64)
        b.store(mine, kept)
        recent = b.icmp_unsigned(">=", before, now)
        suspect = b.or_(recent, b.load(self.repeats, typ=I1))
        with when(b, suspect), when(b, self._conflicts(before, thread, limit)):
            b.store(b.or_(mine, self._parts(before, thread)), kept)
            # Another lane of the same instruction may have stored something else.
            with when(b, recent), when(b, b.not_(unchanged())):
                self.doubt()
        b.store(b.load(kept, typ=I64), write)
