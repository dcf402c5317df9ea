"""Track the happens-before order that fences with atomics and volatile accesses create, for launches that checks watch.

Machine code reports when threads execute fences, when they make a strong access after a fence or to an address at which
something was released, and when they synchronise after that. It asks whether two accesses are ordered if no barrier
orders them.

A thread's strong write after its fence is a release at the written address. It releases what the thread did before the
fence, what barriers had ordered before the fence, and what other threads of its warp and block had fenced before the
warp or block last synchronised. A later strong read or atomic at that address acquires all of this.

This orders fewer accesses than the NumPy engine does, in which any strong access acquires what was released at any
address. The rule of the NumPy engine would order too much here: machine code runs most blocks one after another, and a
block that has ended has released a lot.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..layout import LANES, BlockCheck, Context
from ..library.checking.clocks import EVENT, HASHES
from ..library.checking.records import BLOCKS_BIT, LANES_BIT, THREAD, TICK, WARPS_BIT

if TYPE_CHECKING:
    from .launch import NativeLaunch

Array = NDArray[Any]
# Maps the address of a release to the event at which it was acquired.
Acquired = dict[int, int]

# The number of the latest releases at an address that are kept per thread, warp or block.
_KEPT = 4
_NUMBERS = np.arange(LANES)
# All bits of a warp's word at `BlockCheck.FENCED`: the mask of lanes, and the bit `EVENT`.
_ALL = 2 * EVENT - 1


class _SyncTimes(NamedTuple):
    """The times before which each thread's accesses had been fenced when its warp or block last synchronised.

    `each` contains one time per thread, `warps` the minimum of each warp, and `least` is the minimum of all.
    """

    each: Array
    warps: Array
    least: int

    @classmethod
    def of(cls, each: Array) -> _SyncTimes:
        """Return the times for an array with one time per thread; every 32 threads are a warp."""
        warps = np.minimum.reduceat(each, np.arange(0, len(each), LANES))
        return cls(each, warps, int(warps.min()))


class _Release(NamedTuple):
    """The accesses released at an event: accesses before `until`, and accesses that other threads had fenced."""

    event: int
    until: int
    sync_times: _SyncTimes | None

    def covers(self, when: int, thread: int | None) -> bool:
        """Return whether an access at time `when` by a thread, or by any thread if it is None, was released."""
        if when < self.until:
            return True
        sync_times = self.sync_times
        return sync_times is not None and when < (sync_times.least if thread is None else int(sync_times.each[thread]))


Releases = defaultdict[int, deque[_Release]]


def _releases() -> Releases:
    return defaultdict(lambda: deque(maxlen=_KEPT))


class _Place:
    """The releases at an address, by thread, warp and block of the launch."""

    def __init__(self) -> None:
        self.threads, self.warps, self.blocks = _releases(), _releases(), _releases()

    def until(self, block: int, warp: int, event: int) -> int:
        """Return the time before which a block has released all accesses of one of its warps, by a given event."""
        found = 0
        for release in self.blocks.get(block, ()):
            if release.event <= event:
                found = max(found, release.until, int(release.sync_times.warps[warp]) if release.sync_times else 0)
        return found


class BlockFences:
    """The state of fences and acquires of one block's threads."""

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        # For each thread, the time of its last fence, and the times, as of that fence, at which its block last had a
        # barrier and its warp last synchronised.
        self.fenced, self.block_until, self.warp_until = (np.zeros(warps * LANES, np.uint64) for _ in range(3))
        # What all threads of the block, and of each warp, had fenced when the block or the warp last synchronised.
        self.sync_times: _SyncTimes | None = None
        self.sync_times_of_warps: dict[int, _SyncTimes] = {}
        self.acquired: dict[int, Acquired] = {}
        self.acquired_by_warps: dict[int, Acquired] = {}
        self.acquired_by_all: Acquired = {}


