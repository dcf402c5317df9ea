"""The log of recent launches, which lists the candidates when a kernel's failure surfaces in a later call."""

from __future__ import annotations

import functools
from collections import deque
from typing import NamedTuple

from .backend import in_use

_SHOWN = 8
# The handles of the default streams.
_DEFAULTS = {1: "the legacy default stream", 2: "the per-thread default stream"}


def _named(stream: int) -> str:
    return _DEFAULTS.get(stream) or f"stream {stream:#x}"


class LaunchRecord(NamedTuple):
    """A launch as error messages describe it. It refers to no objects and so keeps none alive."""

    device: int
    stream: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.kernel}[grid {self.grid}, block {self.block}] on {_named(self.stream)}"


class GraphRecord(NamedTuple):
    """A graph launch as error messages describe it."""

    device: int
    stream: int
    nodes: int

    def __str__(self) -> str:
        return f"a graph of {self.nodes} node{'' if self.nodes == 1 else 's'} on {_named(self.stream)}"


class _Synchronized(NamedTuple):
    """A mark in the log: earlier launches on this stream (None: on all streams of the device) succeeded."""

    device: int
    stream: int | None


# The newest entry is the first, because Python reads log[0] faster than log[-1]. Changes are atomic, so there is no
# lock. The log is never empty, so a launch can read log[0] without a test.
log: deque[LaunchRecord | GraphRecord | _Synchronized] = deque([_Synchronized(-1, None)], maxlen=256)

_synchronized = functools.lru_cache(maxsize=64)(_Synchronized)


def note_launched(record: LaunchRecord | GraphRecord) -> None:
    """Log a launch, unless it repeats the newest entry."""
    if log[0] is not record:
        log.appendleft(record)


def note_synchronized(device: int, stream: int | None) -> None:
    """Note that a stream (None: the whole device) was synchronised without an error."""
    log.appendleft(_synchronized(device, stream))


def blame() -> str:
    """Return the end of an error message: the launches since the last successful synchronisation, newest first."""
    finished: set[tuple[int, int | None]] = set()
    suspects: list[LaunchRecord | GraphRecord] = []
    for entry in log.copy():  # a copy, since other threads may launch in the meantime
        if isinstance(entry, _Synchronized):
            finished.add((entry.device, entry.stream))
        elif (entry.device, None) not in finished and (entry.device, entry.stream) not in finished:
            suspects.append(entry)
    backend = in_use()
    can_reset = backend is not None and backend.can_reset
    remedy = "start a new process, or call cuda.reset()" if can_reset else "start a new process"
    # A driver that knows the failed kernel gives its full report only with the first error. Later errors refer to it.
    earlier = None if backend is None else backend.lost_by()
    lost = "The context is lost" if earlier is None else f"The context was lost by an earlier error ({earlier})"
    sticky = f"\n{lost}: every later call fails too; {remedy}."
    if earlier is not None or not suspects:
        return sticky
    lines = [f"\n  {record}" for record in suspects[:_SHOWN]]
    if len(suspects) > _SHOWN:
        lines.append(f"\n  and {len(suspects) - _SHOWN} earlier ones")
    head = "\nLaunches since the last successful synchronisation, newest first"
    return f"{head} (set CUDART_PY_DEBUG=1 to find the one that failed):{''.join(lines)}{sticky}"
