"""A recording in the Trace Event format, which Perfetto (https://ui.perfetto.dev) opens."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from ...context.device import Device
from ...version import __version__
from .recorder import Call, Piece, Recording

Event = dict[str, Any]

_HOST, _FIRST_DEVICE = 1, 100
_NAMES_OF_STREAMS = {0: "legacy default stream", 1: "legacy default stream", 2: "per-thread default stream"}
_ORDER = "order, not time"
# The order of events with the same time: the events of a track that end, then those that begin, then arrows.
_PHASES = "MEBXsf"


def trace_text(recording: Recording) -> str:
    """Return the trace as JSON: the driver calls of each thread, the work in each stream, and arrows between them.

    If the recording is not timed, the unit of time is a step: each begin and each end of a call or of a piece of work
    is one step after the previous one.
    """
    pieces = [piece for piece in recording.pieces if piece.times is not None]
    clock = _Microseconds(recording.start) if recording.is_timed else _Steps(recording.calls, pieces)
    tracks = _Tracks(recording.is_timed)
    ids = itertools.count(1)
    events = [event for call in recording.calls for event in _call(call, tracks, clock)]
    events += [event for piece in pieces for event in _piece(piece, tracks, clock, ids)]
    events = [*tracks.names(), *sorted(events, key=_place)]
    data = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "version": f"cudart-py {__version__}",
            "clock": "time" if recording.is_timed else _ORDER,
        },
    }
    return json.dumps(data, indent=0) + "\n"


class _Microseconds:
    """The clock of a GPU's trace: microseconds since the start."""

    def __init__(self, start: int) -> None:
        self._start = start

    def call(self, call: Call) -> tuple[float, float]:
        return (call.begin - self._start) / 1e3, (call.end - self._start) / 1e3

    def piece(self, piece: Piece) -> tuple[float, float]:
        begin, end = piece.times or (0, 0)
        return (begin - self._start) / 1e3, (end - self._start) / 1e3


class _Steps:
    """The clock of a trace without times: the number of the begins and ends before."""

    def __init__(self, calls: Iterable[Call], pieces: Iterable[Piece]) -> None:
        moments = []
        for call in calls:
            moments += [(call.begin, 0, id(call), 0), (call.end, 3, id(call), 1)]
        for piece in pieces:
            begin, end = piece.times or (0, 0)
            moments += [(begin, 1, id(piece), 0), (end, 2, id(piece), 1)]
        self._steps = {(thing, which): step for step, (_, _, thing, which) in enumerate(sorted(moments))}

    def call(self, call: Call) -> tuple[float, float]:
        return self._of(call)

    def piece(self, piece: Piece) -> tuple[float, float]:
        return self._of(piece)

    def _of(self, thing: Call | Piece) -> tuple[float, float]:
        return self._steps[id(thing), 0], self._steps[id(thing), 1]


class _Tracks:
    """The tracks: one process for the host, with its threads, and one per device, with its streams."""

    def __init__(self, is_timed: bool) -> None:
        self._is_timed = is_timed
        self._threads: dict[threading.Thread, int] = {}
        self._streams: dict[tuple[int, int], int] = {}

    def thread(self, thread: threading.Thread) -> dict[str, int]:
        """Return the track of a thread."""
        return {"pid": _HOST, "tid": self._threads.setdefault(thread, len(self._threads) + 1)}

    def stream(self, piece: Piece) -> dict[str, int]:
        """Return the track of a piece's stream."""
        key = piece.device, piece.work.stream
        return {"pid": _FIRST_DEVICE + piece.device, "tid": self._streams.setdefault(key, len(self._streams) + 1)}

    def names(self) -> Iterator[Event]:
        """Yield the events that name the tracks."""
        label = "" if self._is_timed else f" ({_ORDER})"
        yield _named("process_name", _HOST, 0, f"Host{label}")
        for thread, track in self._threads.items():
            yield _named("thread_name", _HOST, track, thread.name)
        for device in sorted({device for device, _ in self._streams}):
            yield _named("process_name", _FIRST_DEVICE + device, 0, f"Device {device}{label}: {Device(device).name}")
        for (device, stream), track in self._streams.items():
            name = _NAMES_OF_STREAMS.get(stream, f"stream {stream:#x}")
            yield _named("thread_name", _FIRST_DEVICE + device, track, name)


def _named(kind: str, process: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "ts": 0, "pid": process, "tid": track, "args": {"name": name}}


def _call(call: Call, tracks: _Tracks, clock: _Microseconds | _Steps) -> Iterator[Event]:
    begin, end = clock.call(call)
    event = {"name": call.name, "cat": call.category, **tracks.thread(call.thread)}
    if call.category == "nvtx":
        yield {**event, "ph": "B", "ts": begin}
        yield {**event, "ph": "E", "ts": end}
    else:
        yield {**event, "ph": "X", "ts": begin, "dur": end - begin}


def _piece(piece: Piece, tracks: _Tracks, clock: _Microseconds | _Steps, ids: Iterator[int]) -> Iterator[Event]:
    begin, end = clock.piece(piece)
    work, track = piece.work, tracks.stream(piece)
    yield {
        "name": work.name,
        "cat": work.category,
        "ph": "X",
        "ts": begin,
        "dur": end - begin,
        **track,
        "args": work.facts,
    }
    arrows = [("launch", tracks.thread(piece.call.thread), clock.call(piece.call)[0])]
    # A wait for another stream: an arrow from the last work before the event to the first work after the wait.
    arrows += [("wait", tracks.stream(before), clock.piece(before)[0]) for before in piece.after if before.times]
    for name, source, when in arrows:
        arrow = {"name": name, "cat": name, "id": next(ids)}
        yield {**arrow, "ph": "s", "ts": when, **source}
        yield {**arrow, "ph": "f", "bp": "e", "ts": max(begin, when), **track}


def _place(event: Event) -> tuple[float, int, float]:
    """Return the key by which events are sorted; of those that begin together, the longest comes first."""
    return event["ts"], _PHASES.index(event["ph"]), -event.get("dur", 0)
