"""Traces: the bytes of an allocation that a piece of work has read and written, and who accessed each of them.

Work that may overlap other work leaves a trace in each allocation that it has used. Copies, fills, writes of values and
launches in machine code leave ranges of bytes, which are compared as a whole. A launch on the NumPy engine leaves its
records in the allocation's history, and a trace that says where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.running.observer import PieceRecords, site_numbers
from ...state.memory.records.record_limit import limit
from ...state.memory.records.shadow import BLOCK_SCOPE, STRONG, History

if TYPE_CHECKING:
    from .concurrency import Span

Array = NDArray[Any]
_LINE = PieceRecords.LINE
_LINE_BITS = _LINE.bit_length() - 1
_BLOCK_ATOMIC = STRONG | BLOCK_SCOPE
_FLAGS = PieceRecords.STRONG | PieceRecords.BLOCK_SCOPE

# The kinds of access: reads, writes, and atomic writes with device scope, which don't race with one another. Accesses
# with block scope race with all accesses of other work, as plain ones do. Reads that machine code does not record
# (strong ones, and guesses for a compare-and-swap) are compared only with earlier work. For each kind: the kinds that
# it races with, and the kinds of later work whose races include all races with it.
RACING = {
    "read": ("write", "atomic"),
    "write": ("write", "atomic", "read"),
    "atomic": ("write", "read"),
    "unrecorded": ("write",),
}
_INCLUDING = {"read": ("read", "write"), "write": ("write",), "atomic": ("atomic", "write")}
# The kinds of which the records of a history are, and the verbs of reports.
KINDS = {"read": ("read",), "write": ("write", "atomic")}
RECORDED = {kind: record for record, kinds in KINDS.items() for kind in kinds}
VERBS = {"read": "read", "write": "wrote", "atomic": "wrote"}


class Ranges:
    """Disjoint ranges of bytes in ascending order, given by arrays of their starts and ends; there is at least one."""

    __slots__ = ("ends", "starts")

    def __init__(self, starts: Array, ends: Array) -> None:
        self.starts, self.ends = starts, ends

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[int, int]]) -> Ranges:
        """Return the ranges that rows cover, each given by its start and end; rows may overlap."""
        starts, ends = np.array(sorted(rows), np.int64).T
        ends = np.maximum.accumulate(ends)
        first = np.concatenate([[True], starts[1:] > ends[:-1]])
        return cls(starts[first], ends[np.append(first[1:], True)])

    @classmethod
    def of_mask(cls, mask: Array, unit: int, origin: int = 0) -> Ranges | None:
        """Return the ranges of the units that a mask selects, counted from the offset `origin`, or None if none is."""
        inner = np.flatnonzero(mask[1:] != mask[:-1]) + 1
        edges = np.concatenate([np.flatnonzero(mask[:1]), inner, len(mask) - 1 + np.flatnonzero(mask[-1:]) + 1])
        return cls(origin + edges[::2] * unit, origin + edges[1::2] * unit) if len(edges) else None

    @property
    def low(self) -> int:
        """The first byte."""
        return int(self.starts[0])

    @property
    def high(self) -> int:
        """The end of the last range."""
        return int(self.ends[-1])

    def first_in(self, lows: Array, size: int) -> Array:
        """Return the first byte of the ranges in each piece of `size` bytes, given by their starts; -1 for none."""
        index = np.searchsorted(self.ends, lows, "right")
        starts = np.append(self.starts, np.iinfo(np.int64).max)[index]
        return np.where(starts < lows + size, np.maximum(starts, lows), -1)

    def meets(self, other: Ranges) -> int | None:
        """Return the first byte that is in ranges of both, or None."""
        if self.low >= other.high or other.low >= self.high:
            return None
        few, many = (self, other) if len(self.starts) <= len(other.starts) else (other, self)
        index = np.searchsorted(many.ends, few.starts, "right")
        starts = np.append(many.starts, np.iinfo(np.int64).max)[index]
        places = np.flatnonzero(starts < few.ends)
        return max(int(few.starts[places[0]]), int(starts[places[0]])) if len(places) else None

    def cover(self, other: Ranges) -> bool:
        """Return whether the other ranges are these or lie in the only one; others in several ranges go unnoticed."""
        if len(self.starts) == 1:
            return self.low <= other.low and other.high <= self.high
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.ends, other.ends)


Parts = dict[str, Ranges]


class Trace:
    """The trace of a copy, a fill or a write of a value, whose record is the same for all bytes.

    `parts` maps kinds of access to ranges.
    """

    is_of_launch = False

    def __init__(self, parts: Parts, record: int = 0) -> None:
        self.parts = parts
        self._record = record
        self.low = min((ranges.low for ranges in parts.values()), default=0)
        self.high = max((ranges.high for ranges in parts.values()), default=0)

    def parts_in(self, span: Span, history: History, low: int, high: int) -> Parts:
        """Return the ranges of each kind of access, including at least those between two offsets."""
        return self.parts

    def records(self, span: Span, history: History, kind: str, index: Any, *, last: bool = False) -> Array | None:
        """Return the records that work has left of some pieces of the history; 0 means no record, None means none.

        The record of a plain write takes the place of those of the launch's later atomics, because it races with more
        accesses, unless `last` asks for the last write.
        """
        pieces = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        lows, found = pieces << history.shift, None
        for one in KINDS[kind]:
            places = self.parts[one].first_in(lows, 1 << history.shift) if one in self.parts else np.full(1, -1)
            some = np.flatnonzero(places >= 0)
            if len(some):
                found = np.zeros(len(lows), np.int64) if found is None else found
                found[some] = self._records_at(kind, places[some])
        return found

    def _records_at(self, kind: str, places: Array) -> Array | int:
        """Return the records of accesses to some bytes."""
        return self._record

    def replaced_by(self, later: Trace) -> bool:
        """Forget accesses that race only with work that also races with `later`; return whether none are left."""
        for kind, ranges in list(self.parts.items()):
            if any(one in later.parts and later.parts[one].cover(ranges) for one in _INCLUDING[kind]):
                del self.parts[kind]
        return not self.parts


class HistoryTrace(Trace):
    """The trace of a launch on the NumPy engine: its records are in the history, between two offsets."""

    is_of_launch = True

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.parts = {}

    def widen(self, low: int, high: int) -> None:
        """Include an access."""
        self.low, self.high = min(self.low, low), max(self.high, high)

    def parts_in(self, span: Span, history: History, low: int, high: int) -> Parts:
        """Return the ranges of each kind of access between two offsets."""
        low, high = max(low, self.low), min(high, self.high)
        if low >= high:
            return {}
        index, found = history.pieces(low, high), {}
        for kind in KINDS:
            records = self.records(span, history, kind, index)
            if records is None:
                continue
            atomic = (records & (STRONG | BLOCK_SCOPE)) == STRONG
            for one, mask in ((kind, (records != 0) & ~atomic), ("atomic", (records != 0) & atomic)):
                # Strong reads don't race.
                if one == "atomic" and kind == "read":
                    continue
                ranges = Ranges.of_mask(mask, 1 << history.shift, index.start << history.shift)
                if ranges is not None:
                    found[one] = ranges
        return found

    def records(self, span: Span, history: History, kind: str, index: Any, *, last: bool = False) -> Array | None:
        """Return the launch's records in the history, or those that later reads and atomics have set aside."""
        if not history.prepare(1 << history.shift):
            return None
        present = (history.writes if kind == "write" else history.reads)[index]
        left, aside = span.left(present), history.aside(span, kind, index)
        found = np.where(left, present, 0 if aside is None else aside) if left.any() else aside
        plain = history.aside(self, "plain", index) if kind == "write" and not last else None
        return found if found is None or plain is None else np.where(plain, plain, found)

    def replaced_by(self, later: Trace) -> bool:
        """Return whether later work has written everything between the two offsets."""
        written = later.parts.get("write")
        return written is not None and len(written.starts) == 1 and written.low <= self.low <= self.high <= written.high


