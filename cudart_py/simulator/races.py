"""Find races: two threads at the same word, one of them writing, and nothing that puts one before the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .ordering import Order
from .shadow import STRONG, THREAD, TIME, clock
from .touched_words import TouchedWords

if TYPE_CHECKING:
    from .ptx.addresses import Address
    from .ptx.instructions import Instruction
    from .ptx.scheduler import Chunk

__all__ = ["Races"]

Array = NDArray[Any]
ndarray = np.ndarray

# A race: what happened before ("write" or "read"), where in the words of an access, and the earlier record.
Race = tuple[str, int, int]


class Races:
    """Watch one launch for races, given the records of the words that each access touches."""

    def __init__(self) -> None:
        self.begin = clock.now << TIME
        self._began = clock.now
        self._orders: dict[int, Order] = {}
        self._starts: list[int] = []
        self._sites: list[Instruction] = []

    def order(self, chunk: Chunk) -> Order:
        """Give what is known of a chunk's order."""
        first = chunk.first * chunk.threads
        order = self._orders.get(first)
        if order is None:
            order = self._orders[first] = Order(chunk)
            self._starts = sorted(self._orders)
        return order

    def tick(self, site: Instruction) -> int:
        """Take the time for an access of an instruction."""
        now = clock.now
        clock.now += 1
        self._sites.append(site)
        return now

    def site_of(self, record: int) -> Instruction | None:
        """Give the instruction that left a record."""
        number = (record >> TIME) - self._began
        return self._sites[number] if 0 <= number < len(self._sites) else None

    def load(
        self, words: TouchedWords, writes: Array, reads: Array, now: int, *, strong: bool, exempt: bool
    ) -> Race | None:
        """Check a load and record it. A strong one races with nothing, `exempt` ones not with strong writes."""
        if strong:
            return None
        found = None
        before = writes[words.index]
        latest = int(before.max())
        if latest >= self.begin and not self._all_passed(words.group.chunk, latest, reads):
            found = self._conflict(words, before, now, "write", exempt)
        if not exempt:
            reads[words.index] = words.records(now << TIME)
        return found

    def store(
        self,
        words: TouchedWords,
        writes: Array,
        reads: Array,
        now: int,
        *,
        strong: bool,
        address: Address,
        offset: int,
        values: tuple[Any, ...],
    ) -> Race | None:
        """Check a store or an atomic, and record it; strong ones don't race with each other.

        Writing what is there already is no race with whoever wrote it.
        """
        found = None
        index = words.index
        before = writes[index]
        latest = int(before.max())
        unchanged = None
        if latest >= self.begin and not self._all_passed(words.group.chunk, latest, reads):
            unchanged = _unchanged(words, address, offset, values) if values else None
            found = self._conflict(words, before, now, "write", strong, unchanged)
        earlier = reads[index]
        latest = int(earlier.max())
        if found is None and latest >= self.begin and not self._all_passed(words.group.chunk, latest, reads):
            if unchanged is None and values:
                unchanged = _unchanged(words, address, offset, values)
            found = self._conflict(words, earlier, now, "read", False, unchanged)
        records = words.records(now << TIME | (STRONG if strong else 0))
        writes[index] = records
        if found is None and not words.alone and not strong and values:
            found = _collision(words, writes, records, values)
        return found

    def mark(self, words: TouchedWords, writes: Array, now: int) -> None:
        """Record a store without checking it."""
        writes[words.index] = words.records(now << TIME)

    def _all_passed(self, chunk: Chunk, latest: int, reads: Array) -> bool:
        """Tell quickly that even the latest record lies before the last barrier of every block, in shared memory."""
        order = self._orders.get(chunk.first * chunk.threads)
        notes = chunk.notes
        shared = notes is not None and reads is notes.get("reads")
        return shared and order is not None and (latest >> TIME) < order.last_barrier

    def _conflict(
        self, words: TouchedWords, before: Array, now: int, kind: str, strong: bool, unchanged: Array | None = None
    ) -> Race | None:
        """Give the first of the words whose earlier record isn't before now; strong records don't count if `strong`."""
        mine = words.records(0)
        suspect = (before >= self.begin) & ((before & THREAD) != mine)
        if strong:
            suspect &= before & STRONG == 0
        if unchanged is not None:
            suspect &= ~unchanged
        places = np.flatnonzero(suspect)
        if not len(places):
            return None
        records, threads = before[places], mine[places]
        others, when = records & THREAD, records >> TIME
        chunk = words.group.chunk
        here = self.order(chunk)
        own = (others >= here.first) & (others < here.first + chunk.lanes)
        lanes = threads - here.first
        fine = np.zeros(len(places), np.bool_)
        if own.all():
            fine = here.passed(others - here.first, when, lanes)
            rest = np.flatnonzero(~fine)
        else:
            inside = np.flatnonzero(own)
            fine[inside] = here.passed(others[inside] - here.first, when[inside], lanes[inside])
            rest = np.flatnonzero(~fine)
        if not len(rest):
            return None
        fine[rest] = self._released(chunk, others[rest], when[rest], lanes[rest])
        rest = np.flatnonzero(~fine)
        if not len(rest):
            return None
        return kind, int(places[rest[0]]), int(records[rest[0]])

    def _released(self, chunk: Chunk, others: Array, when: Array, lanes: Array) -> Array:
        """Tell what was published by its thread, or its block, before these lanes have looked."""
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


def _unchanged(words: TouchedWords, address: Address, offset: int, values: tuple[Any, ...]) -> Array | None:
    """Tell of each word whether a store leaves it as it is."""
    places = address.places
    if places.__class__ is not ndarray:
        places = np.full(words.lanes, places)
    same = np.ones(words.lanes, np.bool_)
    for number, value in enumerate(values):
        size = value.dtype.itemsize
        name = f"u{size}" if size <= 8 else None
        if name is None or (value.__class__ is ndarray and len(value) != words.lanes):
            return None
        index = (places + offset + number * size) >> (size.bit_length() - 1)
        same &= address.space.views[name][index] == value.view(name)
    return np.repeat(same, words.each) if words.each > 1 else same


def _collision(words: TouchedWords, writes: Array, records: Array, values: tuple[Any, ...]) -> Race | None:
    """Give a word to which two lanes of the same instruction store different values."""
    index = words.index
    left = writes[index]
    lost = np.flatnonzero(left != records)
    if not len(lost) or len(values) > 1 or values[0].__class__ is not ndarray or len(values[0]) != words.lanes:
        return None
    bits = values[0].view(f"u{values[0].dtype.itemsize}") if values[0].dtype.itemsize <= 8 else values[0]
    # The lane whose record stayed is found among those that share the word.
    order = np.argsort(index, kind="stable")
    arranged = index[order]
    value = np.repeat(bits, words.each)[order]
    differs = (arranged[1:] == arranged[:-1]) & (value[1:] != value[:-1])
    places = np.flatnonzero(differs)
    if not len(places):
        return None
    return "write", int(order[places[0]]), int(records[order[places[0] + 1]])
