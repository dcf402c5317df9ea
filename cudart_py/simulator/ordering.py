"""Order the accesses of a launch's threads: what barriers, fences and atomics put before what.

Time counts accesses. A thread's access comes before another thread's when a barrier of their block or an instruction
that brings their warp together lies between, or when the first thread released it (a fence, then an atomic or volatile
access) before the second one acquired (by an atomic or a volatile load). What was acquired is what was released
anywhere before: that errs towards order, so that no correct program is accused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .ptx.groups import Group
    from .ptx.scheduler import Chunk

__all__ = ["Order"]

Array = NDArray[Any]

# How many releases of a thread and of a block are remembered; older ones count as acquired by everybody.
_KEPT = 4


class _Releases:
    """Remember, for each of `count` threads or blocks, when it released, and what it had done until when."""

    def __init__(self, count: int) -> None:
        self.times = np.zeros((_KEPT, count), np.int64)
        self.covers = np.zeros((_KEPT, count), np.int64)

    def add(self, who: Array, now: int, cover: Array) -> None:
        """Note a release by some, of what they had done before `cover`, unless the last one covered as much."""
        fresh = cover > self.covers[0].take(who)
        if not fresh.any():
            return
        who, cover = who[fresh], cover[fresh]
        for age in range(_KEPT - 1, 0, -1):
            self.times[age, who] = self.times[age - 1, who]
            self.covers[age, who] = self.covers[age - 1, who]
        self.times[0, who] = now
        self.covers[0, who] = cover

    def ordered(self, who: Array, when: Array, acquired: Array) -> Array:
        """Tell which of the writes that `who` made at `when` had been released before the times in `acquired`."""
        # Where even the oldest release known is too late, there may have been one before.
        result: Array = (self.times[-1, who] > acquired) & (self.times[-1, who] > 0)
        for age in range(_KEPT):
            time = self.times[age, who]
            result |= (time > 0) & (time <= acquired) & (self.covers[age, who] > when)
        return result


class _Scope:
    """Hold the fences and releases that count within blocks, or on the whole device."""

    def __init__(self, chunk: Chunk) -> None:
        self.fence = np.zeros(chunk.lanes, np.int64)
        self.fence_of_block = np.zeros(chunk.lanes, np.int64)
        self.lanes = _Releases(chunk.lanes)
        self.blocks = _Releases(chunk.blocks)


class Order:
    """Know what the threads of one chunk have waited for, released and acquired."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.first = chunk.first * chunk.threads
        self.barrier = np.zeros(chunk.blocks, np.int64)
        self.last_barrier = 0
        self._warp: Array | None = None
        self._acquired: Array | None = None
        self._scopes: dict[str, _Scope] = {}

    # --- what happens

    def barrier_done(self, group: Group, now: int) -> None:
        """Note that a group leaves a barrier of its whole block."""
        chunk = self.chunk
        lanes = group.lane_numbers
        blocks = chunk.block_of_lane[lanes]
        if group.n == chunk.lanes:
            self.barrier[:] = now
        else:
            self.barrier[blocks] = now
        self.last_barrier = int(self.barrier.min())
        if self._acquired is not None:
            latest = np.zeros(chunk.blocks, np.int64)
            np.maximum.at(latest, chunk.block_of_lane, self._acquired)
            self._acquired[lanes] = latest[blocks]

    def warp_together(self, group: Group, now: int) -> None:
        """Note that the lanes of a group's warps have come together."""
        chunk = self.chunk
        warps = _warps(chunk)
        if self._warp is None:
            self._warp = np.zeros(int(warps[-1]) + 1, np.int64)
        lanes = group.lane_numbers
        self._warp[warps[lanes]] = now
        if self._acquired is not None:
            latest = np.zeros(len(self._warp), np.int64)
            np.maximum.at(latest, warps[lanes], self._acquired[lanes])
            self._acquired[lanes] = latest[warps[lanes]]

    def fence(self, group: Group, now: int, scope: str) -> None:
        """Note a fence, of the block ("cta") or the whole device ("gpu")."""
        lanes = group.lane_numbers
        barrier = self.barrier[self.chunk.block_of_lane[lanes]]
        for name in ("cta", "gpu") if scope == "gpu" else ("cta",):
            kept = self._scope(name)
            kept.fence[lanes] = now
            kept.fence_of_block[lanes] = barrier

    def release(self, group: Group, now: int, scope: str = "") -> None:
        """Note an access by which what lay before the last fence is published; with a scope it is a fence itself."""
        if scope:
            self.fence(group, now, scope)
        lanes = group.lane_numbers
        for kept in self._scopes.values():
            self._publish(kept, lanes, now, kept.fence[lanes])

    def _publish(self, kept: _Scope, lanes: Array, now: int, cover: Array) -> None:
        some = cover > 0
        if not some.any():
            return
        chosen = lanes[some]
        kept.lanes.add(chosen, now, cover[some])
        blocks = self.chunk.block_of_lane[chosen]
        # The lane whose fence saw the latest barrier speaks for its block.
        seen = np.zeros(self.chunk.blocks, np.int64)
        np.maximum.at(seen, blocks, kept.fence_of_block[chosen])
        who = np.flatnonzero(seen)
        if len(who):
            kept.blocks.add(who, now, seen[who])

    def acquire(self, group: Group, now: int) -> None:
        """Note an access by which what others have released is seen."""
        if self._acquired is None:
            self._acquired = np.zeros(self.chunk.lanes, np.int64)
        self._acquired[group.lane_numbers] = now

    # --- what it means

    def acquired(self, lanes: Array) -> Array:
        """Give when lanes have acquired last."""
        return np.zeros(len(lanes), np.int64) if self._acquired is None else self._acquired.take(lanes)

    def passed(self, lanes: Array, when: Array, other: Array) -> Array:
        """Tell which accesses of `lanes` at `when` barriers and warps put before what lanes `other` do now."""
        chunk = self.chunk
        block = chunk.block_of_lane.take(lanes)
        same = block == chunk.block_of_lane.take(other)
        result: Array = same & (when < self.barrier.take(block))
        if self._warp is not None:
            warps = _warps(chunk)
            warp = warps.take(lanes)
            result |= (warp == warps.take(other)) & (when < self._warp.take(warp))
        return result

    def released(self, lanes: Array, when: Array, acquired: Array, scope: str) -> Array:
        """Tell which accesses of `lanes` at `when` were released before the times in `acquired`."""
        kept = self._scopes.get(scope)
        if kept is None:
            return np.zeros(len(lanes), np.bool_)
        result: Array = kept.lanes.ordered(lanes, when, acquired)
        result |= kept.blocks.ordered(self.chunk.block_of_lane.take(lanes), when, acquired)
        return result

    def _scope(self, name: str) -> _Scope:
        if name not in self._scopes:
            self._scopes[name] = _Scope(self.chunk)
        return self._scopes[name]


def _warps(chunk: Chunk) -> Array:
    """Give the warp of each lane, numbered through the chunk."""
    per_block = -(-chunk.threads // 32)
    lanes = chunk.lane_numbers
    if chunk.threads % 32 == 0:
        return np.asarray(lanes >> 5)
    return np.asarray(lanes // chunk.threads * per_block + lanes % chunk.threads // 32)
