"""Bulk copies (`cp.async.bulk`): which words of shared memory they write and read, and who has waited for them.

A copy to shared memory is complete for a thread that has acquired since, as by a wait for the copy's barrier; barriers
pass that on to the threads of a block. A copy from shared memory reads until its own thread has waited for its group.
What ordinary stores wrote is seen by a copy if a proxy fence came between, in the thread that stored it or in the one
that copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...state.memory.shadow import THREAD, TIME, History
from .asynchronous import AsynchronousCopies

if TYPE_CHECKING:
    from ...ptx.running.groups import Group
    from ...ptx.running.scheduler import Chunk
    from ..accesses import Footprint
    from .happens_before import HappensBefore

__all__ = ["BulkCopies"]

Array = NDArray[Any]


class BulkCopies:
    """The bulk copies of one chunk, by the words of shared memory that they write and read."""

    def __init__(self, chunk: Chunk) -> None:
        self._first = chunk.first * chunk.threads
        # When a bulk copy wrote each word that nothing has written since; 0 for other words.
        self._arrived = np.zeros(len(chunk.shared.bytes) // 4, np.int64)
        # When each lane last executed a proxy fence.
        self._fenced = np.zeros(chunk.lanes, np.int64)
        self._chunk = chunk
        # What bulk copies read, and matrix instructions, each in groups of their own; by the opcode's first name.
        self._reads: dict[str, AsynchronousCopies] = {}

    def reads(self, name: str) -> AsynchronousCopies:
        """Return the groups of reads by instructions of an opcode's first name."""
        if name not in self._reads:
            self._reads[name] = AsynchronousCopies(self._chunk)
        return self._reads[name]

    def all_reads(self) -> list[tuple[str, AsynchronousCopies]]:
        """Return the groups of all reads, with the instruction that reads."""
        return [("wgmma" if name == "wgmma" else "cp.async.bulk", reads) for name, reads in self._reads.items()]

    def fence(self, group: Group, now: int) -> None:
        """Note a proxy fence."""
        self._fenced[group.lane_numbers] = now

    def arrive(self, words: Footprint, now: int) -> None:
        """Note the words that bulk copies have written."""
        self._arrived[words.index] = now

    def overwrite(self, words: Footprint) -> None:
        """Note the words that something other than a bulk copy has written."""
        self._arrived[words.index] = 0

    def incomplete(self, words: Footprint, order: HappensBefore) -> int | None:
        """Return the first word whose copy isn't complete for the lane that accesses it."""
        arrived = self._arrived[words.index]
        places = np.flatnonzero(arrived)
        if not len(places):
            return None
        lanes = words.records(-self._first)[places]
        late = np.flatnonzero(order.acquired(lanes) <= arrived[places])
        return int(places[late[0]]) if len(late) else None

    def unfenced(self, words: Footprint, history: History) -> tuple[int, int] | None:
        """Return the first word that a copy is about to read and whose store no proxy fence follows, and its record."""
        # A piece of the history may be smaller than a word: its first one stands for the word.
        records = history.writes[:: 4 >> history.shift][words.index]
        stored = np.flatnonzero((records != 0) & (self._arrived[words.index] == 0))
        if not len(stored):
            return None
        writers = (records[stored] & THREAD) - self._first
        fenced = np.maximum(self._fenced[writers], self._fenced[words.records(-self._first)[stored]])
        late = np.flatnonzero(fenced <= records[stored] >> TIME)
        return (int(stored[late[0]]), int(records[stored[late[0]]])) if len(late) else None
