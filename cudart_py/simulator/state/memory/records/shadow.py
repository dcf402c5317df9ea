"""Shadow memory: records of the last write and the last read of each piece of memory.

A piece is a 4-byte word, or one or two bytes in memory where kernels make accesses of that size. A record holds, from
its lowest bit up: the thread (28 bits), whether the access was strong (atomic or volatile), whether it had block scope,
and the time, which counts accesses across all launches. The record 0 means that the piece has not been written, and
`FILLED` means that the host has written it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .record_limit import limit

Array = NDArray[Any]

_THREAD_BITS = 28
MOST_THREADS = 1 << _THREAD_BITS
THREAD = MOST_THREADS - 1
STRONG = MOST_THREADS
BLOCK_SCOPE = STRONG << 1
# The number of bits by which the time is shifted in a record.
TIME = _THREAD_BITS + 2
FILLED = 1 << TIME
_WORD = 2
# Coarse records take at most the limit in bytes divided by 1 << _COARSE_PART.
_COARSE_PART = 6
# The coarse records of memory that counts as written: a single piece. All such memory can share them, because a record
# of a write is never removed from coarse records.
_WRITTEN = np.ones(1, np.bool_)


class LogicalClock:
    """The logical clock, which counts the accesses of all launches; time 1 belongs to the host."""

    def __init__(self) -> None:
        self.now = 2


clock = LogicalClock()


class History:
    """The records of the last write and read of each piece, for `size` bytes of memory, created when first needed.

    A record that is replaced is lost, unless it is set aside for the work that left it. `last_read` and `last_write`
    are the times of the last accesses of each kind that were checked for races. If the records would take too much
    memory, there are none: `coarse` then says, for larger pieces of ``1 << coarse_shift`` bytes, whether anything has
    been written there.
    """

    __slots__ = (
        "_aside", "_reads", "_writes", "coarse", "coarse_shift", "last_read", "last_write", "shift", "size", "traces",
    )  # fmt: skip  # all names in a line

    def __init__(self, size: int) -> None:
        self.size = size
        # A piece has 1 << shift bytes.
        self.shift = _WORD
        self._writes: Array | None = None
        self._reads: Array | None = None
        self.last_read = self.last_write = 0
        self.coarse: Array | None = None
        self.coarse_shift = _WORD
        # The records that were set aside, keyed by the work that left them and then by "write" or "read".
        self._aside: WeakKeyDictionary[Any, dict[str, Array]] = WeakKeyDictionary()
        # The traces of work that may overlap other work, keyed by that work: see `checks.races.traces`.
        self.traces: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @property
    def written(self) -> bool:
        """Return whether there is any record of writes."""
        return self._writes is not None or self.coarse is not None

    @property
    def writes(self) -> Array:
        """Return the record of each piece's last write, which `prepare` has created."""
        assert self._writes is not None
        return self._writes

    @property
    def reads(self) -> Array:
        """Return the record of each piece's last read, which `prepare` has created."""
        assert self._reads is not None
        return self._reads

    def prepare(self, size: int, *, reads: bool = True) -> bool:
        """Create records for accesses of `size` bytes, of reads only if `reads`; return whether there are records now.

        Pieces larger than the accesses are split, and each part gets the record of the whole. If the records would take
        too much memory, from then on only `coarse` says what has been written.
        """
        if self.coarse is not None:
            return False
        shift = min(size, 1 << _WORD).bit_length() - 1
        made = shift >= self.shift or self._divide(shift)
        if made and self._writes is None:
            self._writes = self._blank()
            made = self._writes is not None
        if made and reads and self._reads is None:
            self._reads = self._blank()
            made = self._reads is not None
        if not made:
            self._give_up()
        return made

    def clear(self) -> None:
        """Forget all records, none of which may be coarse."""
        for records in (self._writes, self._reads):
            if records is not None:
                records.fill(0)
        self._aside.clear()
        self.last_read = self.last_write = 0

    def release(self) -> None:
        """Release the memory of all records, unless work that may overlap other work has left some of them."""
        if not self.traces:
            self._writes = self._reads = None
            self._aside.clear()
            self.last_read = self.last_write = 0

    def _divide(self, shift: int) -> bool:
        """Split the pieces; return whether there was enough memory for that."""
        aside = list(self._aside.values())
        records = [array for array in (self._writes, self._reads) if array is not None]
        records += [array for kinds in aside for array in kinds.values()]
        divided = limit.repeated(records, 1 << (self.shift - shift))
        if divided is None:
            return False
        # All arrays are replaced together, because all of them must have pieces of the size that `shift` gives.
        following = iter(divided)
        if self._writes is not None:
            self._writes = next(following)
        if self._reads is not None:
            self._reads = next(following)
        for kinds in aside:
            for kind in kinds:
                kinds[kind] = next(following)
        self.shift = shift
        return True

    def _give_up(self) -> None:
        """Replace all records with coarse ones; if there is no memory for these either, treat everything as written."""
        self.coarse_shift = _WORD
        while self.size >> self.coarse_shift > limit.most() >> _COARSE_PART:
            self.coarse_shift += 1
        try:
            self.coarse = np.zeros(((self.size - 1) >> self.coarse_shift) + 1, np.bool_)
            if self._writes is not None:
                self.note_coarsely(self._writes != 0, self.shift)
            limit.say_no_room(self.size)
        except MemoryError:
            self.coarse, self.coarse_shift = _WRITTEN, max(_WORD, self.size.bit_length())
            limit.say(
                f"no memory is left for the records of {self.size:,} bytes",
                "neither races nor uninitialised values are checked for there",
            )
        self._writes = self._reads = None
        self._aside.clear()

    def note_coarsely(self, written: Array, shift: int) -> None:
        """Record which pieces of ``1 << shift`` bytes have been written; `written` covers all pieces."""
        assert self.coarse is not None
        together = 1 << (self.coarse_shift - shift)
        self.coarse |= np.logical_or.reduceat(written, np.arange(0, len(written), together))

    def fill(self, start: int, end: int) -> None:
        """Record that the host has written the bytes from `start` up to but not including `end`."""
        if self.prepare(1 << self.shift, reads=False):
            part = self.writes[self.pieces(start, end)]
            np.maximum(part, FILLED, out=part)
        elif self.coarse is not None:
            self.coarse[start >> self.coarse_shift : ((end - 1) >> self.coarse_shift) + 1] = True

    def unwritten(self, start: int, end: int) -> int | None:
        """Return the offset of the first unwritten piece from `start` up to but not including `end`, or None."""
        part, first, shift = self.written_pieces(start, end)
        return None if part.all() else max(start, first + (int(part.argmin()) << shift))

    def written_pieces(self, start: int, end: int) -> tuple[Array, int, int]:
        """Return which pieces have been written from `start` up to but not including `end`.

        The other values are the offset of the first piece, and the binary logarithm of the size of the pieces.
        """
        if self.prepare(1 << self.shift, reads=False):
            return self.writes[self.pieces(start, end)] != 0, start >> self.shift << self.shift, self.shift
        assert self.coarse is not None
        shift = self.coarse_shift
        return self.coarse[start >> shift : ((end - 1) >> shift) + 1], start >> shift << shift, shift

    @property
    def full(self) -> bool:
        """Return whether everything has been written."""
        known = self._writes if self.coarse is None else self.coarse
        return known is not None and bool(known.all())

    def set_aside(self, work: Any, kind: str, index: Any, records: Array, before: Array | None = None) -> None:
        """Keep records that are about to be replaced, as long as the work that left them exists; 0 means no record.

        `before` are the records that have been set aside so far, if the caller knows them.
        """
        kinds = self._aside.setdefault(work, {})
        kept = kinds[kind] if kind in kinds else self._blank()
        if kept is not None:
            kinds[kind] = kept
            if not records.all():
                records = np.where(records, records, kept[index] if before is None else before)
            kept[index] = records

    def aside(self, work: Any, kind: str, index: Any) -> Array | None:
        """Return the records that were set aside for `work`, with 0 for no record, or None if it has none at all."""
        kept = self._aside.get(work, {}).get(kind)
        return None if kept is None else kept[index]

    def pieces(self, start: int, end: int) -> slice:
        """Return the pieces that contain the bytes from `start` up to but not including `end`."""
        return slice(start >> self.shift, ((end - 1) >> self.shift) + 1)

    def _blank(self) -> Array | None:
        # Round up to whole words, so that splitting existing pieces yields as many pieces as creating new records.
        return limit.zeros(((self.size + 3) >> _WORD) << (_WORD - self.shift), np.int64)