class _Snapshot(NamedTuple):
    """The records and sites of the lines from `first` on, and of the pieces of the lines `split`, one row per line."""

    first: int
    lines: Array
    line_sites: Array
    split: Array
    pieces: Array
    piece_sites: Array


class NativeTrace(Trace):
    """The trace of a launch in machine code, with copies of its records that say who made an access, and where.

    `shift` is the binary logarithm of the size of the records' pieces, `size` that of the allocation in bytes, and
    `begin` the first record of the launch. `written` are two offsets between which all writes are. `name` turns threads
    and sites of machine code into records of a history.
    """

    is_of_launch = True

    def __init__(
        self,
        records: PieceRecords,
        begin: int,
        shift: int,
        size: int,
        written: tuple[int, int],
        name: Callable[[Array, Array], Array],
    ) -> None:
        self._shift, self._size, self._name = shift, size, name
        self._snapshots: dict[str, _Snapshot] = {}
        within = slice(written[0] >> shift + _LINE_BITS, -(-written[1] >> shift + _LINE_BITS))
        writes = self._parts("write", records.writes, records.write_lines, begin, within)
        super().__init__(writes | self._parts("read", records.reads, records.read_lines, begin, slice(None)))

    def _parts(self, kind: str, pieces: Array, lines: Array, begin: int, within: slice) -> Parts:
        """Keep the records of the reads or the writes, all of which are in the lines `within`; return their ranges."""
        used = np.zeros(len(lines), np.bool_)
        used[within] = lines[within] >= begin
        split = (within.start or 0) + np.flatnonzero(lines[within] == 0)
        rows = pieces.reshape(-1, _LINE)[split]
        recent = rows >= begin
        some = recent.any(axis=1)
        if not some.all():
            split, rows, recent = split[some], rows[some], recent[some]
        used[split] = True
        if not used.any():
            return {}
        first, end = int(used.argmax()), len(used) - int(used[::-1].argmax())
        kept = self._snapshots[kind] = _Snapshot(
            first,
            limit.copy(lines[first:end]),
            limit.copy(site_numbers(lines)[first:end]),
            split,
            limit.copy(rows),
            limit.copy(site_numbers(pieces).reshape(-1, _LINE)[split]),
        )

        def mask(of_lines: Array, of_pieces: Array) -> Array:
            if not len(split):
                return of_lines
            whole = np.repeat(of_lines, _LINE)
            whole.reshape(-1, _LINE)[split - first] = of_pieces
            return whole

        masks = {kind: mask(used[first:end], recent)}
        atomic = mask(kept.lines & _FLAGS == PieceRecords.STRONG, rows & _FLAGS == PieceRecords.STRONG)
        if kind == "write" and atomic.any():
            masks = {"write": masks[kind] & ~atomic, "atomic": masks[kind] & atomic}
        unit = 1 << self._shift if len(split) else _LINE << self._shift
        found: Parts = {}
        for one, chosen in masks.items():
            ranges = Ranges.of_mask(chosen, unit, first * _LINE << self._shift)
            if ranges is not None:
                ranges.ends[-1] = min(ranges.high, self._size)
                found[one] = ranges
        return found

    def records(self, span: Span, history: History, kind: str, index: Any, *, last: bool = False) -> Array | None:
        """Return the records of the launch's accesses.

        In machine code, the flag of block scope also says that a strong write has followed a plain one.
        """
        found = super().records(span, history, kind, index)
        if found is None:
            return None
        both, scoped = found & BLOCK_SCOPE != 0, found & _BLOCK_ATOMIC == _BLOCK_ATOMIC
        if last:
            return np.where(both, found | STRONG, found)
        return np.where(both & ~(scoped & span.block_scoped), found & ~_BLOCK_ATOMIC, found)

    def _records_at(self, kind: str, places: Array) -> Array:
        kept = self._snapshots[kind]
        lines, inside = np.divmod(places >> self._shift, _LINE)
        records, sites = kept.lines[lines - kept.first], kept.line_sites[lines - kept.first]
        # A line's record has the number of pieces per thread in the lowest bits of its first thread.
        spread = records & 3
        records = (records & ~np.uint64(3)) + (inside.astype(np.uint64) >> spread)
        row = np.searchsorted(kept.split, lines)
        some = np.flatnonzero(np.append(kept.split, -1)[row] == lines)
        records[some], sites[some] = (table[row[some], inside[some]] for table in (kept.pieces, kept.piece_sites))
        found = self._name((records & PieceRecords.THREAD).astype(np.int64), sites)
        found |= np.where(records & PieceRecords.STRONG, STRONG, 0)
        found |= np.where(records & PieceRecords.BLOCK_SCOPE, BLOCK_SCOPE, 0)
        return found
