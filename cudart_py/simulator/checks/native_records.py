"""Records that machine code keeps of accesses to global memory, separate from the history of the NumPy engine.

They contain less information than the history: only whether there may be a finding. Only one launch can therefore use
them. They need not be cleared after it, because their times are older than the times of any later launch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ptx.running.observer import PieceRecords
from ..state.memory.record_limit import limit
from ..state.memory.shadow import FILLED, ShadowMemory

Array = NDArray[Any]

# The time has 32 bits in a record. If a launch would begin later than this, the clock restarts, with new records.
_LAST_BEGIN = 1 << 31
# The record of a piece that was written before any launch. Its two lowest bits are 0, because in a line's record they
# contain the number of pieces per thread.
_WRITTEN = 4
_LINE = 32
# The size in bytes of the largest partly written allocation whose records are rebuilt for each launch.
_MOST_PARTLY = 1 << 24


class _Clock:
    """The clock of machine code's records, and the number of times that it has restarted."""

    def __init__(self) -> None:
        self.now = _WRITTEN + 1
        self.era = 0


_clock = _Clock()


def _new(lines: int) -> PieceRecords | None:
    """Return records for an allocation that has been completely written, or None if there is no memory for them."""
    writes, reads = (limit.zeros(lines * _LINE, np.uint64) for _ in range(2))
    if writes is None or reads is None:
        return None
    write_lines, read_lines = (np.full(lines, _WRITTEN, np.uint64) for _ in range(2))
    return PieceRecords(writes, reads, write_lines, read_lines, unwritten=False)


class NativeRecords:
    """The records of one launch."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        if _clock.now > _LAST_BEGIN:
            _clock.now, _clock.era = _WRITTEN + 1, _clock.era + 1
        self.begin, self.era = _clock.now, _clock.era
        # The allocations that had not been completely written before, with the records of their writes.
        self._unwritten: list[tuple[ShadowMemory, int, PieceRecords]] = []

    def of(self, start: int, shift: int) -> PieceRecords | None:
        """Return the records of the allocation that starts at an address, in pieces of ``1 << shift`` bytes.

        Return None if there is no memory for the records, or if the allocation is large and partly written, because all
        its records would have to be rebuilt.
        """
        shadow: ShadowMemory = self._memory.shadow(start)
        count = -(-shadow.size // 4) << (2 - shift)
        lines = -(-count // _LINE)
        if not shadow.initialised:
            history = shadow.history
            if history.coarse is not None or (history.written and shadow.size > _MOST_PARTLY):
                return None
            records = _new(lines)
            if records is None:
                return None
            records.write_lines[:] = 0
            if history.written:
                if not history.prepare(1 << shift, reads=False):
                    return None
                known = history.writes != 0
                if shift > history.shift:
                    known = known.reshape(-1, 1 << (shift - history.shift)).all(axis=1)
                np.multiply(known, np.uint64(_WRITTEN), out=records.writes[:count])
            self._unwritten.append((shadow, shift, records))
            return replace(records, unwritten=True)
        key = self.era, shift
        if key not in shadow.native:
            shadow.native = {}
            records = _new(lines)
            if records is None:
                return None
            shadow.native[key] = records
        kept: PieceRecords = shadow.native[key]
        return kept

    def end(self, now: int) -> None:
        """Advance the clock, whether the launch has ended or has to run again."""
        _clock.now = max(_clock.now, now + 1)

    def keep(self) -> None:
        """Record the writes of the launch in the histories of its allocations."""
        for shadow, shift, records in self._unwritten:
            try:
                self._keep(shadow, shift, records)
            except MemoryError:
                limit.say(
                    f"no memory is left for the records of {shadow.size:,} bytes",
                    "uninitialised values are not checked for there",
                )
                shadow.initialised = True

    def _keep(self, shadow: ShadowMemory, shift: int, records: PieceRecords) -> None:
        """Record the writes of the launch in the history of one allocation."""
        count = -(-shadow.size // 4) << (2 - shift)
        if records.write_lines.all():
            shadow.initialised = True
            return
        in_lines = records.write_lines[:, None] != 0
        if ((records.writes.reshape(-1, _LINE) != 0) | in_lines).reshape(-1)[:count].all():
            shadow.initialised = True
            return
        # The history already has the earlier writes.
        written = ((records.writes.reshape(-1, _LINE) > _WRITTEN) | in_lines).reshape(-1)[:count]
        history = shadow.history
        if not history.prepare(1 << shift, reads=False):
            history.note_coarsely(written, shift)
            return
        # Touch only the written pieces: untouched records of a large allocation then take no memory.
        parts = 1 << (shift - history.shift)
        pieces = (np.flatnonzero(written)[:, None] * parts + np.arange(parts)).reshape(-1)
        history.writes[pieces] = np.maximum(history.writes[pieces], FILLED)
        shadow.look_through()
