"""Concurrency: the launches, copies and fills that are not ordered with the current one.

The simulator runs one piece of work after another, but a GPU may run them at the same time. Streams, events, the legacy
default stream and synchronisation by the host order pieces of work. Any other two pieces of work may overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state import contexts, memory
from ...state.memory.record_limit import limit
from ...state.memory.shadow import STRONG, TIME, History, clock
from ...state.queue.runner import Piece, runner
from ...state.queue.work import Work
from ..findings import mode, put_finding

_UNORDERED = (
    "nothing orders the two accesses: use the same stream for both (stream=s), or make one stream wait for the other"
)
_UNORDERED_NODES = (
    "nothing orders the two accesses: add an edge between the two nodes, or make one stream wait for the other during "
    "the capture"
)
Array = NDArray[Any]

# The largest number of pieces of work that are remembered; races with older ones are not reported.
_MOST = 256
# The largest number of bytes of a copy or fill that are compared at once.
_LONGEST = 1 << 22


class Span:
    """A piece of work that has run: the time range of its accesses, and a function that names a record's author."""

    __slots__ = ("__weakref__", "_name", "begin", "end", "piece")

    def __init__(self, piece: Piece, begin: int, end: int, name: Callable[[int, str, str], str]) -> None:
        self.piece = piece
        self.begin = begin
        self.end = end
        self._name = name

    @property
    def _in_this_graph(self) -> bool:
        """Whether this work and the current one are nodes of the same graph."""
        return runner.piece is not None and runner.piece.shares_graph(self.piece)

    def name(self, record: int, verb: str) -> str:
        """Return a phrase that says which thread, copy or fill of this work did what `verb` says, and where."""
        return self._name(record, verb, "in another node of the graph" if self._in_this_graph else "in another stream")

    @property
    def remedy(self) -> str:
        """A clause that says how to order this work and the current one."""
        return _UNORDERED_NODES if self._in_this_graph else _UNORDERED

    def left(self, records: Array) -> Array:
        """Return a mask of the records that are from this work."""
        return np.asarray((records >= self.begin << TIME) & (records < self.end << TIME))

    def records(self, history: History, kind: str, index: Any, present: Array) -> Array | None:
        """Return this work's records of some pieces, 0 for a piece without a record, or None if there are no records.

        `present` has the latest records of the pieces.
        """
        left, aside = self.left(present), history.aside(self, kind, index)
        if left.any():
            return np.where(left, present, 0 if aside is None else aside)
        return aside


_spans: list[Span] = []


def unordered() -> list[Span]:
    """Return the pieces of work that have run and are not ordered before the current one, oldest first."""
    running = runner.piece
    if running is None or not _spans:
        return []
    unordered_spans = [span for span in _spans if not running.comes_after(span.piece)]
    if not unordered_spans and not others_wait():
        _spans.clear()
    return unordered_spans


def others_wait() -> bool:
    """Return whether the current work may overlap work that hasn't run: in other streams, or nodes of its graph.

    Such work may even be queued later, if the current work is a graph that waits for a value.
    """
    running = runner.piece
    if running is None:
        return False
    waits = runner.operation is not None and runner.operation.may_wait
    return (
        waits
        or running is not running.work
        or any(
            stream.tail is not None and not stream.tail.done and stream.identity != running.work.stream
            for context in contexts.all_active()
            for stream in list(context.busy)
        )
    )


def keep(begin: int, name: Callable[[int, str, str], str]) -> None:
    """Remember the current work, whose accesses began at the time `begin`, if other work may overlap it.

    `name` returns a phrase for a record, a verb, and words that say where the work ran from the other work's viewpoint.
    """
    running = runner.piece
    if running is not None and others_wait():
        _spans.append(Span(running, begin, clock.now, name))
        del _spans[:-_MOST]


def set_aside(spans: list[Span], history: History, kind: str, index: Any, before: Array) -> None:
    """Keep the records of other work that a read, or an atomic access, is about to replace without racing with it.

    Later work may race with any of these accesses: it may be ordered after one read and not after another. Plain writes
    need not be kept. Two writes that don't race are ordered, and work that is ordered after the second is also ordered
    after the first.
    """
    if not spans or not ((before >= spans[0].begin << TIME) & (before < spans[-1].end << TIME)).any():
        return
    for span in spans:
        left = span.left(before)
        if left.any():
            history.set_aside(span, kind, index, np.where(left, before, 0))


def find_span(spans: list[Span], record: int) -> Span | None:
    """Return the span that a record is from, or None if it is from no span."""
    when = record >> TIME
    return next((span for span in spans if span.begin <= when < span.end), None)


def touch(rows: Iterable[tuple[int, int]], what: str, *, writes: bool, site: str = "") -> None:
    """Check and record the rows of device memory, each an address and a size, that a copy or a fill reads or writes.

    `site` is the line of the program that queued it, or "" if it is not known.
    """
    if mode() == "off":
        return
    spans = unordered()
    if not spans and not others_wait():
        return
    begin = clock.now
    clock.now += 1
    reported = False
    try:
        for address, size in _parts(rows):
            race = _touch(address, size, spans, begin, writes)
            if race and not reported:
                reported = True
                verb = "writes" if writes else "reads"
                here = f"; this {what.removeprefix('a ')} was queued at {site}" if site else ""
                put_finding("race", f"race: {what} {verb} {race}{here}")
    except MemoryError:
        limit.say(f"no memory is left for the records of {what}", "its races with other streams may go unnoticed")
    queued = f" (queued at {site})" if site else ""
    keep(begin, lambda _, verb, where: f"{what} {where} {verb}{queued}")


def kernel_that_wrote(address: int, size: int) -> Work | None:
    """Return the work, not ordered before the current one, whose atomic or volatile store wrote memory last."""
    allocation = memory.live.find(address)
    spans = unordered()
    if mode() == "off" or not spans or allocation is None:
        return None
    history = allocation.shadow.history
    if not history.prepare(4):
        return None
    start = address - allocation.shadow.first
    record = int(history.writes[history.pieces(start, start + size)].max())
    span = find_span(spans, record) if record & STRONG else None
    return None if span is None else span.piece.work


def _parts(rows: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Split long rows, because comparing them whole would take much memory."""
    for address, size in rows:
        for start in range(0, size, _LONGEST):
            yield address + start, min(_LONGEST, size - start)


def _touch(address: int, size: int, spans: list[Span], now: int, writes: bool) -> str:
    """Check and record one row; return a phrase for a race: the other access and a remedy; "" if there is none."""
    allocation = memory.live.find(address)
    if allocation is None or allocation.on_host:
        return ""
    history = allocation.shadow.history
    if not history.prepare(1 if (address | size) & 3 else 4):
        return ""
    start = address - allocation.shadow.first
    part = history.pieces(start, start + size)
    meeting = ""
    for verb, kind in (("wrote", "write"), ("read", "read")) if writes else (("wrote", "write"),):
        present = (history.writes if kind == "write" else history.reads)[part]
        for span in spans:
            before = None if meeting else span.records(history, kind, part, present)
            if before is not None and before.any():
                first = int(np.flatnonzero(before)[0])
                record = int(before[first])
                place = max(address, allocation.shadow.first + ((part.start + first) << history.shift))
                strong = " by an atomic or volatile access" if record & STRONG else ""
                seen = f"{place:#x} ({memory.describe(place)})"
                meeting = f"global memory at {seen}, which {span.name(record, verb)}{strong}, and {span.remedy}"
    if not writes:
        set_aside(spans, history, "read", part, history.reads[part])
    (history.writes if writes else history.reads)[part] = now << TIME
    return meeting
