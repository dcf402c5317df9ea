"""Which launch failed: debug mode, and the blame for a failure that surfaces later.

A kernel runs after its launch has returned, so its failure is reported by some later call. In debug
mode (`CUDART_PY_DEBUG=1`, or inside `with cuda.debug():`) every launch is followed by a
synchronisation, and the error names the kernel, its shape and the line that launched it. Outside it,
the error names the launches since the last good synchronisation.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .device import Device

__all__ = [
    "GraphRecord",
    "LaunchRecord",
    "blame",
    "call_site",
    "debug",
    "note_launched",
    "note_synchronized",
    "state",
    "wait_for",
]

_SHOWN = 8
_PACKAGE = os.path.dirname(__file__) + os.sep


class LaunchRecord(NamedTuple):
    """What an error says of a launch; it holds no handle, so that it keeps nothing alive."""

    device: int
    stream: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.kernel}[grid {self.grid}, block {self.block}] on stream {self.stream:#x}"


class GraphRecord(NamedTuple):
    """What an error says of a graph's launch."""

    device: int
    stream: int
    nodes: int

    def __str__(self) -> str:
        return f"a graph of {self.nodes} node{'' if self.nodes == 1 else 's'} on stream {self.stream:#x}"


class _Synchronized(NamedTuple):
    """A mark in the log: what came before, on this stream (None: on all of them), went well."""

    device: int
    stream: int | None


class _State:
    """Debug mode, and the recent launches of the process. deque.append is atomic, so no lock."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("CUDART_PY_DEBUG", "") not in ("", "0")
        self.log: deque[LaunchRecord | GraphRecord | _Synchronized] = deque(maxlen=256)
        # The end of the log, if the same launch again needs no more than the driver's call: it is not logged twice.
        # None when there is a capture, in debug mode, and after every synchronisation and close.
        self.last: LaunchRecord | GraphRecord | None = None


state = _State()


def note_launched(record: LaunchRecord | GraphRecord) -> None:
    """Log a launch, unless it is the same again and nothing else came in between."""
    # Before the log: what another thread's synchronisation does in between must not be undone.
    state.last = record
    log = state.log
    if not log or log[-1] is not record:
        log.append(record)


@contextmanager
def debug() -> Iterator[None]:
    """Synchronise after every launch inside, so that an error names the kernel that made it."""
    before = state.enabled
    state.enabled = True
    state.last = None
    try:
        yield
    finally:
        state.enabled = before


_synchronized = functools.lru_cache(maxsize=64)(_Synchronized)


def note_synchronized(device: int, stream: int | None) -> None:
    """Note that a stream (None: the whole device) was synchronised without an error."""
    state.log.append(_synchronized(device, stream))
    state.last = None


def wait_for(record: LaunchRecord | GraphRecord, device: Device) -> None:
    """Debug mode: wait for a launch, and name it and its caller if it failed."""
    from . import _driver, errors
    from .device import activated

    with activated(device):
        (status,) = _driver.raw.cuStreamSynchronize(record.stream)
    if status:
        raise errors.failure(status, "cuStreamSynchronize", f"It was {record}, launched at {call_site()}")
    note_synchronized(record.device, record.stream)


def blame() -> str:
    """Name the launches since the last good synchronisation, newest first, as an error's last lines."""
    finished: set[tuple[int, int | None]] = set()
    suspects: list[LaunchRecord | GraphRecord] = []
    for entry in reversed(state.log):
        if isinstance(entry, _Synchronized):
            finished.add((entry.device, entry.stream))
        elif (entry.device, None) not in finished and (entry.device, entry.stream) not in finished:
            suspects.append(entry)
    sticky = "\nThe context is lost: every later call fails too; start a new process."
    if not suspects:
        return sticky
    lines = [f"\n  {record}" for record in suspects[:_SHOWN]]
    if len(suspects) > _SHOWN:
        lines.append(f"\n  and {len(suspects) - _SHOWN} earlier ones")
    head = "\nLaunches since the last good synchronisation, newest first"
    return f"{head} (CUDART_PY_DEBUG=1 finds which):{''.join(lines)}{sticky}"


def call_site() -> str:
    """Return "file:line" of the nearest caller outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        back = frame.f_back
        if back is None:
            break
        frame = back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
