"""Samples of host time: the cost of queuing work."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..streams.stream import Stream
from .device.timing import Work
from .sampling import Sample


class HostBatch:
    """Takes samples of host time, each a batch of calls on an empty stream."""

    def __init__(self, work: Work, stream: Stream, calls: int) -> None:
        self._work, self._stream, self._calls = work, stream, calls

    def __call__(self) -> Sample:
        """Take a sample: the mean seconds per call over the batch."""
        work, turns = self._work, range(self._calls)
        self._stream.synchronize()
        begin = time.perf_counter()
        for _ in turns:
            work()
        seconds = time.perf_counter() - begin
        self._stream.synchronize()
        return Sample(seconds / self._calls)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector from running inside a sample."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