class Fences:
    """The order that fences create among the threads of one launch.

    Machine code writes the `addresses` of a strong access, and reads in `released`, which is indexed by the hash of an
    address, whether there may have been a release.
    """

    def __init__(self, launch: NativeLaunch, addresses: Array, released: Array) -> None:
        self._launch = launch
        self._threads = launch.warps * LANES
        self._places: dict[int, _Place] = {}
        self._event = 0
        self._addresses, self._released = addresses, released

    def _here(self) -> tuple[BlockFences, Array, int]:
        """Return the fences of the current block, the words of its checks, and the number of the current warp."""
        context, records = self._launch.context, self._launch.resident.records
        number = int(context[Context.BLOCK])
        if records[0].fences is None or records[0].fences.number != number:
            records[0].fences = BlockFences(number, self._launch.warps)
        return records[0].fences, records[0].words, int(context[Context.WARP_AT_HAND])

    # --- events

    def fence(self, mask: int) -> None:
        """Record a fence by lanes of the current warp."""
        here, words, warp = self._here()
        context = self._launch.context
        context[Context.NOW] += np.uint64(TICK)
        lanes = warp * LANES + np.flatnonzero(mask >> _NUMBERS & 1)
        here.fenced[lanes] = words[BlockCheck.FENCE_TIME] = context[Context.NOW]
        here.block_until[lanes] = words[BlockCheck.BARRIER]
        here.warp_until[lanes] = words[BlockCheck.CONVERGED + lanes]
        words[BlockCheck.FENCED + warp] |= np.uint64(mask | EVENT)
        words[BlockCheck.EVENTS] = 1

    def strong(self, writers: int, readers: int) -> None:
        """Record a strong access, by which the lanes in `writers` release and the lanes in `readers` acquire."""
        here, words, warp = self._here()
        addresses = self._addresses.tolist()
        for lane in range(LANES):
            if (writers | readers) >> lane & 1:
                self._event += 1
                if writers >> lane & 1:
                    self._release(here, warp * LANES + lane, addresses[lane], int(words[BlockCheck.BEGIN]))
                if readers >> lane & 1 and addresses[lane] in self._places:
                    here.acquired.setdefault(warp * LANES + lane, {})[addresses[lane]] = self._event
                    words[BlockCheck.ACQUIRED] = words[BlockCheck.EVENTS] = 1
                    words[BlockCheck.FENCED + warp] |= np.uint64(EVENT)
        words[BlockCheck.FENCED + warp] &= np.uint64(_ALL ^ writers)

    def _release(self, here: BlockFences, thread: int, address: int, begin: int) -> None:
        place = self._places.setdefault(address, _Place())
        self._released[address >> 2 & HASHES - 1] = 1
        number = here.number * self._threads + thread
        for releases, owner, until, sync_times in (
            (place.threads, number, here.fenced, None),
            (place.warps, number // LANES, here.warp_until, here.sync_times_of_warps.get(thread // LANES)),
            (place.blocks, here.number, here.block_until, here.sync_times),
        ):
            if until[thread] > begin or sync_times is not None:
                releases[owner].append(_Release(self._event, int(until[thread]), sync_times))

    def converge(self, warp: int) -> None:
        """Record that a warp has synchronised: its lanes now share what each of them has fenced and acquired."""
        here, words, _ = self._here()
        threads = range(warp * LANES, min((warp + 1) * LANES, self._launch.state.threads))
        _join(here.acquired_by_warps.setdefault(warp, {}), [here.acquired.pop(thread, {}) for thread in threads])
        part = slice(threads.start, threads.stop)
        if here.fenced[part].any():
            here.sync_times_of_warps[warp] = _SyncTimes.of(np.maximum(here.fenced[part], here.warp_until[part].max()))
            words[BlockCheck.FENCED + warp] = EVENT - 1
        words[BlockCheck.FENCED + warp] &= np.uint64(EVENT - 1)

    def barrier(self) -> None:
        """Record that all threads of the current block have arrived at a barrier."""
        here, words, _ = self._here()
        _join(here.acquired_by_all, [*here.acquired.values(), *here.acquired_by_warps.values()])
        here.acquired.clear()
        here.acquired_by_warps.clear()
        words[BlockCheck.EVENTS] = 0
        if here.fenced.any():
            by_warp = np.repeat(here.warp_until.reshape(-1, LANES).max(axis=1), LANES)
            sync_times = np.maximum(np.maximum(here.fenced, by_warp), here.block_until.max())
            here.sync_times = _SyncTimes.of(sync_times[: self._launch.state.threads])
            words[BlockCheck.FENCED : BlockCheck.FENCED + self._launch.warps] = EVENT - 1

    # --- the resulting order

    def ordered(self, record: int, thread: int) -> bool:
        """Return whether a record's access was released and a thread of the current block has since acquired it."""
        here, words, _ = self._here()
        if record & BLOCKS_BIT:
            # The record also covers accesses by other blocks, whose times aren't known.
            return False
        block, inside = divmod(record & THREAD, self._threads)
        until = max(
            (self._places[at].until(block, inside // LANES, event) for at, event in here.acquired_by_all.items()),
            default=0,
        )
        if until > record and not record & WARPS_BIT:
            words[BlockCheck.KNOWN_FIRST], words[BlockCheck.KNOWN_UNTIL] = (record & THREAD) // LANES * LANES, until
            return True
        local = thread - here.number * self._threads
        known = (here.acquired.get(local), here.acquired_by_warps.get(local // LANES), here.acquired_by_all)
        return any(
            self._covered(self._places[address], record, event)
            for acquired in known
            if acquired
            for address, event in acquired.items()
        )

    def _covered(self, place: _Place, record: int, event: int) -> bool:
        """Return whether a record's access, and accesses of other threads that it covers, were released at `place`."""
        owner, when = record & THREAD, record // TICK * TICK
        block = place.blocks.get(owner // self._threads, ())
        if record & WARPS_BIT:
            return _one_covers(block, event, when, None)
        if _one_covers(block, event, when, owner % self._threads):
            return True
        warp = place.warps.get(owner // LANES, ())
        if record & LANES_BIT:
            return _one_covers(warp, event, when, None)
        own = place.threads.get(owner, ())
        return _one_covers(warp, event, when, owner % LANES) or _one_covers(own, event, when, None)


def _one_covers(releases: Any, event: int, when: int, thread: int | None) -> bool:
    """Return whether one of the releases that are no later than an event covers an access."""
    return any(release.event <= event and release.covers(when, thread) for release in reversed(releases))


def _join(to: Acquired, others: list[Acquired]) -> None:
    """Add the releases that others have acquired; each address keeps its latest event."""
    for other in others:
        for address, event in other.items():
            to[address] = max(event, to.get(address, 0))
