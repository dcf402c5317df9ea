"""Follow `cp.async` in one chunk: which group each word's copy belongs to, and when its thread has waited for it.

A copy is there for its own thread once that thread has waited for the copy's group, and for others once something
puts them after that wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .ptx.groups import Group
    from .ptx.scheduler import Chunk
    from .touched import Touched

__all__ = ["AsynchronousCopies"]

Array = NDArray[Any]

# Of so many groups of a thread it is known when they were waited for; older ones count as waited for long ago.
_KEPT = 8

# Tells which accesses of threads at times are put before what lanes do now.
Ordered = Callable[[Array, Array, Array], Array]


class AsynchronousCopies:
    """Hold the groups of one chunk's copies; a thread's groups are numbered from 1."""

    def __init__(self, chunk: Chunk) -> None:
        self._first = chunk.first * chunk.threads
        self._committed = np.zeros(chunk.lanes, np.int64)
        self._waited = np.zeros(chunk.lanes, np.int64)
        self._times = np.zeros((_KEPT, chunk.lanes), np.int64)
        # For each word of shared memory the group of the copy that wrote it, 0 for none, and its lane.
        self._groups = np.zeros(len(chunk.shared.bytes) // 4, np.int64)
        self._lanes = np.zeros(len(chunk.shared.bytes) // 4, np.int64)

    def issue(self, words: Touched) -> None:
        """Note words that copies are on their way to."""
        lanes = words.records(-self._first)
        self._groups[words.index] = self._committed[lanes] + 1
        self._lanes[words.index] = lanes

    def overwrite(self, words: Touched) -> None:
        """Note that words have been written otherwise."""
        self._groups[words.index] = 0

    def commit(self, group: Group) -> None:
        """End the group of copies that lanes are at."""
        self._committed[group.lane_numbers] += 1

    def wait(self, group: Group, allowed: int, now: int) -> None:
        """Note that lanes have waited for all their groups but the last `allowed` ones."""
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

    def missing(self, words: Touched, ordered: Ordered) -> tuple[int, int, str] | None:
        """Give the first word whose copy isn't there for who touches it, the copy's lane, and what is wrong."""
        groups = self._groups[words.index]
        places = np.flatnonzero(groups)
        if not len(places):
            return None
        groups, owners = groups[places], self._lanes[words.index][places]
        lanes = words.records(-self._first)[places]
        late = np.flatnonzero(self._waited[owners] < groups)
        what = "which hasn't waited for it"
        if not len(late):
            others = np.flatnonzero((owners != lanes) & (groups > self._waited[owners] - _KEPT))
            when = self._times[groups[others] % _KEPT, owners[others]]
            late = others[~ordered(owners[others] + self._first, when, lanes[others])]
            what = "and nothing puts that thread's wait for it before this"
        return (int(places[late[0]]), int(owners[late[0]]) + self._first, what) if len(late) else None
