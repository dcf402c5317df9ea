"""Asynchronous copies (`cp.async`): the group of each word's copy, and when its thread waited for that group.

A copy is complete for its own thread once that thread has waited for the copy's group, and for other threads once that
wait happens before their accesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...ptx.running.groups import Group
    from ...ptx.running.scheduler import Chunk
    from ..accesses import Footprint
    from .happens_before import Ordered

Array = NDArray[Any]

# The number of latest groups per thread whose wait times are kept; older groups count as waited for long ago.
_KEPT = 8


class AsynchronousCopies:
    """The groups of one chunk's copies. The groups of each thread are numbered from 1.

    Each set of `together` adjacent threads shares its groups: a wait by any one of the threads is enough.
    """

    def __init__(self, chunk: Chunk, together: int = 1) -> None:
        self._first = chunk.first * chunk.threads
        self._threads = chunk.threads
        self._together = together
        self._committed = np.zeros(chunk.lanes, np.int64)
        self._waited = np.zeros(chunk.lanes, np.int64)
        self._times = np.zeros((_KEPT, chunk.lanes), np.int64)
        # For each word of shared memory: the group of the copy that wrote it, 0 for none, and the lane of that copy.
        self._groups = np.zeros(len(chunk.shared.bytes) // 4, np.int64)
        self._lanes = np.zeros(len(chunk.shared.bytes) // 4, np.int64)

    def issue(self, words: Footprint) -> None:
        """Record the words to which copies have been issued."""
        lanes = words.records(-self._first)
        self._groups[words.index] = self._committed[lanes] + 1
        self._lanes[words.index] = lanes

    def overwrite(self, words: Footprint) -> None:
        """Record words that something other than a copy has written."""
        self._groups[words.index] = 0

    def commit(self, group: Group) -> None:
        """Commit the current group of copies of each lane."""
        self._committed[group.lane_numbers] += 1

    def wait(self, group: Group, allowed: int, now: int) -> None:
        """Record that lanes have waited for all their groups except the last `allowed` ones."""
        lanes = group.lane_numbers
        target = self._committed[lanes] - allowed
        waited = self._waited[lanes]
        for age in range(_KEPT):
            number = target - age
            fresh = number > waited
            if not fresh.any():
                break
            self._times[number[fresh] % _KEPT, lanes[fresh]] = now
        self._waited[lanes] = np.maximum(waited, target)

    def missing(self, words: Footprint, ordered: Ordered) -> tuple[int, int, str] | None:
        """Return the first word whose copy isn't complete for its accessing lane, the copy's thread, and the reason."""
        groups = self._groups[words.index]
        places = np.flatnonzero(groups)
        if not len(places):
            return None
        groups, owners = groups[places], self._lanes[words.index][places]
        lanes = words.records(-self._first)[places]
        if self._together > 1:
            chosen = self._unlike(owners, groups, lanes)
            places, groups, owners, lanes = places[chosen], groups[chosen], owners[chosen], lanes[chosen]
        waiters = self._waiters(owners)
        waited = self._waited[waiters] >= groups[:, None]
        late = np.flatnonzero(~waited.any(axis=1))
        what = "which hasn't waited for it"
        if not len(late):
            known = waited & ((waiters == lanes[:, None]) | (groups[:, None] <= self._waited[waiters] - _KEPT))
            others = np.flatnonzero(~known.any(axis=1))
            when = self._times[groups[others, None] % _KEPT, waiters[others]]
            reader = np.broadcast_to(lanes[others, None] + self._first, when.shape)
            told = ordered((waiters[others] + self._first).ravel(), when.ravel(), reader.ravel()).reshape(when.shape)
            late = others[~(told & waited[others]).any(axis=1)]
            what = "and nothing orders that thread's wait before this access"
        return (int(places[late[0]]), int(owners[late[0]]) + self._first, what) if len(late) else None

    def _waiters(self, owners: Array) -> Array:
        """Return the lanes whose waits complete the copies of each owner, with one row per owner."""
        within = owners % self._threads % self._together
        last = owners - owners % self._threads + self._threads - 1
        rows: Array = np.minimum((owners - within)[:, None] + np.arange(self._together), last[:, None])
        return rows

    def _unlike(self, owners: Array, groups: Array, lanes: Array) -> Array:
        """Return one position for each combination of owner, group and lane, whose words all have the same result."""
        count = len(self._waited)
        chosen: Array = np.sort(np.unique((groups * count + owners) * count + lanes, return_index=True)[1])
        return chosen
