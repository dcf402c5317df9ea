"""Shadow of memory: for each 4-byte word, which access wrote it last and which read it last.

A record holds, from its lowest bit: the thread (28 bits), whether the access was strong (atomic or volatile), and the
time, which counts accesses over all launches. 0 stands for a word that nothing has written, and `FILLED` for one that
the host has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILLED", "MOST_THREADS", "STRONG", "THREAD", "TIME", "Clock", "Shadow", "clock"]

Array = NDArray[Any]

_THREAD_BITS = 28
MOST_THREADS = 1 << _THREAD_BITS
THREAD = MOST_THREADS - 1
STRONG = MOST_THREADS
# How far the time is shifted in a record.
TIME = _THREAD_BITS + 1
FILLED = 1 << TIME


class Clock:
    """Count the accesses of all launches; time 1 belongs to the host."""

    def __init__(self) -> None:
        self.now = 2


clock = Clock()


class Shadow:
    """Hold the records of one allocation, made when they are first needed.

    `initialised` says that every byte has been written: then nothing need be looked up.
    """

    __slots__ = ("_reads", "_writes", "first", "initialised", "looked", "size")

    def __init__(self, address: int, size: int, initialised: bool) -> None:
        self.first = address & ~3
        self.size = size + (address & 3)
        self.initialised = initialised
        # How often the words were looked through for whether all are written by now.
        self.looked = 0
        self._writes: Array | None = None
        self._reads: Array | None = None

    @property
    def writes(self) -> Array:
        """Give the last write of each word."""
        if self._writes is None:
            self._writes = np.zeros(-(-self.size // 4), np.int64)
        return self._writes

    @property
    def reads(self) -> Array:
        """Give the last read of each word."""
        if self._reads is None:
            self._reads = np.zeros(-(-self.size // 4), np.int64)
        return self._reads

    def fill(self, address: int, size: int) -> None:
        """Note that the host has written a range."""
        if self.initialised:
            return
        start = max(address - self.first, 0)
        end = min(address - self.first + size, self.size)
        if end - start >= self.size - 3:
            self.initialised = True
            return
        part = self.writes[start >> 2 : -(-end // 4)]
        np.maximum(part, FILLED, out=part)

    def look_through(self) -> None:
        """Find out whether all words are written by now; after a few tries in vain, no more."""
        if not self.initialised and self._writes is not None and self.looked < 4:
            self.looked += 1
            self.initialised = bool(self._writes.all())
