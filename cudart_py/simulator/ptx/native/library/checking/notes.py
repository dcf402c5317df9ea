"""Record loads from memory that a launch does not store to, for work that may overlap the launch.

``noted.load.plain.global.SIZE.COUNT.SHIFT(context, addresses, mask, site)`` leaves records like those of
``check.load``, but compares nothing: one load of a piece stands for all, because no access of the launch itself races
with it. All lanes access the current allocation of the site.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...layout import LANES, Context, SiteCheck
from ...vectors import I32, I64, PTR
from ..frame import each_active, when, words_at
from ..hosts import safe_addresses
from .records import LINE_BITS, site_row
from .side_by_side import SideBySide

Value = Any


class _Note(SideBySide):
    """The function for one kind of load, while it is built."""

    def build(self) -> None:
        """Build the function."""
        b, site = self.b, site_row(self.b, self.context, self.site)
        self._records, self._lines = (
            b.load(b.at(site, 8 * word), typ=I64) for word in (SiteCheck.READS, SiteCheck.READ_LINES)
        )
        lane = b.trailing_zeros(self.mask)
        first = b.extract_element(self.wide, lane)
        same = b.bits(b.icmp_unsigned("==", self.wide, b.splat(first)))
        with when(b, b.icmp_unsigned("==", b.and_(same, self.mask), self.mask)):
            self._note(b.and_(b.sub(I32(0), self.mask), self.mask))
            b.ret_void()
        start = self.piece_of(first)
        whole = b.icmp_unsigned("==", b.and_(start, I64(LANES - 1)), I64(0))
        with when(b, b.and_(whole, self.follow(first)), likely=True):
            self.leave_lines(self._lines, start, self.first_of_warp(), b.word(self.context, Context.NOW))
            b.ret_void()
        limit = b.splat(b.word(self.context, Context.BEGIN))
        low = b.load(b.at(site, 8 * SiteCheck.LOW), typ=I64)
        offsets = b.sub(safe_addresses(b, self.wide, self.mask), b.splat(b.and_(low, I64(-4))))
        known: Value = b.truth(I32(0xFFFFFFFF))
        for number in range(self.pieces):
            pieces = b.add(b.lshr(offsets, b.const(I64, self.shift)), b.const(I64, number))
            line = words_at(b, b.inttoptr(self._lines, PTR), b.lshr(pieces, b.const(I64, LINE_BITS)))
            record = words_at(b, b.inttoptr(self._records, PTR), pieces)
            known = b.and_(known, b.icmp_unsigned(">=", b.select(b.compare("==", line, 0), record, line), limit))
        self._note(b.and_(self.mask, b.not_(b.bits(known))))
        b.ret_void()

    def _note(self, lanes: Value) -> None:
        """Record the loads of some lanes whose pieces have no record of this launch yet."""
        b = self.b
        base, limit, now = self.first_of_warp(), *(b.word(self.context, word) for word in (Context.BEGIN, Context.NOW))
        with when(b, b.icmp_unsigned("!=", lanes, I32(0)), likely=False):
            self.spill()

            def leave(lane: Value) -> None:
                piece = self.piece_of(self.lane(0, lane))
                for number in range(self.pieces):
                    one = b.add(piece, I64(number))
                    line = b.load(self.line(self._lines, one), typ=I64)
                    with when(b, b.icmp_unsigned("<", line, limit)):
                        self.expand(self._records, self._lines, one, 1)
                        place = b.inttoptr(b.add(self._records, b.shl(one, I64(3))), PTR)
                        with when(b, b.icmp_unsigned("<", b.load(place, typ=I64), limit)):
                            b.store(b.or_(now, b.add(base, b.zext(lane, I64))), place)
                            self.leave_site(self._records, one)

            each_active(b, lanes, leave)


def build_note(module: ir.Module, name: str) -> None:
    """Build the function that records one kind of load."""
    _Note(module, name).build()
