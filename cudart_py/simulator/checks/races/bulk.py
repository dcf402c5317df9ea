"""Bulk copies (`cp.async.bulk`): the words of shared memory that they write and read, and the waits for them.

A copy to shared memory is complete for a thread that has since waited at the barrier that counts the copy's bytes. It
is also complete for another thread's access if such a wait happens before that access. A copy from shared memory may
still read until its own thread has waited for its group. A copy sees the values of ordinary stores only if there is a
proxy fence between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...state.memory.records.shadow import THREAD, TIME, History
from .asynchronous import AsynchronousCopies
from .proxy_fences import ProxyFences

if TYPE_CHECKING:
    from ...ptx.running.groups import Group
    from ...ptx.running.scheduler import Chunk
    from ..accesses import Footprint
    from .happens_before import HappensBefore, Ordered

Array = NDArray[Any]


def by_words(history: History) -> Array:
    """Return the record of the last write to each word; if pieces are smaller, the first one stands for the word."""
    records: Array = history.writes[:: 4 >> history.shift]
    return records


# The four warps of a warpgroup share their matrix instructions.
_TOGETHER = {"wgmma": 128}


class _Waits:
    """The first wait of each lane at a barrier in memory (0 for none) since the barrier began to count its copies."""

    def __init__(self, lanes: int, now: int) -> None:
        self.began = now
        self.first = np.zeros(lanes, np.int64)


class BulkCopies:
    """The bulk copies of one chunk, recorded per word of shared memory that they write or read."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._first = chunk.first * chunk.threads
        # For each word that a bulk copy was the last to write: the time of that copy (0 for other words), and the
        # offset of the barrier that counts its bytes.
        self._arrived = np.zeros(len(chunk.shared.bytes) // 4, np.int64)
        self._barriers = np.zeros(len(chunk.shared.bytes) // 4, np.int64)
        self._waits: dict[int, _Waits] = {}
        self.fences = ProxyFences(chunk)
        # The reads of bulk copies and of matrix instructions, which have separate groups, keyed by the opcode's first
        # name.
        self._reads: dict[str, AsynchronousCopies] = {}

    def reads(self, name: str) -> AsynchronousCopies:
        """Return the groups of the reads by instructions whose opcode has this first name."""
        if name not in self._reads:
            self._reads[name] = AsynchronousCopies(self._chunk, _TOGETHER.get(name, 1))
        return self._reads[name]

    def all_reads(self) -> list[tuple[str, AsynchronousCopies]]:
        """Return the groups of all reads, each with the name of the instruction that reads."""
        return [("wgmma" if name == "wgmma" else "cp.async.bulk", reads) for name, reads in self._reads.items()]

    def arrive(self, words: Footprint, barriers: Array, now: int) -> None:
        """Record the words that bulk copies have written; `barriers` has the offset of the barrier of each 16 bytes."""
        self._arrived[words.index] = now
        self._barriers[words.index] = np.repeat(barriers, words.each)
        for barrier in np.unique(barriers):
            waits = self._waits.get(int(barrier))
            # Several copies may be counted in one phase. If a thread has waited since, this copy is of a later phase.
            if waits is None or waits.first.any():
                self._waits[int(barrier)] = _Waits(self._chunk.lanes, now)

    def wait(self, group: Group, barriers: Array, now: int) -> None:
        """Record that lanes wait at barriers, given by their offsets."""
        for barrier in np.unique(barriers):
            waits = self._waits.get(int(barrier))
            if waits is not None:
                lanes = group.lane_numbers[barriers == barrier]
                waits.first[lanes] = np.where(waits.first[lanes], waits.first[lanes], now)

    def overwrite(self, words: Footprint) -> None:
        """Record the words that something other than a bulk copy has written."""
        self._arrived[words.index] = 0

    def incomplete(self, words: Footprint, ordered: Ordered, now: int) -> tuple[int, int] | None:
        """Return the first word whose copy isn't complete for its accessing lane, and the barrier's offset, or None."""
        arrived = self._arrived[words.index]
        places = np.flatnonzero(arrived)
        if not len(places):
            return None
        barriers, lanes = self._barriers[words.index][places], words.records(-self._first)[places]
        for barrier in np.unique(barriers):
            waits = self._waits[int(barrier)]
            # A copy of an earlier phase counts as complete.
            here = np.flatnonzero((barriers == barrier) & (arrived[places] >= waits.began))
            for number in here[waits.first[lanes[here]] == 0]:
                lane = lanes[number]
                if not waits.first[lane] and not self._told(waits, lane, ordered):
                    return int(places[number]), int(barrier)
                waits.first[lane] = now
        return None

    def _told(self, waits: _Waits, lane: int, ordered: Ordered) -> bool:
        """Return whether the wait of another lane happens before the current access of a lane."""
        others = np.flatnonzero(waits.first)
        return bool(ordered(others + self._first, waits.first[others], np.full(len(others), lane + self._first)).any())

    def unfenced(
        self, words: Footprint, history: History, order: HappensBefore, ordered: Ordered
    ) -> tuple[int, int] | None:
        """Return the first word of a copy that was stored without a later proxy fence, and its record, or None."""
        records = by_words(history)[words.index]
        stored = np.flatnonzero((records != 0) & (self._arrived[words.index] == 0))
        if not len(stored):
            return None
        writers, readers = (records[stored] & THREAD) - self._first, words.records(-self._first)[stored]
        late = self.fences.missing(writers, records[stored] >> TIME, readers, order, ordered)
        return (int(stored[late[0]]), int(records[stored[late[0]]])) if len(late) else None
