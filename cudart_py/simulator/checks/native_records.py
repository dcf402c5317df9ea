"""Records that machine code keeps of accesses to global memory, separate from the history of the NumPy engine.

They contain less information than the history: only whether there may be a finding. Only one launch can therefore use
them. They need not be cleared after it, because their times are older than the times of any later launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.running.observer import PieceRecords, records_in
from ..state.memory.records.record_limit import limit
from ..state.memory.records.shadow import FILLED, History, ShadowMemory
from .races.concurrency import Span, meeting
from .races.traces import NativeTrace, Ranges, Trace
from .uninitialised.stored_structures import paddings_of

if TYPE_CHECKING:
    from ..ptx.running.launch import Launch
    from ..ptx.syntax.instructions import Instruction
    from .races.races import Past

Array = NDArray[Any]

# The time has 32 bits in a record. If a launch would begin later than this, the clock restarts, with new records.
_LAST_BEGIN = 1 << 31
_LINE, _WRITTEN = PieceRecords.LINE, PieceRecords.WRITTEN


class _Clock:
    """The clock of machine code's records, and the number of times that it has restarted."""

    def __init__(self) -> None:
        self.now = _WRITTEN + 1
        self.era = 0


_clock = _Clock()


class NativeRecords:
    """The records of one launch, and, if other work may overlap it, the traces that it leaves.

    `spans` is the other work that has run, and `past` names the launch's accesses in
    reports of work that follows; it is None if no other work may overlap the launch.
    """

    def __init__(self, memory: Any, launch: Launch, spans: list[Span], past: Past | None) -> None:
        self._memory, self._launch = memory, launch
        self._spans, self._past = spans, past
        self.complete = past is not None
        self.traces: dict[History, Trace] = {}
        if _clock.now > _LAST_BEGIN:
            _clock.now, _clock.era = _WRITTEN + 1, _clock.era + 1
        self.begin, self.era = _clock.now, _clock.era
        # The allocations that had not been completely written before, keyed by start address, with their records.
        self._unwritten: dict[int, tuple[ShadowMemory, int, PieceRecords]] = {}

    def of(self, start: int, shift: int) -> PieceRecords | None:
        """Return the records of the allocation that starts at an address, in pieces of ``1 << shift`` bytes.

        Return None if there is no memory for the records.
        """
        shadow: ShadowMemory = self._memory.shadow(start)
        if not shadow.initialised and shadow.history.coarse is not None:
            return None
        key = self.era, shift
        if key not in shadow.native or (self.complete and not shadow.native[key].sites):
            shadow.native = {}
            records = _new(shadow, shift, self.complete)
            if records is None:
                self._release_histories()
                records = _new(shadow, shift, self.complete)
            if records is None:
                limit.say_no_room(shadow.size)
                return None
            shadow.native[key] = records
        kept: PieceRecords = shadow.native[key]
        if shadow.initialised:
            return kept
        self._unwritten[start] = shadow, shift, kept
        return replace(kept, unwritten=True)

    def _release_histories(self) -> None:
        """Release the histories of completely written memory, which nothing needs but work that may overlap other work.

        Otherwise, memory that the first launches of a kernel have used with NumPy might leave no room for its later
        launches in machine code.
        """
        for start in self._memory.extents()[0].tolist():
            shadow: ShadowMemory = self._memory.shadow(start)
            if shadow.initialised:
                shadow.history.release()

    def are_needless(self, start: int) -> bool:
        """Return whether loads need no records of the allocation that starts at an address: all of it is written."""
        initialised: bool = self._memory.shadow(start).initialised
        return initialised

    def races(
        self,
        used: Mapping[int, tuple[int, int]],
        unrecorded: Iterable[tuple[int, int, int]],
        shift: int,
        sites: Sequence[Instruction],
    ) -> bool:
        """Return whether the launch may race with other work; `AccessRecords` describes the arguments."""
        assert self._past is not None
        name = self._past.native_records(sites)
        for start, changed in used.items():
            shadow: ShadowMemory = self._memory.shadow(start)
            records, written = shadow.native[self.era, shift], (changed[0] - shadow.first, changed[1] - shadow.first)
            trace = NativeTrace(records, self.begin << PieceRecords.TIME, shift, shadow.size, written, name)
            if trace.parts:
                self.traces[shadow.history] = trace
                if meeting(self._spans, shadow.history, trace.parts):
                    return True
        return any(self._meets_writes(sites[number], low, high) for number, low, high in unrecorded)

    def _meets_writes(self, site: Instruction, low: int, high: int) -> bool:
        """Return whether loads between two addresses may race with writes of other work.

        Strong loads race only with accesses of block scope, and guesses only with plain writes.
        """
        spans = [span for span in self._spans if span.block_scoped or not form_of(site).strong]
        starts, ends = self._memory.extents()
        for index in np.flatnonzero((starts < high) & (ends > low)) if spans else ():
            shadow: ShadowMemory = self._memory.shadow(int(starts[index]))
            part = max(low - shadow.first, 0), min(high - shadow.first, shadow.size)
            if meeting(spans, shadow.history, {"unrecorded": Ranges.of_rows([part])}):
                return True
        return False

    def end(self, now: int) -> None:
        """Advance the clock, and forget what the launch has written unless `keep` has saved it."""
        _clock.now = max(_clock.now, now + 1)
        for shadow, _, _ in self._unwritten.values():
            shadow.native.clear()

    def keep(self, changed: Iterable[tuple[int, int, int]]) -> None:
        """Record the writes of the launch in the histories of its allocations.

        `changed` are the parts of memory that it may have changed: the start of the allocation, the first address and
        the end.
        """
        parts: dict[int, list[tuple[int, int]]] = {}
        for start, low, high in changed:
            parts.setdefault(start, []).append((low, high))
        for start, (shadow, shift, records) in self._unwritten.items():
            try:
                if start in parts:
                    shadow.note_writer(self._launch.description, paddings_of(self._launch.entry))
                    _keep(shadow, shift, records, parts[start])
            except MemoryError:
                limit.say(
                    f"no memory is left for the records of {shadow.size:,} bytes",
                    "uninitialised values are not checked for there",
                )
                shadow.initialised = True
        self._unwritten.clear()


