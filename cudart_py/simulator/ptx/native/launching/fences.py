"""Know what fences with atomics and volatile accesses put in order, for machine code that checks watch.

Machine code says here where threads execute fences, where they access memory strongly behind one, or at an address at
which somebody has released, and where they come together after that. It asks here about two accesses that no barrier
puts in order.

A thread's strong write behind its fence releases at an address: what the thread had done before the fence, what
barriers had put before the fence, and what others of its warp and block had fenced before these came together. A strong
read or an atomic at that address acquires it later. That is less than what the NumPy engine takes to be in order, for
which any strong access acquires what was released anywhere: the order of blocks is another in machine code, and a block
that has ended has released a lot.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..layout import LANES, BlockCheck, Context
from ..library.fences import EVENT, HASHES
from ..library.records import BLOCKS_BIT, LANES_BIT, THREAD, TICK, WARPS_BIT

if TYPE_CHECKING:
    from .launch import NativeLaunch

Array = NDArray[Any]
# For each address at which somebody has released: when.
Acquired = dict[int, int]

# The number of latest releases that are remembered of each thread, warp or block at an address.
_KEPT = 4
_NUMBERS = np.arange(LANES)
# All bits of a warp's word of lanes with fences.
_ALL = 2 * EVENT - 1


class _SyncTimes(NamedTuple):
    """Until when accesses of each thread of a warp or block had been fenced before these came together.

    `warps` are the least of these times in each warp, and `least` the least of all.
    """

    each: Array
    warps: Array
    least: int

    @classmethod
    def of(cls, each: Array) -> _SyncTimes:
        """Return what a number for each thread tells; the threads of each 32 are a warp."""
        warps = np.minimum.reduceat(each, np.arange(0, len(each), LANES))
        return cls(each, warps, int(warps.min()))


class _Release(NamedTuple):
    """Which accesses were released at an event: those before `until`, and those that others had fenced."""

    event: int
    until: int
    sync_times: _SyncTimes | None

    def covers(self, when: int, thread: int | None) -> bool:
        """Return whether an access of a thread, or of all threads if it is None, is among them."""
        if when < self.until:
            return True
        sync_times = self.sync_times
        return sync_times is not None and when < (sync_times.least if thread is None else int(sync_times.each[thread]))


Releases = defaultdict[int, deque[_Release]]


def _releases() -> Releases:
    return defaultdict(lambda: deque(maxlen=_KEPT))


class _Place:
    """What was released at an address, for each thread, warp and block of the launch."""

    def __init__(self) -> None:
        self.threads, self.warps, self.blocks = _releases(), _releases(), _releases()

    def until(self, block: int, warp: int, event: int) -> int:
        """Return until when a block has released all accesses of one of its warps, not later than at an event."""
        found = 0
        for release in self.blocks.get(block, ()):
            if release.event <= event:
                found = max(found, release.until, int(release.sync_times.warps[warp]) if release.sync_times else 0)
        return found


class BlockFences:
    """What the threads of one block have fenced and acquired."""

    def __init__(self, number: int, warps: int) -> None:
        self.number = number
        # For each thread the time of its last fence, and of the last barrier, and of its warp's coming together, then.
        self.fenced, self.block_until, self.warp_until = (np.zeros(warps * LANES, np.uint64) for _ in range(3))
        # What others had fenced of the threads of the block, and of each warp, before these came together.
        self.sync_times: _SyncTimes | None = None
        self.sync_times_of_warps: dict[int, _SyncTimes] = {}
        self.acquired: dict[int, Acquired] = {}
        self.acquired_by_warps: dict[int, Acquired] = {}
        self.acquired_by_all: Acquired = {}


class Fences:
    """What fences put in order among the threads of one launch.

    Machine code leaves the `addresses` of a strong access, and finds in `released` which addresses may be places of
    releases, by their hashes.
    """

    def __init__(self, launch: NativeLaunch, addresses: Array, released: Array) -> None:
        self._launch = launch
        self._threads = launch.warps * LANES
        self._places: dict[int, _Place] = {}
        self._event = 0
        self._addresses, self._released = addresses, released

    def _here(self) -> tuple[BlockFences, Array, int]:
        """Return what the block at hand has fenced, the words of its checks, and the warp at hand."""
        context, records = self._launch.context, self._launch.resident.records
        assert records is not None
        number = int(context[Context.BLOCK])
        if records.fences is None or records.fences.number != number:
            records.fences = BlockFences(number, self._launch.warps)
        return records.fences, records.words, int(context[Context.WARP_AT_HAND])

    # --- what happens

    def fence(self, mask: int) -> None:
        """Note a fence of lanes of the warp at hand."""
        here, words, warp = self._here()
        context = self._launch.context
        context[Context.NOW] += np.uint64(TICK)
        lanes = warp * LANES + np.flatnonzero(mask >> _NUMBERS & 1)
        here.fenced[lanes] = context[Context.NOW]
        here.block_until[lanes] = words[BlockCheck.BARRIER]
        here.warp_until[lanes] = words[BlockCheck.WARPS + warp]
        words[BlockCheck.FENCED + warp] |= np.uint64(mask | EVENT)
        words[BlockCheck.EVENTS] = 1

    def strong(self, writers: int, readers: int) -> None:
        """Note a strong access: `writers` are lanes that release by it, and `readers` those that acquire."""
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
        """Note that a warp has come together, so that its lanes share what each has fenced and acquired."""
        here, words, _ = self._here()
        threads = range(warp * LANES, min((warp + 1) * LANES, self._launch.state.threads))
        _join(here.acquired_by_warps.setdefault(warp, {}), [here.acquired.pop(thread, {}) for thread in threads])
        part = slice(threads.start, threads.stop)
        if here.fenced[part].any():
            here.sync_times_of_warps[warp] = _SyncTimes.of(np.maximum(here.fenced[part], here.warp_until[part].max()))
            words[BlockCheck.FENCED + warp] = EVENT - 1
        words[BlockCheck.FENCED + warp] &= np.uint64(EVENT - 1)

    def barrier(self) -> None:
        """Note that all threads of the block at hand have come to a barrier."""
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

    # --- what it means

    def ordered(self, record: int, thread: int) -> bool:
        """Return whether a record's access was released before a thread of the block at hand has acquired it."""
        here, words, _ = self._here()
        if record & BLOCKS_BIT:
            # When the others of them did so isn't known.
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
        """Return whether the access of a record, and those of others that it stands for, were released at a place."""
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
    """Return whether one of the releases, that was not later than an event, covers an access."""
    return any(release.event <= event and release.covers(when, thread) for release in reversed(releases))


def _join(to: Acquired, others: list[Acquired]) -> None:
    """Add what others have acquired, each address at its last time."""
    for other in others:
        for address, event in other.items():
            to[address] = max(event, to.get(address, 0))
