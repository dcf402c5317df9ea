"""Examine accesses for anything that the checks may have to report.

``check.KIND.STRENGTH.SPACE.SIZE.COUNT.SHIFT(context, addresses, mask, site[, values])`` compares an access to `COUNT`
elements of `SIZE` bytes with the records of its pieces of ``1 << SHIFT`` bytes, and leaves its own records. It only
determines whether there may be something to report; if so, the launch runs again on the NumPy engine.

`KIND` is the kind of access: "load", "store", "atomic", "guess" for a load whose value a compare-and-swap checks, or
"fetch" for a read through a texture or a surface, which races with all earlier writes of the launch, ordered or not.
`STRENGTH` is "plain" for a weak access, "block" for a strong access with block scope to memory that other blocks can
access too, and "strong" for all other strong accesses. An atomic is never plain.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....instructions import clusters
from ....windows import LOCAL_WINDOW, RESERVED_SHARED, SHARED_WINDOW, WINDOW_BYTES
from ...layout import PER_BLOCK, ROW_BYTES, BlockCheck, Context, Doubt, SiteCheck
from ...vectors import I1, I32, I64, vector
from ..frame import alike, each_active, each_group, element, when, words_at
from ..hosts import address_type, safe_addresses
from .lane_by_lane import LaneByLane
from .records import block_value, block_word, in_complete_records, note_unwritten, raise_doubt, site_row

Value = Any

# The maximum number of scans of a block's shared memory that check whether all of it has been written.
_MOST_LOOKS = 4


class _Check(LaneByLane):
    """A check of an access to any space."""

    def build(self) -> None:
        """Build the function."""
        {
            "global": self._global, "shared": self._shared, "local": self._local, "generic": self._generic,
            "cluster": self._cluster, "wide": self._generic,
        }[self.space]()  # fmt: skip  # rows of a table

    # --- generic addresses, and addresses in other blocks of a cluster

    def _cluster(self) -> None:
        """Check the lanes that access each block's shared memory with that block's memory and records."""
        b, context = self.b, self.context
        own = b.urem(b.word(context, Context.BLOCK), b.word(context, Context.CLUSTER))
        above = b.lshr(self.addresses, b.const(I32, clusters.RANK_SHIFT))
        exists = b.icmp_unsigned("<=", above, b.splat(b.trunc(b.word(context, Context.CLUSTER), I32)))
        ranks = b.select(b.compare("==", above, 0), b.splat(b.trunc(own, I32)), b.sub(above, b.const(I32, 1)))
        places = b.and_(self.addresses, b.const(I32, clusters.OFFSET))

        def check(same: Value) -> None:
            self._enter(b.zext(b.extract_element(ranks, b.trailing_zeros(same)), I64))
            self._check("shared", places, same)

        # An address in a block that doesn't exist is a fault, which the access itself detects.
        each_group(b, b.and_(self.mask, b.bits(exists)), alike(b, ranks), check)
        self._enter(own)
        b.ret_void()

    def _enter(self, rank: Value) -> None:
        """Make the shared memory of a block of the cluster, and its records, those that a check looks at."""
        b = self.b
        row = b.at(b.pointer(self.context, Context.CLUSTER_BLOCKS), b.mul(rank, I64(ROW_BYTES)))
        for word in (Context.SHARED, Context.SHARED_WRITES, Context.SHARED_READS):
            b.set_word(self.context, word, b.load(b.at(row, 8 * PER_BLOCK.index(word)), typ=I64))

    def _check(self, space: str, addresses: Value, lanes: Value) -> None:
        """Check the lanes that access a space."""
        # No other block accesses local memory, or shared memory unless there are clusters.
        alone = space == "local" or (self.space, space) == ("generic", "shared")
        strength = "strong" if self.strength == "block" and alone else self.strength
        name = f"check.{self.kind}.{strength}.{space}.{self.size}.{self.count}.{self.shift}"
        self.b.invoke(name, ir.VoidType(), self.context, addresses, lanes, self.site, *self.values)

    def _generic(self) -> None:
        b, rest = self.b, self.mask
        for space, window in (
            ("cluster" if self.space == "wide" else "shared", SHARED_WINDOW),
            ("local", LOCAL_WINDOW),
        ):
            offsets = b.sub(self.addresses, b.const(I64, window))
            lanes = b.and_(b.bits(b.compare("<", offsets, WINDOW_BYTES)), rest)
            rest = b.and_(rest, b.not_(lanes))
            with when(b, b.icmp_unsigned("!=", lanes, I32(0)), likely=False):
                self._check(space, b.resized(offsets, address_type(space).element, False), lanes)
        rest = b.and_(rest, b.bits(b.compare("<", self.addresses, SHARED_WINDOW)))
        self._check("global", self.addresses, rest)
        b.ret_void()

    # --- global memory

    def _global(self) -> None:
        b = self.b
        site = site_row(b, self.context, self.site)

        def kept(word: SiteCheck) -> Value:
            return b.load(b.at(site, 8 * word), typ=I64)

        def tables() -> list[tuple[Value, Value]]:
            """Return the records of pieces and of lines, for writes and for reads."""
            return [
                (kept(SiteCheck.WRITES), kept(SiteCheck.WRITE_LINES)),
                (kept(SiteCheck.READS), kept(SiteCheck.READ_LINES)),
            ]

        def known(address: Value) -> Value:
            low, last = kept(SiteCheck.LOW), b.sub(kept(SiteCheck.HIGH), I64(self.whole))
            above = b.icmp_unsigned(">=", address, b.like(address, low))
            return b.and_(above, b.icmp_unsigned("<=", address, b.like(address, last)))

        def all_known() -> Value:
            return b.icmp_unsigned("==", b.and_(b.bits(known(self.addresses)), self.mask), self.mask)

        if self.loads and not self.leaves:
            self._note_bounds(site)
        quiet = b.icmp_unsigned("==", kept(SiteCheck.MODE), I64(0))
        all_are = all_known()
        if self.loads:
            with when(b, b.and_(all_are, quiet), likely=True):
                self._note_read()
                b.ret_void()
        with when(b, b.not_(all_are), likely=False):
            self._find(b.extract_element(self.addresses, b.trailing_zeros(self.mask)))
            if self.loads:
                still = b.icmp_unsigned("==", kept(SiteCheck.MODE), I64(0))
                with when(b, b.and_(all_known(), still), likely=True):
                    self._note_read()
                    b.ret_void()
        limit = b.word(self.context, Context.BEGIN)
        with when(b, all_known(), likely=True):
            first = b.extract_element(self.addresses, I32(0))
            start = self.piece_of(first, kept(SiteCheck.LOW))
            self.side_by_side(first, start, tables(), limit, kept(SiteCheck.FLOOR))

        def place(lane: Value, body: Any) -> None:
            address = self.lane(0, lane)
            with when(b, b.not_(known(address)), likely=False):
                self._find(address)
            # An address outside is a fault, which the access itself detects. Loads may need no records.
            recorded = b.icmp_unsigned("!=", kept(SiteCheck.WRITES), I64(0))
            with when(b, b.and_(known(address), recorded), likely=True):
                piece = self.piece_of(address, kept(SiteCheck.LOW))
                (own, own_lines), (other, other_lines) = tables()[:: -1 if self.loads else 1]
                if self.leaves:
                    self.expand(own, own_lines, self.reach(piece, self.pieces))

                def seen(number: int) -> Value:
                    return self.seen(other, other_lines, b.add(piece, I64(number)), limit)

                body(address, piece, own, seen, kept(SiteCheck.FLOOR))

        self.one_by_one(place, limit)

    def _note_read(self) -> None:
        """Record a load from an allocation that the launch doesn't store to, if later work may race with it."""
        if self.leaves:
            b = self.b
            with in_complete_records(b, self.context):
                name = f"noted.load.plain.global.{self.size}.{self.count}.{self.shift}"
                b.invoke(name, ir.VoidType(), self.context, self.addresses, self.mask, self.site)

    def _note_bounds(self, site: Value) -> None:
        """Widen the bounds of the site's loads, which are compared with other work's accesses after the launch."""
        b, active = self.b, self.b.truth(self.mask)
        with in_complete_records(b, self.context):
            low = b.reduced("umin", b.select(active, self.addresses, b.const(I64, -1)))
            high = b.add(b.reduced("umax", b.select(active, self.addresses, b.const(I64, 0))), I64(self.whole))
            first, last = (b.at(site, 8 * word) for word in (SiteCheck.FIRST, SiteCheck.LAST))
            b.store(b.least(b.load(first, typ=I64), low, False), first)
            b.store(b.greatest(b.load(last, typ=I64), high, False), last)

    def _find(self, address: Value) -> None:
        self.b.invoke("find.", I1, self.context, self.site, address, I1(not self.loads))

    # --- shared memory

    def _shared(self) -> None:
        b, context = self.b, self.context
        end = b.sub(b.word(context, Context.SHARED_END), I64(self.whole))
        among = b.and_(b.compare(">=", self.wide, RESERVED_SHARED), b.icmp_signed("<=", self.wide, b.splat(end)))
        # A lane accesses bytes beyond the variables, or bytes that CUDA's headers use, or faults.
        with when(b, b.icmp_unsigned("!=", b.and_(b.bits(among), self.mask), self.mask), likely=False):
            limit = b.sub(b.word(context, Context.SHARED_LIMIT), I64(self.whole))
            beyond = b.and_(b.icmp_signed(">", self.wide, b.splat(end)), b.icmp_signed("<=", self.wide, b.splat(limit)))
            with when(b, b.icmp_unsigned("!=", b.and_(b.bits(beyond), self.mask), I32(0))):
                self.doubt()
            b.ret_void()
        # In a cluster, other blocks access the memory too: all reads are recorded, and only barriers of the cluster
        # order all accesses.
        clustered = b.icmp_unsigned("!=", b.word(context, Context.CLUSTER_TIME), I64(0))
        barrier = block_value(b, context, BlockCheck.BARRIER)
        read, written = (block_word(b, context, word) for word in (BlockCheck.READ, BlockCheck.WRITTEN))
        writes, reads = b.pointer(context, Context.SHARED_WRITES), b.pointer(context, Context.SHARED_READS)
        floor = block_value(b, context, BlockCheck.BEGIN)
        if self.kind == "load" and not self.strong:
            noted = b.load(b.at(site_row(b, context, self.site), 8 * SiteCheck.RECORDS), typ=I64)
            quiet = b.and_(b.icmp_unsigned("!=", b.load(written, typ=I64), barrier), b.not_(clustered))
            with when(b, b.and_(quiet, b.icmp_unsigned("==", noted, I64(0))), likely=True):
                b.store(barrier, read)
                self._filled()
                self._only_written(writes, floor)
        elif not self.loads:
            with when(b, b.icmp_unsigned("==", b.load(read, typ=I64), barrier), likely=False):
                raise_doubt(b, context, self.site, Doubt.SHARED)
            b.store(barrier, written)
        # Barriers in memory may order more before this warp's accesses than the last barrier of the block.
        warp = b.word(context, Context.WARP_AT_HAND)
        known = b.load(element(b, block_word(b, context, BlockCheck.KNOWN), warp, I64), typ=I64)
        limit = b.select(clustered, b.word(context, Context.CLUSTER_TIME), b.greatest(barrier, known, False))
        first = b.extract_element(self.wide, I32(0))
        start = b.lshr(first, I64(self.shift))
        writes, reads = b.ptrtoint(writes, I64), b.ptrtoint(reads, I64)
        self.side_by_side(first, start, ((writes, None), (reads, None)), limit, floor)

        def place(lane: Value, body: Any) -> None:
            address = self.lane(0, lane)
            piece = b.lshr(address, I64(self.shift))
            own, other = (reads, writes) if self.loads else (writes, reads)

            def seen(number: int) -> Value:
                return b.load(self.record(other, b.add(piece, I64(number))), typ=I64)

            body(address, piece, own, seen, floor)

        self.one_by_one(place, limit)

    def _filled(self) -> None:
        """Return from the check if all of the block's shared memory is written; scan it at most once per barrier."""
        b, context = self.b, self.context
        full, looks = block_word(b, context, BlockCheck.FULL), block_word(b, context, BlockCheck.LOOKS)
        with when(b, b.icmp_unsigned("!=", b.load(full, typ=I64), I64(0)), likely=True):
            b.ret_void()
        seen = block_word(b, context, BlockCheck.LOOKED)
        barrier = block_value(b, context, BlockCheck.BARRIER)
        tries = b.load(looks, typ=I64)
        again = b.icmp_unsigned("!=", b.load(seen, typ=I64), barrier)
        with when(b, b.and_(again, b.icmp_unsigned("<", tries, I64(_MOST_LOOKS))), likely=False):
            b.store(barrier, seen)
            b.store(b.add(tries, I64(1)), looks)
            with when(b, b.invoke(f"filled.{self.shift}", I1, context)):
                b.store(I64(1), full)
                b.ret_void()

    def _only_written(self, writes: Value, floor: Value) -> None:
        """Record the lanes that access an unwritten piece of shared memory, and return from the check."""
        b = self.b
        pieces = b.lshr(safe_addresses(b, self.wide, self.mask), b.const(I64, self.shift))
        for number in range(self.pieces):
            records = words_at(b, writes, b.add(pieces, b.const(I64, number)))
            missing = b.and_(b.bits(b.icmp_unsigned("<", records, b.splat(floor))), self.mask)
            with when(b, b.icmp_unsigned("!=", missing, I32(0)), likely=False):
                note_unwritten(b, self.context, self.site, missing)
        b.ret_void()

    # --- local memory

    def _local(self) -> None:
        b, context = self.b, self.context
        size = b.word(context, Context.LOCAL_SIZE)
        last = b.sub(size, I64(self.whole))
        among = b.and_(
            b.icmp_unsigned("<", self.addresses, b.splat(size)), b.icmp_signed("<=", self.addresses, b.splat(last))
        )
        with when(b, b.icmp_unsigned("!=", b.and_(b.bits(among), self.mask), self.mask), likely=False):
            b.ret_void()
        row = b.mul(b.word(context, Context.WARP_AT_HAND), b.word(context, Context.LOCAL_STRIDE))
        base = element(b, b.pointer(context, Context.LOCAL_WRITTEN), row, I32)
        first = b.extract_element(self.addresses, b.trailing_zeros(self.mask))
        same = b.icmp_unsigned("==", self.addresses, b.splat(first))
        alike = b.icmp_unsigned("==", b.and_(b.bits(same), self.mask), self.mask)
        with when(b, alike, likely=True):
            self._local_elements(base, first, self.mask)
            b.ret_void()
        self.spill()

        def look(lane: Value) -> None:
            self._local_elements(base, self.lane(0, lane), b.shl(I32(1), lane))

        each_active(b, self.mask, look)
        b.ret_void()

    def _local_elements(self, base: Value, address: Value, lanes: Value) -> None:
        """Check the elements at one address; the records have the lanes that have written each byte."""
        b = self.b
        for number in range(self.count):
            first = element(b, base, b.add(address, I64(number * self.size)), I32)
            if self.loads:
                self._local_element(first, lanes)
            else:
                before = b.load(first, typ=vector(I32, self.size), align=4)
                b.store(b.or_(before, b.splat(lanes, self.size)), first, align=4)

    def _local_element(self, first: Value, lanes: Value) -> None:
        """Record the lanes that load an element of which they have written no byte; usually, one record tells."""
        b = self.b
        missing = b.and_(lanes, b.not_(b.load(first, typ=I32)))
        with when(b, b.icmp_unsigned("!=", missing, I32(0)), likely=False):
            for byte in range(1, self.size):
                missing = b.and_(missing, b.not_(b.load(element(b, first, I64(byte), I32), typ=I32)))
            with when(b, b.icmp_unsigned("!=", missing, I32(0)), likely=False):
                note_unwritten(b, self.context, self.site, missing)


def build_check(module: ir.Module, name: str) -> None:
    """Build the function that checks one kind of access."""
    _Check(module, name).build()
