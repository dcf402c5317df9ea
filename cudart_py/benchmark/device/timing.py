"""One sample of device time: events around the work, after a blocking kernel, with L2 in a known state."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...copies import memset
from ...memory.creation import empty
from ...streams.event import Event
from ...streams.graphs.executable_graph import ExecutableGraph
from ...streams.stream import Stream
from ..sampling import MeasureOptions, Sample
from .batch_graph import capture_calls
from .blocking import Blocker
from .peak_memory import PeakMemory

Work = Callable[[], object]

# Work shorter than this (in seconds) is measured in batches, since the overhead of the events would be a large part of
# the time of a single call.
SHORT = 50e-6
# The approximate duration of a batch. Its calls share the overhead of the events.
BATCH_SECONDS = 1e-3
# A stream's queue holds about a thousand launches. When it is full, the host waits, and cannot release the blocking
# kernel that holds the stream.
QUEUED_LAUNCHES = 500
# No driver queues a launch faster, so the host time of a call limits the number of launches in it.
LAUNCH_SECONDS = 2e-6
# The L2 cache is flushed by writing this many times its size.
FLUSH_FACTOR = 2


class Trial(NamedTuple):
    """One trial: the device and host seconds of all its calls, the clock, and whether the blocking kernel timed out."""

    seconds: float
    host_seconds: float
    clock: float | None
    timed_out: bool


class DeviceTimer:
    """A timer for calls of `works`, which take turns, in a stream, whose device must be current.

    `flush`: overwrite the L2 cache before each sample, unless it is a batch. `clock` reads the device's clock.
    A sample is discarded if its blocking kernel timed out, and the batch is halved. If the kernel times out with a
    single call, the call itself waits for the device, and it is measured without the blocking kernel.
    """

    def __init__(
        self,
        works: Sequence[Work],
        stream: Stream,
        *,
        flush: bool,
        clock: Callable[[], float | None],
        blocker: Blocker | None,
    ) -> None:
        self.stream = stream
        self.batch = 1
        self.overhead = 0.0
        self.memory = 0
        self._turns = itertools.cycle(works)
        self._count = len(works)
        self._clock = clock
        self._blocker = blocker
        self._start, self._end = Event(), Event()
        self._graph: ExecutableGraph | None = None
        self._l2 = (
            empty(FLUSH_FACTOR * stream.device.properties.l2_cache_size, np.uint8, stream=stream) if flush else None
        )

    @property
    def blocked(self) -> bool:
        """Whether the work of samples is queued after the blocking kernel."""
        return self._blocker is not None

    @property
    def captured(self) -> bool:
        """Whether a batch is launched as a graph."""
        return self._graph is not None

    @property
    def flushes(self) -> bool:
        """Whether the next sample begins with an overwritten L2 cache."""
        return self._l2 is not None and self.batch == 1

    def warm_up(self, options: MeasureOptions, now: Callable[[], float] = time.perf_counter) -> None:
        """Call each work once, which loads code and exposes errors, then take samples until the clocks have risen.

        Finally measure the time between two events without work.
        """
        begin = now()
        with PeakMemory(self.stream.device) as memory:
            for _ in range(self._count):
                next(self._turns)()
            self.stream.synchronize()
        self.memory = memory.nbytes
        self._check_blocking()
        while now() - begin < options.warm_up_seconds:
            self.sample()
        self.overhead = statistics.median(self.try_calls(0).seconds for _ in range(9))

    def _check_blocking(self) -> None:
        """Stop using the blocking kernel if launches wait for their kernels, as they do under some tools."""
        if self._blocker is not None and self.try_calls(0).timed_out:
            self._blocker = None

    def plan_batch(self) -> None:
        """Choose the batch size from a few trials: 1 unless a call is short."""
        trials = [self._settled()]
        if trials[0].seconds >= 2 * SHORT:
            return
        trials += [self._settled(), self._settled()]
        seconds = statistics.median(trial.seconds for trial in trials) - self.overhead
        if seconds >= SHORT:
            return
        host_seconds = min(trial.host_seconds for trial in trials)
        launches = max(1, round(host_seconds / LAUNCH_SECONDS))
        wanted = math.ceil(BATCH_SECONDS / max(seconds, 1e-9))
        self.batch = max(1, min(wanted, QUEUED_LAUNCHES // launches))

    def capture_batch(self) -> None:
        """Capture the batch as a graph if its calls can be captured; a single call is never captured."""
        if self.batch > 1:
            self._graph = capture_calls(self._turns, self.batch, self.stream)

    def sample(self) -> Sample:
        """Take one sample: the mean seconds per call, without the overhead of the events."""
        trial = self._settled()
        return Sample(max(trial.seconds - self.overhead, 0.0) / self.batch, trial.clock)

    def _settled(self) -> Trial:
        """Repeat a trial until it does not time out, with smaller batches and finally without the blocking kernel."""
        while True:
            trial = self.try_calls(self.batch)
            if not trial.timed_out:
                return trial
            if self.batch > 1 and self._graph is None:
                self.batch //= 2
            else:
                self._blocker = None

    def try_calls(self, calls: int) -> Trial:
        """Queue `calls` calls between two events, release them and wait for them."""
        if self.flushes and self._l2 is not None:
            memset(self._l2, 0, stream=self.stream)
        blocker = self._blocker
        try:
            if blocker is not None:
                blocker.hold()
            begin = time.perf_counter()
            self._start.record(self.stream)
            if self._graph is not None and calls == self.batch:
                self._graph.launch(self.stream)
            else:
                for _ in range(calls):
                    next(self._turns)()
            self._end.record(self.stream)
            host_seconds = time.perf_counter() - begin
        finally:
            if blocker is not None:
                blocker.release()
        # Read while the device works, since an idle device may lower its clocks.
        clock = self._clock()
        self._end.synchronize()
        seconds = (self._end - self._start) / 1e3
        return Trial(seconds, host_seconds, clock, blocker is not None and blocker.timed_out)

    def close(self) -> None:
        """Release the events, the graph and the buffer that the timer holds."""
        self._start.close()
        self._end.close()
        if self._graph is not None:
            self._graph.close()
        if self._l2 is not None:
            self._l2.close()
