"""Proxy fences (`fence.proxy.async`), which make ordinary stores visible to bulk copies.

A fence counts for a store and a copy if the storing thread, or the copying thread, has executed it since the store. The
fence of a third thread counts too, if the store happens before the fence and the fence happens before the copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...ptx.running.groups import Group
    from ...ptx.running.scheduler import Chunk
    from .happens_before import HappensBefore, Ordered

Array = NDArray[Any]

# The number of latest fences that are kept per thread.
_KEPT = 4


class ProxyFences:
    """The proxy fences of one chunk."""

    def __init__(self, chunk: Chunk) -> None:
        self._first = chunk.first * chunk.threads
        # The times of each lane's last fences, the latest first, and for each fence what `HappensBefore.sync_times`
        # returned for the lane: the last barrier of its block, the last of its warp, and its last acquire.
        self._times = np.zeros((_KEPT, chunk.lanes), np.int64)
        self._sync_times = np.zeros((3, _KEPT, chunk.lanes), np.int64)
        # The clock of each lane's warp at the lane's last fence. It is used for the lane's earlier fences too.
        self._clocks: Array | None = None

    def note(self, group: Group, order: HappensBefore, now: int) -> None:
        """Record a fence."""
        lanes = group.lane_numbers
        self._times[1:, lanes] = self._times[:-1, lanes]
        self._sync_times[:, 1:, lanes] = self._sync_times[:, :-1, lanes]
        self._times[0, lanes] = now
        self._sync_times[:, 0, lanes] = order.sync_times(lanes)
        clocks = order.clocks(lanes)
        if clocks is not None:
            if self._clocks is None:
                self._clocks = np.zeros((self._times.shape[1], clocks.shape[1]), np.int64)
            self._clocks[lanes] = clocks

    def missing(self, writers: Array, when: Array, readers: Array, order: HappensBefore, ordered: Ordered) -> Array:
        """Return the positions of stores that no fence follows for the lanes that read them now."""
        late = np.flatnonzero(np.maximum(self._times[0, writers], self._times[0, readers]) <= when)
        if not len(late) or not self._times.any():
            return late
        found = []
        for reader in np.unique(readers[late]):
            some = late[readers[late] == reader]
            numbers, lanes = np.nonzero(self._times > when[some].min())
            before = ordered(
                lanes + self._first, self._times[numbers, lanes], np.full(len(lanes), reader + self._first)
            )
            numbers, lanes = numbers[before], lanes[before]
            clocks = None if self._clocks is None else self._clocks[lanes]
            fenced = order.reached(lanes, self._sync_times[:, numbers, lanes], clocks, writers[some], when[some])
            found.append(some[~fenced])
        return np.sort(np.concatenate(found))
