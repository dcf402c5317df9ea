"""Concurrency: the launches, copies and fills whose order with the one that runs now nothing determines.

Work runs one piece after the other here, and on a GPU at the same time. Streams, events, the legacy default stream and
the host's waiting put work in order; all else may meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ...state import contexts, memory
from ...state.memory.shadow import STRONG, TIME, clock
from ...state.queue.work import Piece, runner
from ..findings import mode, put_finding

__all__ = [
    "UNORDERED",
    "Span",
    "find_span",
    "keep",
    "others_wait",
    "touch",
    "unordered",
]

UNORDERED = "nothing puts one before the other: give both the same stream (stream=s), or let one wait for the other"
# So many pieces of work are remembered; races with older ones are not found.
_MOST = 256


class Span:
    """A piece of work that has run: the time of its accesses, and a function that names who left a record."""

    __slots__ = ("begin", "end", "name", "piece")

    def __init__(self, piece: Piece, begin: int, end: int, name: Callable[[int, str], str]) -> None:
        self.piece = piece
        self.begin = begin
        self.end = end
        # Called with a record and a verb, it returns a text that says who did that, and where.
        self.name = name


_spans: list[Span] = []


def unordered() -> list[Span]:
    """Return the pieces of work that have run and may meet the one that runs now, oldest first."""
    running = runner.piece
    if running is None or not _spans:
        return []
    found = [span for span in _spans if not running.comes_after(span.piece)]
    if not found and not others_wait():
        _spans.clear()
    return found


def others_wait() -> bool:
    """Return whether what runs now may meet what hasn't run: work of other streams, or other nodes of its graph."""
    running = runner.piece
    if running is None:
        return False
    return running is not running.work or any(
        stream.tail is not None and not stream.tail.done and stream.identity != running.work.stream
        for context in contexts.all_active()
        for stream in list(context.busy)
    )


def keep(begin: int, name: Callable[[int, str], str]) -> None:
    """Remember the work that runs now, whose accesses began at the time `begin`, if other work may meet it."""
    running = runner.piece
    if running is not None and others_wait():
        _spans.append(Span(running, begin, clock.now, name))
        del _spans[:-_MOST]


def find_span(spans: list[Span], record: int) -> Span | None:
    """Return the span that left a record, None if none did."""
    when = record >> TIME
    return next((span for span in spans if span.begin <= when < span.end), None)


def touch(rows: Iterable[tuple[int, int]], what: str, *, writes: bool) -> None:
    """Check and record that a copy or a fill reads or writes rows of device memory, each an address and its bytes."""
    if mode() == "off":
        return
    spans = unordered()
    if not spans and not others_wait():
        return
    begin = clock.now
    clock.now += 1
    reported = False
    for address, size in rows:
        race = _touch(address, size, spans, begin, writes)
        if race and not reported:
            reported = True
            verb = "writes" if writes else "reads"
            put_finding(f"race: {what} {verb} {race}, and {UNORDERED}")
    keep(begin, lambda _, verb: f"{what} in another stream {verb}")


def _touch(address: int, size: int, spans: list[Span], now: int, writes: bool) -> str:
    """Check and record one row; return a text that says what it meets, "" for nothing."""
    allocation = memory.live.find(address)
    if allocation is None or allocation.on_host:
        return ""
    history = allocation.shadow.history
    if (address | size) & 3:
        history.divide(1)
    start = address - allocation.shadow.first
    part = history.pieces(start, start + size)
    found = ""
    for verb, records in (
        (("wrote", history.writes), ("read", history.reads)) if writes else (("wrote", history.writes),)
    ):
        before = records[part]
        for span in spans:
            places = np.flatnonzero((before >= span.begin << TIME) & (before < span.end << TIME))
            if len(places) and not found:
                record = int(before[places[0]])
                place = max(address, allocation.shadow.first + ((part.start + int(places[0])) << history.shift))
                strong = " by an atomic or volatile access" if record & STRONG else ""
                seen = f"{place:#x} ({memory.describe(place)})"
                found = f"global memory at {seen}, which {span.name(record, verb)}{strong}"
    (history.writes if writes else history.reads)[part] = now << TIME
    return found
