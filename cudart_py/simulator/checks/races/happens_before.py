"""The happens-before relation among the accesses of a launch's threads, established by barriers, fences and atomics.

Time counts accesses. An access happens before another thread's access if there is a barrier of their thread block, or
an instruction that synchronises their warp, between the two, or if it was released before the other thread acquired.

For barriers in memory, each warp has a vector clock: an arrival passes on everything that happens before it, and a wait
receives what the arrivals of completed phases have passed on. The lanes of a warp share a clock.

A fence covers the accesses of its own thread, the accesses of its block and its warp that barriers order before it, and
the accesses that other threads of its block had released to it. The thread's next atomic or volatile access releases
all of them. A barrier passes the coverage on to the block, and the next atomic or volatile access by any of its threads
releases it. A thread acquires with an atomic or a
volatile load, and passes on at barriers what it has acquired. There are no vector clocks for this, nor for clusters: a
thread that acquires counts as acquiring everything that was released anywhere before. All these approximations err
towards order, so that no correct program is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .warp_clocks import WarpClocks

if TYPE_CHECKING:
    from ...ptx.running.groups import Group
    from ...ptx.running.scheduler import Chunk

Array = NDArray[Any]

# Called with threads, the times of their accesses, and other threads, it returns a mask of the accesses that happen
# before the current accesses of the other threads.
Ordered = Callable[[Array, Array, Array], Array]

# The number of releases that are kept per thread, warp or block; older ones count as acquired by all threads.
_KEPT = 4
_FOREVER = np.int64(1 << 62)


class _Reach:
    """The time up to which fences cover the accesses of each owner, and the times of the releases of that coverage.

    An owner is a lane, a warp or a block; `owner` has the owner of each of the chunk's lanes.
    """

    def __init__(self, owner: Array) -> None:
        self._owner = owner
        # The column of each owner's releases, after equal columns have been merged.
        self._column: Array | None = None
        count = int(owner[-1]) + 1
        # The coverage of each lane's last fence, the times of each owner's last releases, and their coverage.
        self.fenced = np.zeros(len(owner), np.int64)
        self._times = np.zeros((_KEPT, count), np.int64)
        self._covers = np.zeros((_KEPT, count), np.int64)

    def release(self, lanes: Array, now: int) -> None:
        """Record that lanes release what their fences cover, unless the owners' last releases covered as much."""
        owners, until = self._owner[lanes], self.fenced[lanes]
        fresh = until > self._covers[0].take(owners)
        if not fresh.any():
            return
        latest = np.zeros(self._times.shape[1], np.int64)
        np.maximum.at(latest, owners[fresh], until[fresh])
        who = np.flatnonzero(latest)
        for kept in (self._times, self._covers):
            kept[1:, who] = kept[:-1, who]
        self._times[0, who] = now
        self._covers[0, who] = latest[who]

    def covered(self, lanes: Array, acquired: Array) -> Array:
        """Return the time up to which the accesses of the lanes' owners had been released by the times `acquired`."""
        owners = self._owner.take(lanes)
        columns = owners if self._column is None else self._column.take(owners)
        times, covers = self._times[:, columns], self._covers[:, columns]
        until: Array = np.where((times > 0) & (times <= acquired), covers, 0).max(axis=0)
        # If even the oldest kept release came later, there may have been an earlier one that was not kept.
        until[times[-1] > acquired] = _FOREVER
        return until

    def end(self) -> None:
        """Keep only the releases, and merge equal columns, since lanes that ran together mostly released together."""
        self.fenced = np.empty(0, np.int64)
        kinds, column = np.unique(np.concatenate((self._times, self._covers)), axis=1, return_inverse=True)
        self._times, self._covers = kinds[:_KEPT], kinds[_KEPT:]
        self._column = column.reshape(-1).astype(np.min_scalar_type(kinds.shape[1] - 1))


class _Scope:
    """The fences and releases of one scope: the thread block or the whole device."""

    def __init__(self, lanes: Array, warp_of_lane: Array, block_of_lane: Array) -> None:
        self.own = _Reach(lanes)
        self.warp = _Reach(warp_of_lane)
        self.block = _Reach(block_of_lane)
        # The coverage here is the time up to which the fencing thread had acquired releases of its block.
        self.sync_times = _Reach(block_of_lane)

    def release(self, lanes: Array, now: int) -> None:
        """Record that lanes release everything that their fences cover."""
        for reach in (self.own, self.warp, self.block, self.sync_times):
            reach.release(lanes, now)

    def end(self) -> None:
        """Keep only what later chunks may need."""
        for reach in (self.own, self.warp, self.block, self.sync_times):
            reach.end()

    def released(self, lanes: Array, when: Array, acquired: Array) -> Array:
        """Return a mask of the accesses of `lanes` at `when` that they, their warp or block released by `acquired`."""
        result: Array = self.own.covered(lanes, acquired) > when
        result |= self.warp.covered(lanes, acquired) > when
        result |= self.block.covered(lanes, acquired) > when
        return result


