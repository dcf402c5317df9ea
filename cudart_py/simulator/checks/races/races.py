"""Races: accesses of two threads to the same bytes, at least one a write, that no happens-before relation orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...state.memory.records.shadow import BLOCK_SCOPE, STRONG, THREAD, TIME, History, clock
from ..accesses import AccessRules, Footprint
from .concurrency import Span, find_span
from .happens_before import HappensBefore
from .stored_values import collisions, unchanged_pieces
from .traces import HistoryTrace, Trace

if TYPE_CHECKING:
    from ...ptx.running.launch import Launch
    from ...ptx.running.scheduler import Chunk
    from ...ptx.syntax.instructions import Instruction
    from ..chunk_records import ChunkRecords

Array = NDArray[Any]
ndarray = np.ndarray

_BLOCK_ATOMIC = STRONG | BLOCK_SCOPE

# A race: the kind of the earlier access ("write" or "read"), its index among the pieces of the present access, and the
# record of the earlier access.
Race = tuple[str, int, int]


class Past:
    """The threads and source lines of a launch's records, the only part of the launch that is kept after its end."""

    __slots__ = ("_launch", "_sites", "_threads", "began")

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._threads = prod(launch.block)
        self._sites: list[Instruction] = []
        self.began = clock.now

    def tick(self, site: Instruction) -> int:
        """Return the time of an access by an instruction, and advance the clock."""
        now = clock.now
        clock.now += 1
        self._sites.append(site)
        return now

    def native_records(self, sites: Sequence[Instruction]) -> Callable[[Array, Array], Array]:
        """Return a function that returns the records for threads and sites of machine code.

        There, each block's threads have the numbers of whole warps, and a site is an index in `sites`.
        """
        times = np.array([self.tick(site) << TIME for site in sites], np.int64)
        padded = -(-self._threads // 32) * 32

        def records(threads: Array, numbers: Array) -> Array:
            blocks, inside = np.divmod(threads, padded)
            return np.asarray(times[numbers] + blocks * self._threads + inside)

        return records

    def name(self, record: int, verb: str) -> str:
        """Return a phrase that names a record's thread and line."""
        number = (record >> TIME) - self.began
        site = self._sites[number] if 0 <= number < len(self._sites) else None
        at = f" at {self._launch.entry.module.places.of(site)}" if site is not None else ""
        return f"{self._launch.thread(record & THREAD)} {verb}{at}"

    def name_from_outside(self, record: int, verb: str, where: str) -> str:
        """Return a phrase that names a record's kernel, thread and line, for a finding in other work."""
        return f"kernel {self._launch.entry.name} {where}, {self.name(record, verb)}"


class Races:
    """A detector of races in one launch, based on the history of the memory that each access touches.

    `spans` are earlier launches, copies and fills that are not ordered before it. `block_scope` says that the kernel
    may have atomics, or other strong accesses, with block scope.
    """

    def __init__(self, spans: list[Span], launch: Launch, *, block_scope: bool) -> None:
        self.past = Past(launch)
        self.tick = self.past.tick
        # In a cluster, other blocks may access a block's shared memory, and the block's own barriers don't order these
        # accesses.
        self._alone = prod(launch.cluster) == 1
        self._begin = clock.now << TIME
        self._spans = spans
        self._block_scope = block_scope
        # The traces of these spans, keyed by history, the latest first, and those that this launch leaves.
        self._others: dict[History, list[tuple[Span, Trace]]] = {}
        self.traces: dict[History, HistoryTrace] = {}
        self._orders: dict[int, HappensBefore] = {}
        self._starts: list[int] = []

    def order(self, chunk: Chunk) -> HappensBefore:
        """Return the happens-before relation of a chunk; the first call creates it."""
        first = chunk.first * chunk.threads
        order = self._orders.get(first)
        if order is None:
            order = self._orders[first] = HappensBefore(chunk)
            self._starts = sorted(self._orders)
        return order

    def ended(self, chunk: Chunk) -> None:
        """Keep only the part of an ended chunk's happens-before relation that other chunks may need."""
        order = self._orders.get(chunk.first * chunk.threads)
        if order is not None:
            order.end()

    def span_of(self, record: int) -> Span | None:
        """Return the other launch or copy that a record is from, or None if it is from this launch."""
        return find_span(self._spans, record)

    def load(self, footprint: Footprint, history: History, rules: AccessRules, before: Array, now: int) -> Race | None:
        """Check a load and record it; `before` has the record of the last write to each distinct piece.

        A strong load races only with accesses of other blocks, and only if one of the two has block scope.
        """
        strength = rules.strength
        if strength == STRONG and not (self._block_scope or self._spans):
            return None
        exempt, chunk, race = rules.exempt, footprint.group.chunk, None
        if self._spans:
            race = self._meeting(footprint, history, "write", strength, exempt=exempt)
        # Most loads are from memory that the launch does not write.
        latest = int(before.max()) if history.last_write >= self.past.began else 0
        if race is None and rules.cached and latest >= self._begin:
            first = int(np.flatnonzero(before >= self._begin)[0])
            race = "write", first, int(before[first])
        if race is None and latest >= self._begin and not self._all_passed(chunk, latest, history):
            race = self._conflict(footprint, history, footprint.for_lanes(before), "write", strength, exempt=exempt)
        if strength != STRONG and not exempt and not rules.lasts:
            self._leave(footprint, history, "read", now << TIME | strength)
            history.last_read = now
        return race

    def _leave(self, footprint: Footprint, history: History, kind: str, time: int) -> None:
        """Leave the records of accesses that others may make to the same pieces without being ordered.

        They are loads, strong writes whose scope doesn't matter, and stores of the value that is already there. Two
        records represent all of them: that of the last one, and that of the farthest one, which is set aside. `time`
        includes the strength.
        """
        chunk, table = footprint.group.chunk, history.reads if kind == "read" else history.writes
        index, first, last = footprint.unique(time)
        earlier = table[index]
        if self._spans and kind == "read":
            self._keep_others(history, "read", index, earlier)
        # The lanes whose records others have replaced. Of those at one piece, the first lane comes last.
        lost, is_left = None, footprint.may_share
        if is_left:
            table[index] = last
            left = table[index]
            remains = left == last
            subscripts = footprint.find_sharing(table, left, remains)
            if subscripts is not None:
                index, first, last = footprint.unique(time)
                earlier = earlier[subscripts]
            else:
                last, lost = left, np.flatnonzero(~remains)[::-1]
        if kind == "read" and time & STRONG:
            # Keep the record of a plain read, because it races with more accesses.
            last, is_left = np.where((earlier >= self._begin) & (earlier & STRONG == 0), earlier, last), False
        latest = int(earlier.max())
        competes = latest >= self._begin and not self._all_passed(chunk, latest, history)
        if competes and (first is None or not _of_other_blocks(chunk, first, last).all()):
            replaced = (earlier >= self._begin) & ((earlier ^ last) & THREAD != 0)
            if replaced.any():
                self._offer(chunk, history, kind, index, earlier * replaced, last)
        if first is not None:
            self._offer(chunk, history, kind, index, first, last if competes else None)
        elif lost is not None and len(lost):
            records = footprint.records(time)[lost]
            self._offer(chunk, history, kind, index[lost], records, last[lost] if competes else None)
        if not is_left:
            table[index] = last

    def _offer(self, chunk: Chunk, history: History, kind: str, index: Any, records: Array, last: Array | None) -> None:
        """Set records aside, except where that of a thread that is farther from the last one is aside already.

        A record that is ordered before the last one does not remain: accesses that are ordered after the last one are
        also ordered after this record. If there are no `last` records, no record remains.
        """
        aside = None if last is None else history.aside(self, kind, index)
        if aside is not None and last is not None and int(aside.max()) >= self._begin:
            some = np.flatnonzero((aside >= self._begin) & (_apart(chunk, aside, last) > _apart(chunk, records, last)))
            if len(some):
                kept = aside[some]
                unordered = ~self.ordered(chunk, kept & THREAD, kept >> TIME, last[some] & THREAD)
                records = records.copy()
                records[some[unordered]] = kept[unordered]
        history.set_aside(self, kind, index, records, aside)

    def store(self, footprint: Footprint, history: History, rules: AccessRules, now: int) -> Race | None:
        """Check a store or an atomic, and record it.

        Strong accesses don't race with each other, unless their threads are in different blocks and one of the accesses
        has block scope. A store of the value that is already there doesn't race with earlier accesses.
        """
        index, chunk, values = footprint.index, footprint.group.chunk, footprint.access.values
        strength = rules.strength
        race = met = self._meeting(footprint, history, "write", strength) or self._meeting(
            footprint, history, "read", strength
        )
        before = history.writes[index]
        latest = int(before.max())
        recent = latest >= self._begin and not self._all_passed(chunk, latest, history)
        unchanged = None
        if race is None and recent:
            unchanged = unchanged_pieces(footprint) if values else None
            race = self._conflict(footprint, history, before, "write", strength, unchanged)
        if race is None and history.last_read >= self.past.began:
            earlier = history.reads[index]
            latest = int(earlier.max())
            if latest >= self._begin and not self._all_passed(chunk, latest, history):
                if unchanged is None and values:
                    unchanged = unchanged_pieces(footprint)
                race = self._conflict(footprint, history, earlier, "read", strength, unchanged)
        records = footprint.records(now << TIME | strength)
        history.last_write = now
        if strength or met:
            self._keep_others(history, "write", index, before)
        if strength and recent:
            self._keep_plain(history, index, before)
        if strength and self._block_scope:
            return self._scoped(footprint, history, before, records, strength) or race
        if strength:
            self._leave(footprint, history, "write", now << TIME | strength)
            return race
        repeats = unchanged is not None and bool(unchanged.any())
        # An index that is a slice gives a view, which the store's own records would replace.
        before = before.copy() if repeats else before
        history.writes[index] = records
        if race is not None or not values:
            return race
        shared = not footprint.alone and (history.writes[index] != records).any()
        if shared:
            some, others = collisions(footprint, values)
            if len(some):
                return "write", int(some[0]), int(records[others[0]])
        if repeats or shared:
            history.writes[index] = before
            self._leave(footprint, history, "write", now << TIME)
        return None

    def _keep_plain(self, history: History, index: Any, before: Array) -> None:
        """Keep the records of this launch's plain writes that strong ones are about to replace.

        Only a plain write races with later strong writes. The last one represents all, because it races with the others
        or is ordered after them.
        """
        plain = (before >= self._begin) & (before & STRONG == 0)
        if plain.any():
            history.set_aside(self.traces.get(history, self), "plain", index, np.where(plain, before, 0))

    def _scoped(
        self, footprint: Footprint, history: History, before: Array, records: Array, strength: int
    ) -> Race | None:
        """Record a strong write, if scopes matter; return a race of two blocks in one instruction with block scope.

        The last write of another block is set aside, so that one of a piece's last writes is always by another block.
        """
        chunk, index = footprint.group.chunk, footprint.index
        recent, others = before >= self._begin, _of_other_blocks(chunk, before, records)
        # A later atomic of the same block does not widen the scope of an earlier access with block scope.
        records = records | np.where(recent & ~others, before & BLOCK_SCOPE, 0)
        if (recent & others).any():
            _set_some_aside(self, history, index, before, recent & others)
        history.writes[index] = records
        left = history.writes[index]
        lost = _of_other_blocks(chunk, left, records)
        if lost.any():
            _set_some_aside(self, history, index, records, lost)
        if footprint.access.values and lost.any():
            # Blocks may store equal values.
            lost &= np.isin(index, index[collisions(footprint, footprint.access.values)[0]])
        if strength != _BLOCK_ATOMIC or not lost.any():
            return None
        first = int(np.flatnonzero(lost)[0])
        return "write", first, int(left[first])

    def mark(self, footprint: Footprint, history: History, now: int) -> None:
        """Record a store without checking it."""
        history.writes[footprint.index] = footprint.records(now << TIME)

    def touches(self, history: History, low: int, high: int) -> None:
        """Take note of an access to the bytes between two offsets of an allocation."""
        trace = self.traces.get(history)
        if trace is None:
            self.traces[history] = HistoryTrace(low, high)
        else:
            trace.widen(low, high)

    def _traces_of_others(self, history: History) -> list[tuple[Span, Trace]]:
        """Return the work that is not ordered before the launch and has used an allocation, the latest first."""
        if not self._spans or not history.traces:
            return []
        found = self._others.get(history)
        if found is None:
            pairs = ((span, history.traces.get(span)) for span in reversed(self._spans))
            found = self._others[history] = [(span, trace) for span, trace in pairs if trace is not None]
        return found

    def _meeting(
        self, footprint: Footprint, history: History, kind: str, strength: int, *, exempt: bool = False
    ) -> Race | None:
        """Return the race of the first piece that other work has accessed, not ordered with this access, or None."""
        others, index = self._traces_of_others(history), footprint.index
        if not others:
            return None
        low, last = (index.start, index.stop - 1) if isinstance(index, slice) else (int(index.min()), int(index.max()))
        for span, trace in others:
            apart = low << history.shift >= trace.high or last + 1 << history.shift <= trace.low
            records = None if apart else trace.records(span, history, kind, index)
            if records is None:
                continue
            loads = footprint.access.kind == "ld"
            met = (records != 0) & self._may_race(records, kind, strength, True, loads=loads, exempt=exempt)
            unchanged = unchanged_pieces(footprint) if footprint.access.values and met.any() else None
            if unchanged is not None:
                met &= ~unchanged
            places = np.flatnonzero(met)
            if len(places):
                return kind, int(places[0]), int(records[places[0]])
        return None

    def _keep_others(self, history: History, kind: str, index: Any, before: Array) -> None:
        """Keep the records of other work that an access is about to replace.

        Later work may race with any of these accesses: it may be ordered after one read and not after another, and an
        atomic access, even an ordered one, races with less than a plain write. Plain writes without a race need not
        keep records: they are ordered, and work that is ordered after the second is also ordered after the first.
        """
        if kind == "read":
            spans = [span for span, _ in self._traces_of_others(history)]
        else:
            spans = list(history.traces)
            oldest = min((span.begin for span in spans), default=clock.now) << TIME
            if not (self._spans or ((before >= oldest) & (before < self._begin) & (before & STRONG == 0)).any()):
                return
        for span in spans:
            left = span.left(before)
            if left.any():
                history.set_aside(span, kind, index, np.where(left, before, 0))

    def _all_passed(self, chunk: Chunk, latest: int, history: History) -> bool:
        """Return whether even the latest record of shared memory is older than the last barrier of every block."""
        order = self._orders.get(chunk.first * chunk.threads)
        records: ChunkRecords | None = chunk.notes
        shared = self._alone and records is not None and history is records.shared
        return shared and order is not None and (latest >> TIME) < order.last_barrier

    def _conflict(
        self,
        footprint: Footprint,
        history: History,
        before: Array,
        kind: str,
        strength: int,
        unchanged: Array | None = None,
        *,
        exempt: bool = False,
    ) -> Race | None:
        """Return the race of the first piece whose earlier record is not ordered with this access, or None.

        `kind` is the kind of the records, and `strength` the strength of the access. An `exempt` access doesn't race
        with strong ones.
        """
        chunk = footprint.group.chunk
        loads = footprint.access.kind == "ld"
        mine = footprint.records(0)
        kept = [before, history.aside(self, kind, footprint.index)]
        if kind == "write":
            kept.append(history.aside(self.traces.get(history, self), "plain", footprint.index))
        for records in (one for one in kept if one is not None):
            suspect = (records >= self._begin) & ((records & THREAD) != mine)
            if strength or exempt or self._block_scope:
                apart = _of_other_blocks(chunk, records, mine)
                suspect &= self._may_race(records, kind, strength, apart, loads=loads, exempt=exempt)
            if unchanged is not None:
                suspect &= ~unchanged
            places = np.flatnonzero(suspect)
            if not len(places):
                continue
            suspects, threads = records[places], mine[places]
            rest = np.flatnonzero(~self.ordered(chunk, suspects & THREAD, suspects >> TIME, threads))
            if len(rest):
                return kind, int(places[rest[0]]), int(suspects[rest[0]])
        return None

    def _may_race(
        self, records: Array, kind: str, strength: int, apart: Array | bool, *, loads: bool, exempt: bool
    ) -> Array:
        """Return a mask of the records that race with an unordered access; `apart` marks records by other blocks."""
        strong = records & STRONG != 0
        if exempt:
            return np.asarray(~strong)
        # If one of the two accesses has block scope, they aren't atomic with respect to each other.
        scoped = apart & ((records & BLOCK_SCOPE != 0) | (strength == _BLOCK_ATOMIC))
        if kind == "read":
            return np.asarray(~strong | scoped)
        if not strength:
            return np.ones(len(records), np.bool_)
        return np.asarray(scoped if loads else ~strong | scoped)

    def ordered(self, chunk: Chunk, others: Array, when: Array, threads: Array) -> Array:
        """Return a mask of the accesses of `others` at `when` that happen before the current ones of `threads`."""
        here = self.order(chunk)
        lanes = threads - here.first
        own = (others >= here.first) & (others < here.first + chunk.lanes)
        fine = np.zeros(len(others), np.bool_)
        if own.all():
            fine = here.passed(others - here.first, when, lanes)
        else:
            inside = np.flatnonzero(own)
            fine[inside] = here.passed(others[inside] - here.first, when[inside], lanes[inside])
        rest = np.flatnonzero(~fine)
        if len(rest):
            fine[rest] = self._released(chunk, others[rest], when[rest], lanes[rest])
        return fine

    def _released(self, chunk: Chunk, others: Array, when: Array, lanes: Array) -> Array:
        """Return a mask of the accesses that their threads, warps or blocks released before the lanes last acquired."""
        here = self.order(chunk)
        acquired = here.acquired(lanes)
        result = np.zeros(len(others), np.bool_)
        if not acquired.any():
            return result
        owner = np.searchsorted(self._starts, others, "right") - 1
        for number in np.unique(owner):
            some = np.flatnonzero(owner == number)
            order = self._orders[self._starts[number]]
            local = others[some] - order.first
            ordered = order.released(local, when[some], acquired[some], "gpu")
            if order is here:
                block = chunk.block_of_lane
                near = block[local] == block[lanes[some]]
                ordered |= near & order.released(local, when[some], acquired[some], "cta")
            result[some] = ordered
        return result


def _set_some_aside(work: Races, history: History, index: Any, records: Array, some: Array) -> None:
    """Set the records of some pieces of writes aside; the others, which may be of the same pieces, change nothing."""
    if isinstance(index, slice):
        index = np.arange(index.start, index.stop)
    history.set_aside(work, "write", index[some], records[some])


def _apart(chunk: Chunk, one: Array, other: Array) -> Array:
    """Return how far apart the threads of records are: 0 to 2, in the order of `Apart`."""
    threads = chunk.threads
    if threads & (threads - 1):
        one, other = one & THREAD, other & THREAD
        blocks, other_blocks = one // threads, other // threads
        warps = (one - blocks * threads) >> 5 != (other - other_blocks * threads) >> 5
        other_block = blocks != other_blocks
        return np.asarray((warps | other_block).view(np.int8) + other_block.view(np.int8))
    difference = (one ^ other) & THREAD
    return np.asarray((difference >= min(threads, 32)).view(np.int8) + (difference >= threads).view(np.int8))


def _of_other_blocks(chunk: Chunk, before: Array, mine: Array) -> Array:
    """Return a mask of the records of this launch whose blocks differ from the blocks of the threads in `mine`."""
    return np.asarray((before & THREAD) // chunk.threads != (mine & THREAD) // chunk.threads)
