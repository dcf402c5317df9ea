"""The recorder of a trace, which sees every call of the driver between its start and its end.

An event of the driver is recorded before and after each piece of work in a stream. At the end, their times give the
begin and the end of the work.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...context.epoch import epoch
from ...driver import calls
from ...driver.backend import chosen
from ...driver.capabilities import capabilities
from ...host import nvtx
from .work import Work, work_of

# Functions that only answer questions. They would fill a trace without telling much.
_QUIET = re.compile(r"cu\w*(?:Get|Query|IsCapturing|Occupancy)\w*")
# Functions that return when work has finished.
_WAITS = re.compile(r"cu(?:\w+Synchronize|Memcpy(?!\w*Async)\w*)")


@dataclass
class Call:
    """A driver call, or a range that the program has named, of a thread; times are in nanoseconds of the host's clock.

    `category` is "driver", "wait" or "nvtx".
    """

    name: str
    category: str
    thread: threading.Thread
    begin: int
    end: int = 0


@dataclass
class Piece:
    """A piece of work in a stream, with its events, and the call that queued it.

    `after` are the pieces of other streams that it had to wait for. `times` are its begin and its end in nanoseconds of
    the host's clock, or None if they are not known.
    """

    work: Work
    device: int
    begin: Any
    call: Call
    end: Any = None
    after: list[Piece] = field(default_factory=list)
    times: tuple[int, int] | None = None


@dataclass
class Recording:
    """The result: the start in the host's clock, the calls in their order, and the pieces of work as they were queued.

    `is_timed` is False if the times of the pieces only show their order.
    """

    start: int
    calls: list[Call]
    pieces: list[Piece]
    is_timed: bool


class Recorder:
    """Records from `start` to `stop`. Recorders do not nest."""

    def __init__(self) -> None:
        self._begin = 0
        self._calls: list[Call] = []
        self._pieces: list[Piece] = []
        # By device: the base event, and the host's clock at its time.
        self._bases: dict[int, tuple[Any, int]] = {}
        # By stream: the latest piece, and the pieces that the next one waits for. By event: the piece before it.
        self._latest: dict[tuple[int, int], Piece] = {}
        self._awaited: dict[tuple[int, int], list[Piece]] = {}
        self._recorded: dict[int, Piece | None] = {}
        self._lock = threading.RLock()
        self._ranges: dict[threading.Thread, list[Call]] = {}
        self._driver: Any = None

    def start(self) -> None:
        """Begin to see the driver's calls and the ranges of `nvtx_range`."""
        self._begin = time.perf_counter_ns()
        self._driver = calls.driver_functions()
        # Launches keep the driver's function, and look for it again only while a watcher must see each launch.
        epoch.watch(self)
        calls.intercept(self._seen)
        nvtx.listeners.append(self._note_range)

    def stop(self, name: str, since: int) -> Recording:
        """Wait for the work, and return what was recorded; after a fault, work has times only on the simulator.

        `name` is that of the wait at the end of the recording, which has begun at the time `since`.
        """
        nvtx.listeners.remove(self._note_range)
        calls.intercept(None)
        epoch.unwatch(self)
        now = time.perf_counter_ns()
        for ranges in self._ranges.values():
            for unfinished in ranges:
                unfinished.end = now
        with self._lock:
            self._read_times()
        self._calls.append(Call(name, "wait", threading.current_thread(), since, time.perf_counter_ns()))
        return Recording(self._begin, self._calls, self._pieces, "gpu_timing" in capabilities())

    def _seen(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that records its calls, in place of one of the driver's functions."""
        if _QUIET.fullmatch(name):
            return function
        category = "wait" if _WAITS.fullmatch(name) else "driver"

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            seen = Call(name, category, threading.current_thread(), time.perf_counter_ns())
            piece = self._before(name, arguments, seen)
            try:
                result = function(*arguments, **named)
            finally:
                seen.end = time.perf_counter_ns()
                self._calls.append(seen)
            if not result[0]:
                self._after(name, arguments, piece)
            return result

        return call

    def _before(self, name: str, arguments: tuple[Any, ...], call: Call) -> Piece | None:
        """Record an event before a piece of work; return the piece, or None if the call queues none that runs."""
        work = work_of(name, arguments)
        if work is None:
            return None
        status, capturing = self._driver.cuStreamIsCapturing(work.stream)
        if status or int(capturing):
            return None
        status, device = self._driver.cuCtxGetDevice()
        if status:
            return None
        with self._lock:
            self._begin_device(int(device))
            begin = self._record_event(work.stream)
            return None if begin is None else Piece(work, int(device), begin, call)

    def _after(self, name: str, arguments: tuple[Any, ...], piece: Piece | None) -> None:
        with self._lock:
            if piece is not None:
                key = piece.device, piece.work.stream
                piece.end = self._record_event(piece.work.stream)
                piece.after = self._awaited.pop(key, [])
                self._latest[key] = piece
                self._pieces.append(piece)
            elif name.startswith("cuEventRecord"):
                self._recorded[int(arguments[0])] = self._latest.get(self._key(arguments[1]))
            elif name == "cuStreamWaitEvent":
                before = self._recorded.get(int(arguments[1]))
                if before is not None:
                    self._awaited.setdefault(self._key(arguments[0]), []).append(before)

    def _key(self, stream: Any) -> tuple[int, int]:
        status, device = self._driver.cuCtxGetDevice()
        return (-1 if status else int(device)), int(stream)

    def _begin_device(self, device: int) -> None:
        """Relate a device's times to the host's clock, before the first piece of work on the device."""
        if device in self._bases:
            return
        status, event = self._driver.cuEventCreate(0)
        if status:
            return
        # In a stream of its own, the event does not wait for other work.
        status, stream = self._driver.cuStreamCreate(1)
        if not status:
            self._driver.cuEventRecord(event, stream)
            self._driver.cuEventSynchronize(event)
            self._driver.cuStreamDestroy(stream)
        self._bases[device] = event, time.perf_counter_ns()

    def _record_event(self, stream: int) -> Any:
        status, event = self._driver.cuEventCreate(0)
        if status:
            return None
        (status,) = self._driver.cuEventRecord(event, stream)
        if status:
            self._driver.cuEventDestroy(event)
            return None
        return event

    def _read_times(self) -> None:
        driver = self._driver
        ends: dict[tuple[int, int], int] = {}
        for piece in self._pieces:
            # The result does not matter: if the work has failed, its times cannot be read either.
            driver.cuEventSynchronize(piece.end)
            times = self._times(piece)
            if times is not None:
                # The clocks of host and device differ by some microseconds, and the device's times are rounded. Work
                # runs after its call, though, and after the work before it in its stream.
                key = piece.device, piece.work.stream
                begin = max(times[0], piece.call.begin, ends.get(key, 0))
                ends[key] = max(times[1], begin + 1)
                piece.times = begin, ends[key]
        for piece in self._pieces:
            for event in filter(None, (piece.begin, piece.end)):
                driver.cuEventDestroy(event)
        for event, _ in self._bases.values():
            driver.cuEventDestroy(event)

    def _times(self, piece: Piece) -> tuple[int, int] | None:
        """Return the times of a piece in the host's clock."""
        if piece.end is None:
            return None
        read = [chosen().host_time(event) for event in (piece.begin, piece.end)]
        if not read[0][0]:
            # Work that has begun and not ended was stopped by a fault.
            return read[0][1], read[0][1] if read[1][0] else read[1][1]
        base, clock = self._bases.get(piece.device, (None, 0))
        if base is None:
            return None
        # A time is rounded to single precision, so the short one between the two events is read on its own.
        to_begin = self._driver.cuEventElapsedTime(base, piece.begin)
        length = self._driver.cuEventElapsedTime(piece.begin, piece.end)
        if to_begin[0] or length[0]:
            return None
        begin = clock + round(to_begin[1] * 1e6)
        return begin, begin + round(length[1] * 1e6)

    def _note_range(self, name: str | None) -> None:
        """Record the begin of a range of the program, or, for None, the end of the thread's latest one."""
        thread, now = threading.current_thread(), time.perf_counter_ns()
        ranges = self._ranges.setdefault(thread, [])
        if name is not None:
            ranges.append(Call(name, "nvtx", thread, now))
            self._calls.append(ranges[-1])
        elif ranges:
            ranges.pop().end = now
