"""Shadow memory: for each piece of memory, which access wrote it last and which read it last.

A piece is a word of 4 bytes; where kernels access single bytes or pairs of them, it is that. A record holds, from its
lowest bit: the thread (28 bits), whether the access was strong (atomic or volatile), and the time, which counts
accesses over all launches. 0 stands for a piece that nothing has written, and `FILLED` for one that the host has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_THREADS", "STRONG", "THREAD", "TIME", "History", "ShadowMemory", "clock"]

Array = NDArray[Any]

_THREAD_BITS = 28
MOST_THREADS = 1 << _THREAD_BITS
THREAD = MOST_THREADS - 1
STRONG = MOST_THREADS
# How far the time is shifted in a record.
TIME = _THREAD_BITS + 1
FILLED = 1 << TIME
_WORD = 2


class LogicalClock:
    """The logical clock, which counts the accesses of all launches; time 1 belongs to the host."""

    def __init__(self) -> None:
        self.now = 2


clock = LogicalClock()


class History:
    """The last write and the last read of each piece of some memory of `size` bytes, made when first needed."""

    __slots__ = ("_reads", "_writes", "shift", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        # A piece has 1 << shift bytes.
        self.shift = _WORD
        self._writes: Array | None = None
        self._reads: Array | None = None

    @property
    def written(self) -> bool:
        """Return whether there is any record of writes."""
        return self._writes is not None

    @property
    def writes(self) -> Array:
        """Return the record of each piece's last write."""
        if self._writes is None:
            self._writes = self._blank()
        return self._writes

    @property
    def reads(self) -> Array:
        """Return the record of each piece's last read."""
        if self._reads is None:
            self._reads = self._blank()
        return self._reads

    def divide(self, size: int) -> None:
        """Make the pieces small enough for accesses of `size` bytes; what is known of a piece holds for its parts."""
        shift = min(size, 1 << _WORD).bit_length() - 1
        if shift >= self.shift:
            return
        parts = 1 << (self.shift - shift)
        self.shift = shift
        if self._writes is not None:
            self._writes = np.repeat(self._writes, parts)
        if self._reads is not None:
            self._reads = np.repeat(self._reads, parts)

    def pieces(self, start: int, end: int) -> slice:
        """Return the pieces that hold the bytes from `start` to before `end`."""
        return slice(start >> self.shift, ((end - 1) >> self.shift) + 1)

    def _blank(self) -> Array:
        # Whole words, so that dividing them gives as many pieces as counting them.
        return np.zeros(((self.size + 3) >> _WORD) << (_WORD - self.shift), np.int64)


class ShadowMemory:
    """The shadow memory of one allocation.

    `initialised` says that every byte has been written: then nothing need be looked up. `native` are the records of
    machine code, for each size of pieces.
    """

    __slots__ = ("first", "history", "initialised", "looked", "native", "size")

    def __init__(self, address: int, size: int, initialised: bool) -> None:
        self.first = address & ~3
        self.size = size + (address & 3)
        self.initialised = initialised
        # How often the pieces were looked through for whether all are written by now.
        self.looked = 0
        self.history = History(self.size)
        self.native: dict[tuple[int, int], Any] = {}

    def fill(self, address: int, size: int) -> None:
        """Note that the host has written a range."""
        if self.initialised:
            return
        start = max(address - self.first, 0)
        end = min(address - self.first + size, self.size)
        if end - start >= self.size - 3:
            self.initialised = True
            return
        part = self.history.writes[self.history.pieces(start, end)]
        np.maximum(part, FILLED, out=part)

    def look_through(self) -> None:
        """Find out whether all is written by now; after a few tries in vain, no more."""
        if not self.initialised and self.history.written and self.looked < 4:
            self.looked += 1
            self.initialised = bool(self.history.writes.all())