def _new(shadow: ShadowMemory, shift: int, sites: bool) -> PieceRecords | None:
    """Return new records for an allocation, including their sites if `sites` is set, or None without room for them."""
    history = shadow.history
    count = -(-shadow.size // 4) << (2 - shift)
    lines = -(-count // _LINE)
    writes, reads = _table(lines * _LINE, sites), _table(lines * _LINE, sites)
    write_lines, read_lines = _table(lines, sites), _table(lines, sites)
    if writes is None or reads is None or write_lines is None or read_lines is None:
        return None
    read_lines[:] = write_lines[:] = _WRITTEN
    if not shadow.initialised:
        write_lines[:] = 0
    if not shadow.initialised and history.written:
        if not history.prepare(1 << shift, reads=False):
            return None
        known = np.zeros((lines, _LINE), np.bool_)
        known.reshape(-1)[:count] = (history.writes.reshape(count, -1) != 0).all(axis=1)
        whole = known.all(axis=1)
        write_lines[whole] = _WRITTEN
        # Touch only the lines that are partly written: the untouched records of a large allocation take no memory.
        mixed = np.flatnonzero(known.any(axis=1) & ~whole)
        writes.reshape(lines, _LINE)[mixed] = known[mixed] * np.uint64(_WRITTEN)
    return PieceRecords(writes, reads, write_lines, read_lines, sites, unwritten=False)


def _table(count: int, sites: bool) -> Array | None:
    """Return new records, which are 0, with room for their sites if `sites` is set, or None without room for them."""
    if not sites:
        return limit.zeros(count, np.uint64)
    units = -(-count // 4)
    room = limit.zeros(20 * units, np.uint16)
    return None if room is None else records_in(room)[:count]


def _keep(shadow: ShadowMemory, shift: int, records: PieceRecords, parts: list[tuple[int, int]]) -> None:
    """Record the writes of a launch to some parts of an allocation in the allocation's history."""
    if records.write_lines.all():
        shadow.initialised = True
        return
    history = shadow.history
    if not history.prepare(1 << shift, reads=False):
        count = -(-shadow.size // 4) << (2 - shift)
        history.note_coarsely(_written(records, 0, len(records.write_lines))[:count], shift)
        return
    times = 1 << (shift - history.shift)
    for low, high in parts:
        first = (low - shadow.first >> shift) // _LINE
        last = (high - 1 - shadow.first >> shift) // _LINE
        before = history.writes[first * _LINE * times : (last + 1) * _LINE * times]
        written = np.repeat(_written(records, first, last + 1), times)[: len(before)]
        np.maximum(before, FILLED, out=before, where=written)
    shadow.look_through()


def _written(records: PieceRecords, first: int, end: int) -> Array:
    """Return which pieces of some lines have been written."""
    pieces = records.writes[first * _LINE : end * _LINE].reshape(-1, _LINE) != 0
    found: Array = pieces | (records.write_lines[first:end, None] != 0)
    return found.reshape(-1)
