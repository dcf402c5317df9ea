"""Concurrency: the launches, copies, fills and writes of values that are not ordered with the current one.

The simulator runs one piece of work after another, but a GPU may run them at the same time. Streams, events, the legacy
default stream and synchronisation by the host order pieces of work. Any other two pieces of work may overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...state import contexts, memory
from ...state.memory.records.record_limit import limit
from ...state.memory.records.shadow import STRONG, TIME, History, ShadowMemory, clock
from ...state.queue.runner import Piece, runner
from ...state.queue.stream import UNORDERED_STREAMS, name_of
from ...state.queue.work import Work, is_all_heard
from ..findings import mode, put_finding
from .traces import RACING, RECORDED, VERBS, Parts, Ranges, Trace

if TYPE_CHECKING:
    from ...state.memory import Allocation

_UNORDERED_NODES = (
    "nothing orders the two accesses: add an edge between the two nodes, or make one stream wait for the other during "
    "the capture"
)
Array = NDArray[Any]

# The maximum number of pieces of work that are remembered; races with older ones are not reported.
_MOST = 256


class Span:
    """A piece of work that has run: the time range of its accesses, and a function that names a record's author.

    `block_scoped` says that it may have made strong accesses with block scope.
    """

    __slots__ = ("__weakref__", "_name", "begin", "block_scoped", "end", "piece", "traces")

    def __init__(
        self, piece: Piece, begin: int, end: int, name: Callable[[int, str, str], str], block_scoped: bool = False
    ) -> None:
        self.piece = piece
        self.begin = begin
        self.end = end
        self.block_scoped = block_scoped
        # The number of allocations with traces of this work that later traces haven't replaced.
        self.traces = 0
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
        """A clause that names the streams of the current work and of this one, and says how to order the two."""
        if runner.piece is None or self._in_this_graph:
            return _UNORDERED_NODES
        works = runner.piece.work, self.piece.work
        devices = [work.context.device.ordinal for work in works]
        names = [name_of(work.stream) for work in works]
        if devices[0] != devices[1]:
            names = [f"{name} of device {device}" for name, device in zip(names, devices, strict=True)]
        here, there = names
        if here == there:
            there += " of another thread or context"
        return f"nothing orders the two accesses, this one in {here} and the other in {there}: {UNORDERED_STREAMS}"

    def left(self, records: Array) -> Array:
        """Return a mask of the records that are from this work."""
        return np.asarray((records >= self.begin << TIME) & (records < self.end << TIME))


_spans: list[Span] = []


def unordered() -> list[Span]:
    """Return the pieces of work that have run and are not ordered before the current one, oldest first."""
    running = runner.piece
    if running is None or not _spans:
        return []
    unordered_spans = [span for span in _spans if not running.comes_after(span.piece)]
    if not unordered_spans and not others_wait() and is_all_heard():
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


def keep(
    begin: int, name: Callable[[int, str, str], str], traces: Mapping[History, Trace], block_scoped: bool = False
) -> None:
    """Remember the current work, whose accesses began at the time `begin`, if other work may overlap it.

    `name` returns a phrase for a record, a verb, and words that say where the work ran from the other work's viewpoint.
    The traces of earlier work that only race with work that also races with this one are forgotten, so that programs
    that queue the same work again and again need no more memory.
    """
    running = runner.piece
    if running is None or not traces or not others_wait():
        return
    span = Span(running, begin, clock.now, name, block_scoped)
    for history, trace in traces.items():
        for earlier, before in list(history.traces.items()):
            if running.comes_after(earlier.piece) and before.replaced_by(trace):
                del history.traces[earlier]
                earlier.traces -= 1
        history.traces[span] = trace
        span.traces += 1
    _spans[:] = [*(earlier for earlier in _spans if earlier.traces), span][-_MOST:]


def meeting(spans: list[Span], history: History, parts: Parts) -> tuple[Span, str, int] | None:
    """Return the latest of some work that races with accesses to an allocation, or None.

    The tuple also contains the kind of that work's access, and the offset of its first byte that both access.
    """
    low, high = min(ranges.low for ranges in parts.values()), max(ranges.high for ranges in parts.values())
    for span in reversed(spans):
        trace = history.traces.get(span)
        if trace is None or low >= trace.high or high <= trace.low:
            continue
        theirs = trace.parts_in(span, history, low, high)
        for mine, ranges in parts.items():
            for kind in RACING[mine]:
                place = ranges.meets(theirs[kind]) if kind in theirs else None
                if place is not None:
                    return span, kind, place
    return None


def find_span(spans: list[Span], record: int) -> Span | None:
    """Return the span that a record is from, or None if it is from no span."""
    when = record >> TIME
    return next((span for span in spans if span.begin <= when < span.end), None)


def touch(rows: Iterable[tuple[int, int]], what: str, *, writes: bool, is_atomic: bool = False, site: str = "") -> None:
    """Check and record the rows of memory, each an address and a size, that a copy, fill or discard reads or writes.

    `is_atomic` says that it writes like an atomic with device scope. `site` is the line of the program that queued it,
    or "" if it is not known.
    """
    if mode() == "off":
        return
    spans = unordered()
    if not spans and not others_wait():
        return
    begin = clock.now
    clock.now += 1
    traces: dict[History, Trace] = {}
    race = ""
    try:
        for shadow, ranges in _by_allocation(rows):
            parts = {"atomic" if is_atomic else "write" if writes else "read": ranges}
            race = race or _race(spans, shadow, parts)
            traces[shadow.history] = Trace(parts, begin << TIME | (STRONG if is_atomic else 0))
    except MemoryError:
        limit.say(f"no memory is left for the records of {what}", "its races with other streams may go unnoticed")
    if race:
        verb = "writes" if writes else "reads"
        here = f"; this {what.removeprefix('a ')} was queued at {site}" if site else ""
        put_finding("race", f"race: {what} {verb} {race}{here}")
    queued = f" (queued at {site})" if site else ""
    keep(begin, lambda _, verb, where: f"{what} {where} {verb}{queued}", traces)


def check_free(allocation: Allocation) -> None:
    """Report a free, in stream order, of memory that work uses which is not ordered before the free."""
    spans = [] if mode() == "off" or allocation.on_host else unordered()
    if not spans:
        return
    shadow = allocation.shadow
    race = _race(spans, shadow, {"write": Ranges.of_rows([(0, shadow.size)])})
    if race:
        queued = f"; this free was queued at {allocation.freed_at}" if allocation.freed_at else ""
        put_finding("race", f"race: a free releases {race}{queued}")


def kernel_that_wrote(address: int, size: int) -> Work | None:
    """Return the launch, not ordered before the current work, whose atomic or volatile store wrote memory last.

    Later writes of values by streams are ignored: `state.queue.value_waits` keeps track of these.
    """
    allocation = memory.live.find(address)
    if mode() == "off" or allocation is None:
        return None
    history = allocation.shadow.history
    start = address - allocation.shadow.first
    piece = np.arange(start, start + size) >> history.shift
    spans = unordered()
    for span in reversed(_spans):
        trace = history.traces.get(span)
        records = None if trace is None else trace.records(span, history, "write", piece, last=True)
        if trace is None or records is None or not records.any():
            continue
        is_strong = bool(int(records.max()) & STRONG)
        if is_strong and not trace.is_of_launch:
            continue
        return span.piece.work if is_strong and span in spans else None
    return None


def _by_allocation(rows: Iterable[tuple[int, int]]) -> Iterator[tuple[ShadowMemory, Ranges]]:
    """Yield the shadow memory of each allocation that rows touch, and the ranges that they cover."""
    found: dict[ShadowMemory, list[tuple[int, int]]] = {}
    for address, size in rows:
        allocation = memory.live.find(address)
        if allocation is not None:
            start = address - allocation.shadow.first
            found.setdefault(allocation.shadow, []).append((start, start + size))
    for shadow, parts in found.items():
        yield shadow, Ranges.of_rows(parts)


def _race(spans: list[Span], shadow: ShadowMemory, parts: Parts) -> str:
    """Return a phrase for a race of a copy or a fill: the other access and a remedy; "" if there is none."""
    met = meeting(spans, shadow.history, parts)
    if met is None:
        return ""
    span, kind, offset = met
    history, place = shadow.history, shadow.first + offset
    records = history.traces[span].records(span, history, RECORDED[kind], np.array([offset >> history.shift]))
    record = 0 if records is None else int(records[0])
    strong = " by an atomic or volatile access" if record & STRONG else ""
    seen = f"{place:#x} ({memory.describe(place)})"
    return f"global memory at {seen}, which {span.name(record, VERBS[kind])}{strong}, and {span.remedy}"
