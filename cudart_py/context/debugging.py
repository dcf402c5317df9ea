"""Which launch failed: debug mode, and the blame for a failure that surfaces later.

A kernel runs after its launch has returned, so its failure is reported by some later call. In debug
mode (`CUDART_PY_DEBUG=1`, or inside `with cuda.debug():`) every launch is followed by a
synchronisation, and the error names the kernel, its shape and the line that launched it. Outside it,
the error names the launches since the last good synchronisation.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..callers import call_site
from ..driver.seam import can_reset, lost_by, raw
from ..driver.unwrap import blame_with, failure
from .changes import changes
from .current import activated

if TYPE_CHECKING:
    from .device import Device

__all__ = [
    "GraphRecord",
    "LaunchRecord",
    "blame",
    "debug",
    "note_launched",
    "note_synchronized",
    "state",
    "wait_for",
]

_SHOWN = 8


class LaunchRecord(NamedTuple):
    """A launch as errors describe it; it holds no handle, so that it keeps nothing alive."""

    device: int
    stream: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.kernel}[grid {self.grid}, block {self.block}] on stream {self.stream:#x}"


class GraphRecord(NamedTuple):
    """A graph's launch as errors describe it."""

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
    """Debug mode, and the recent launches of the process. What changes them is atomic, so there is no lock."""

    def __init__(self) -> None:
        self.always = os.environ.get("CUDART_PY_DEBUG", "") not in ("", "0")
        # The open `with cuda.debug():` blocks. Those of several threads may end in any order.
        self.blocks: set[object] = set()
        # Never empty, so that whoever launches may look at its end.
        self.log: deque[LaunchRecord | GraphRecord | _Synchronized] = deque([_Synchronized(-1, None)], maxlen=256)

    @property
    def enabled(self) -> bool:
        """Whether launches are followed by a synchronisation."""
        return self.always or bool(self.blocks)


state = _State()
if state.always:
    changes.watch(state)


def note_launched(record: LaunchRecord | GraphRecord) -> None:
    """Log a launch, unless it is the same again and nothing else came in between."""
    if state.log[-1] is not record:
        state.log.append(record)


@contextmanager
def debug() -> Iterator[None]:
    """Synchronise after every launch of the process inside, so that an error names the kernel that made it."""
    block = object()
    try:
        state.blocks.add(block)
        changes.watch(block)
        yield
    finally:
        changes.unwatch(block)
        state.blocks.discard(block)


_synchronized = functools.lru_cache(maxsize=64)(_Synchronized)


def note_synchronized(device: int, stream: int | None) -> None:
    """Note that a stream (None: the whole device) was synchronised without an error."""
    state.log.append(_synchronized(device, stream))


def wait_for(record: LaunchRecord | GraphRecord, device: Device) -> None:
    """Debug mode: wait for a launch, and name it and its caller if it failed."""
    with activated(device):
        (status,) = raw.cuStreamSynchronize(record.stream)
    if status:
        raise failure(status, "cuStreamSynchronize", f"It was {record}, launched at {call_site()}")
    note_synchronized(record.device, record.stream)


def blame() -> str:
    """Return the last lines of an error, which name the launches since the last good synchronisation, newest first."""
    finished: set[tuple[int, int | None]] = set()
    suspects: list[LaunchRecord | GraphRecord] = []
    for entry in reversed(state.log.copy()):  # other threads may launch meanwhile
        if isinstance(entry, _Synchronized):
            finished.add((entry.device, entry.stream))
        elif (entry.device, None) not in finished and (entry.device, entry.stream) not in finished:
            suspects.append(entry)
    remedy = "start a new process, or call cuda.reset()" if can_reset() else "start a new process"
    # A driver that knows the kernel has reported its fault in full with the first error alone.
    earlier = lost_by()
    lost = "The context is lost" if earlier is None else f"The context was lost by an earlier error ({earlier})"
    sticky = f"\n{lost}: every later call fails too; {remedy}."
    if not suspects:
        return sticky
    lines = [f"\n  {record}" for record in suspects[:_SHOWN]]
    if len(suspects) > _SHOWN:
        lines.append(f"\n  and {len(suspects) - _SHOWN} earlier ones")
    head = "\nLaunches since the last good synchronisation, newest first"
    return f"{head} (CUDART_PY_DEBUG=1 finds which):{''.join(lines)}{sticky}"


blame_with(blame)