class HappensBefore:
    """The waits, releases and acquisitions of the threads of one chunk.

    It lives as long as the launch, and therefore keeps only the shape of the chunk and no reference to it.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.first = chunk.first * chunk.threads
        self._lanes = chunk.lane_numbers
        self._block_of_lane = chunk.block_of_lane
        self._warp_of_lane = _warps(chunk.blocks, chunk.threads)
        self.barrier = np.zeros(chunk.blocks, np.int64)
        self.last_barrier = 0
        # When each lane last synchronised with others of its warp.
        self._converged: Array | None = None
        self._acquired: Array | None = None
        # When each lane last waited at a barrier in memory.
        self._waited: Array | None = None
        self._clocks: WarpClocks | None = None
        self._scopes: dict[str, _Scope] = {}
        # The lanes whose fences' coverage a barrier has passed on to their block, which has not released it yet.
        self._passed_on: Array | None = None

    # --- recording

    def barrier_done(self, group: Group, now: int) -> None:
        """Record that a group leaves a barrier of its whole block."""
        lanes = group.lane_numbers
        blocks = self._block_of_lane[lanes]
        if group.n == len(self._lanes):
            self.barrier[:] = now
        else:
            self.barrier[blocks] = now
        self.last_barrier = int(self.barrier.min())
        for times in (self._acquired, self._waited):
            if times is not None:
                latest = np.zeros(len(self.barrier), np.int64)
                np.maximum.at(latest, self._block_of_lane, times)
                times[lanes] = latest[blocks]
        self._pass_on(lanes)

    def warp_together(self, group: Group, masks: Any, now: int) -> None:
        """Record that an instruction has synchronised the lanes of each warp: a group, and those that `masks` names.

        The latter have arrived at another copy of the instruction, on another side of a branch. `masks` has the member
        mask of each lane of the group, or is one for all of them, or None.
        """
        if self._converged is None:
            self._converged = np.zeros(len(self._lanes), np.int64)
        lanes = self._with_members(group, masks)
        warps = self._warp_of_lane[lanes]
        self._converged[lanes] = now
        for times in (self._acquired, self._waited):
            if times is not None:
                latest = np.zeros(int(self._warp_of_lane[-1]) + 1, np.int64)
                np.maximum.at(latest, warps, times[lanes])
                times[lanes] = latest[warps]
        self._pass_on(lanes)

    def _with_members(self, group: Group, masks: Any) -> Array:
        """Return the lanes of a group, and those of the same warps that their member masks name."""
        if masks is None or group.n == len(self._lanes):
            return group.lane_numbers
        named = np.zeros(int(self._warp_of_lane[-1]) + 1, np.uint32)
        np.bitwise_or.at(named, self._warp_of_lane[group.lane_numbers], masks)
        lanes = (np.arange(len(self._lanes)) % group.chunk.threads % 32).astype(np.uint32)
        inside = named[self._warp_of_lane] >> lanes & np.uint32(1)
        inside[group.lane_numbers] = 1
        return np.flatnonzero(inside)

    def fence(self, group: Group, now: int, scope: str) -> None:
        """Record a fence whose scope is the block ("cta") or the whole device ("gpu")."""
        lanes = group.lane_numbers
        for name in ("cta", "gpu") if scope == "gpu" else ("cta",):
            kept = self._scope(name)
            kept.own.fenced[lanes] = now
            kept.block.fenced[lanes] = self.barrier[self._block_of_lane[lanes]]
            if self._converged is not None:
                kept.warp.fenced[lanes] = self._converged[lanes]
            acquired = self.acquired(lanes)
            kept.sync_times.fenced[lanes] = (
                acquired if self._waited is None else np.maximum(acquired, self._waited[lanes])
            )

    def release(self, group: Group, now: int, scope: str = "") -> None:
        """Record an access that releases the coverage of fences; with a scope, the access is itself a fence.

        The fences are the last ones of the group's lanes, and those whose coverage was passed on to their blocks.
        """
        if scope:
            self.fence(group, now, scope)
        lanes = group.lane_numbers
        if self._passed_on is not None:
            releasing = np.zeros(len(self.barrier), np.bool_)
            releasing[self._block_of_lane[lanes]] = True
            passed_on = np.flatnonzero(self._passed_on & releasing[self._block_of_lane])
            self._passed_on[passed_on] = False
            lanes = np.union1d(lanes, passed_on)
        for kept in self._scopes.values():
            kept.release(lanes, now)

    def _pass_on(self, lanes: Array) -> None:
        """Record that a barrier passes the coverage of the lanes' fences on to their block."""
        if self._scopes:
            if self._passed_on is None:
                self._passed_on = np.zeros(len(self._lanes), np.bool_)
            self._passed_on[lanes] = True

    def acquire(self, group: Group, now: int) -> None:
        """Record an access that acquires the releases of other threads."""
        if self._acquired is None:
            self._acquired = np.zeros(len(self._lanes), np.int64)
        self._acquired[group.lane_numbers] = now

    def arrive(
        self, chunk: Chunk, lanes: Array, barriers: Array, now: int, arrivals: Array, *, releases: bool = True
    ) -> None:
        """Record that lanes, or their copies, make `arrivals` arrivals each at barriers in memory, given by offsets."""
        if self._clocks is None:
            self._clocks = WarpClocks(chunk.blocks, chunk.threads, chunk.shared.views["u8"])
        self._clocks.arrive(lanes, barriers, self.acquired(lanes), now if releases else 0, arrivals)

    def wait(self, lanes: Array, barriers: Array, now: int) -> None:
        """Record that lanes wait at barriers in memory, given by their offsets."""
        if self._waited is None:
            self._waited = np.zeros(len(self._lanes), np.int64)
        self._waited[lanes] = now
        acquired = None if self._clocks is None else self._clocks.wait(lanes, barriers)
        if acquired is not None and acquired.any():
            if self._acquired is None:
                self._acquired = np.zeros(len(self._lanes), np.int64)
            self._acquired[lanes] = np.maximum(self._acquired[lanes], acquired)

    def end(self) -> None:
        """Keep only the releases, which later chunks may need, after all lanes have ended."""
        self._converged = self._acquired = self._waited = self._clocks = self._passed_on = None
        for kept in self._scopes.values():
            kept.end()

    # --- queries

    def acquired(self, lanes: Array) -> Array:
        """Return the time of each lane's last acquire, 0 for none."""
        return np.zeros(len(lanes), np.int64) if self._acquired is None else self._acquired.take(lanes)

    def sync_times(self, lanes: Array) -> Array:
        """Return three rows of times per lane: its block's last barrier, its last one in its warp, its last acquire."""
        warps = np.zeros(len(lanes), np.int64) if self._converged is None else self._converged[lanes]
        return np.stack([self.barrier[self._block_of_lane[lanes]], warps, self.acquired(lanes)])

    def clocks(self, lanes: Array) -> Array | None:
        """Return the clock of each lane's warp, with one row per lane; None if no barrier in memory has been used."""
        return None if self._clocks is None else self._clocks.of(lanes)

    def reached(self, lanes: Array, sync_times: Array, clocks: Array | None, others: Array, when: Array) -> Array:
        """Return a mask of the accesses of `others` at `when` that happen before some earlier access of any of `lanes`.

        `sync_times` and `clocks` are the values that the methods of these names returned at that earlier time.
        """
        blocks, warps = self._block_of_lane[lanes], self._warp_of_lane[lanes]
        barrier, acquired = np.zeros((2, len(self.barrier)), np.int64)
        warp = np.zeros(int(self._warp_of_lane[-1]) + 1, np.int64)
        for latest, owners, times in zip((barrier, warp, acquired), (blocks, warps, blocks), sync_times, strict=True):
            np.maximum.at(latest, owners, times)
        mine = self._block_of_lane[others]
        result: Array = (when < barrier[mine]) | (when < warp[self._warp_of_lane[others]])
        if clocks is not None:
            known = np.zeros((len(self.barrier), clocks.shape[1]), np.int64)
            np.maximum.at(known, blocks, clocks)
            result |= when < known[mine, self._warp_of_lane[others] % clocks.shape[1]]
        for scope, times in (("gpu", np.full(len(others), acquired.max())), ("cta", acquired[mine])):
            result |= (times > 0) & self.released(others, when, times, scope)
        return result

    def passed(self, lanes: Array, when: Array, other: Array) -> Array:
        """Return a mask of the accesses of `lanes` at `when` that barriers order before the current ones of `other`."""
        block = self._block_of_lane.take(lanes)
        same = block == self._block_of_lane.take(other)
        result: Array = same & (when < self.barrier.take(block))
        if self._converged is not None:
            near = self._warp_of_lane.take(lanes) == self._warp_of_lane.take(other)
            result |= near & (when < self._converged.take(lanes)) & (when < self._converged.take(other))
        if self._clocks is not None:
            result |= same & self._clocks.passed(lanes, when, other)
        return result

    def released(self, lanes: Array, when: Array, acquired: Array, scope: str) -> Array:
        """Return a mask of the accesses of `lanes` at `when` that were released before the times in `acquired`."""
        kept = self._scopes.get(scope)
        if kept is None:
            return np.zeros(len(lanes), np.bool_)
        result = kept.released(lanes, when, acquired)
        # A thread of the block that has acquired these releases passes them on with its own fence.
        sync_times = kept.sync_times.covered(lanes, acquired)
        result |= (sync_times > 0) & self._scope("cta").released(lanes, when, sync_times)
        return result

    def _scope(self, name: str) -> _Scope:
        if name not in self._scopes:
            self._scopes[name] = _Scope(self._lanes, self._warp_of_lane, self._block_of_lane)
        return self._scopes[name]


@lru_cache(maxsize=16)
def _warps(blocks: int, threads: int) -> Array:
    """Return the warp of each lane, numbered across the chunk; chunks of the same shape share the array."""
    lanes = np.arange(blocks * threads)
    return np.asarray(lanes // threads * -(-threads // 32) + lanes % threads // 32)