class ShadowMemory:
    """The shadow memory of one allocation.

    If `initialised` is true, every byte has been written, so no read can be of uninitialised memory. `native` contains
    the records of machine code, keyed by the era of their clock and the binary logarithm of the size of the pieces.
    `writer` describes the last launch that wrote a part of it while not all of it was written, "" for none. `paddings`
    has the padding of the structures that such launches store: pairs of the number of written bytes before the padding
    and its size.
    """

    __slots__ = ("first", "history", "initialised", "looked", "native", "paddings", "size", "writer")

    def __init__(self, address: int, size: int, initialised: bool) -> None:
        self.first = address & ~3
        self.size = size + (address & 3)
        self.initialised = initialised
        # The number of times that the pieces have been searched for unwritten ones.
        self.looked = 0
        self.history = History(self.size)
        self.native: dict[tuple[int, int], Any] = {}
        self.writer = ""
        self.paddings: frozenset[tuple[int, int]] = frozenset()

    def fill(self, address: int, size: int) -> None:
        """Record that the host has written a range."""
        if self.initialised:
            return
        start = max(address - self.first, 0)
        end = min(address - self.first + size, self.size)
        if end <= start:
            return
        if end - start >= self.size - 3:
            self.initialised = True
            return
        self.history.fill(start, end)
        for (_, shift), records in self.native.items():
            records.fill(start >> shift, ((end - 1) >> shift) + 1)

    def note_writer(self, description: str, paddings: frozenset[tuple[int, int]]) -> None:
        """Take note of a launch that has written a part of the memory."""
        self.writer = description
        self.paddings |= paddings

    def look_through(self) -> None:
        """Check whether everything has been written by now; after four checks that found otherwise, stop checking."""
        if not self.initialised and self.history.written and self.looked < 4:
            self.looked += 1
            self.initialised = self.history.full
