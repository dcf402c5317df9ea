"""Events: marks in streams, whose times are wall-clock times of the simulation and not of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUevent,
    CUevent_flags,
    CUevent_record_flags,
    CUevent_wait_flags,
    CUgraphNodeType,
    CUresult,
)

from ...state.arguments import number
from ...state.contexts import current, find_context
from ...state.errors import StatusError
from ...state.handles import Handles
from ...state.queue import captures
from ...state.queue.operations import Operation
from ...state.queue.runner import runner
from ...state.queue.scheduling import complete, enqueue, mark_all, refuse_broken, run_at_once, step
from ...state.queue.stream import Stream
from ...state.queue.work import Work, hear
from ...state.streams import find_stream
from ..entry import entry

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.queue.captures import Capture
    from ...state.queue.graphs import Node

_FLAGS = (
    CUevent_flags.CU_EVENT_BLOCKING_SYNC.value
    | CUevent_flags.CU_EVENT_DISABLE_TIMING.value
    | CUevent_flags.CU_EVENT_INTERPROCESS.value
)
_DISABLE_TIMING = CUevent_flags.CU_EVENT_DISABLE_TIMING.value
_INTERPROCESS = CUevent_flags.CU_EVENT_INTERPROCESS.value


class Event:
    """An event and the piece of work that its last record left in a stream."""

    __slots__ = ("captured", "context", "flags", "handle", "mark")

    def __init__(self, context: Context, flags: int) -> None:
        self.handle = events.add(self)
        self.context = context
        self.flags = flags
        self.mark: Work | None = None
        # The capture that recorded it, and the nodes on which a wait for it depends.
        self.captured: tuple[Capture, tuple[Node, ...]] | None = None


class RecordEvent(Operation):
    """The record of an event inside a graph."""

    __slots__ = ("event",)

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD

    def __init__(self, event: Event) -> None:
        self.event = event

    def note_launched(self, launch: Work) -> None:
        """Make calls and other work that wait for the event wait for the whole launch, until the record has run."""
        self.event.mark = launch
        self.event.captured = None

    def run(self, context: Context) -> None:
        """Set the event's mark now, unless the event was recorded again after the launch."""
        if runner.piece is not None and self.event.mark is runner.piece.work:
            mark = Work(context, None, (runner.piece.work,), -1)
            context.pending += 1
            mark.run()
            self.event.mark = mark


class WaitForEvent(Operation):
    """A wait for an event inside a graph, which orders the whole launch after the event's last record before it."""

    __slots__ = ("event",)

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT

    def __init__(self, event: Event) -> None:
        self.event = event

    def run(self, context: Context) -> None:
        """Do nothing, because the launch has already waited."""


events: Handles[Event] = Handles()


def find_event(handle: Any) -> Event:
    """Return the event that a handle refers to, or raise the status that the driver returns for an invalid handle."""
    event = events.find(handle)
    if event.context.sticky is not None:
        raise StatusError(event.context.sticky)
    return event


@entry(values=1)
def cuEventCreate(Flags: Any) -> Any:
    """Create an event (cuEventCreate)."""
    context = current()
    flags = number(Flags)
    if flags & ~_FLAGS or (flags & _INTERPROCESS and not flags & _DISABLE_TIMING):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUevent(Event(context, flags).handle)


@entry(frees=True)
def cuEventDestroy(hEvent: Any) -> None:
    """Destroy an event; work that waits for its mark still waits (cuEventDestroy)."""
    event = events.find(hEvent)
    events.remove(int(hEvent))
    if event.context.sticky is not None:
        raise StatusError(event.context.sticky)


@entry()
def cuEventRecord(hEvent: Any, hStream: Any) -> None:
    """Record an event in a stream (cuEventRecord)."""
    _record(find_event(hEvent), find_stream(hStream))


@entry()
def cuEventRecordWithFlags(hEvent: Any, hStream: Any, flags: Any) -> None:
    """Record an event in a stream; external records become graph nodes (cuEventRecordWithFlags)."""
    value = number(flags)
    if value & ~CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    event, stream = find_event(hEvent), find_stream(hStream)
    if value:
        if stream.capture is None:
            raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
        stream.capture.add(stream, RecordEvent(event))
        return
    _record(event, stream)


def _record(event: Event, stream: Stream) -> None:
    if event.context is not stream.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    if captures.active:
        if stream.capture is not None:
            event.captured = stream.capture.record(stream)
            return
        captures.refuse_implicit(stream)
    event.captured = None
    set_mark(event, enqueue(stream, None))


def set_mark(event: Event, mark: Work) -> None:
    """Set the piece of work that an event marks."""
    event.mark = mark
    if event.flags & _INTERPROCESS:
        # Another process may wait for it while this one does nothing.
        run_at_once(mark)


@entry()
def cuCtxRecordEvent(hCtx: Any, hEvent: Any) -> None:
    """Record an event after all work that a context has queued, in any of its streams (cuCtxRecordEvent)."""
    context, event = find_context(hCtx), find_event(hEvent)
    if event.context is not context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    captures.refuse_all(context)
    event.captured = None
    set_mark(event, mark_all(context))


@entry()
def cuCtxWaitEvent(hCtx: Any, hEvent: Any) -> None:
    """Make all later work of a context wait for an event's last record (cuCtxWaitEvent)."""
    context, event = find_context(hCtx), find_event(hEvent)
    if context.sticky is not None:
        raise StatusError(context.sticky)
    captured = event.captured
    if captured is not None:
        captured[0].invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    captures.refuse_all(context)
    if event.mark is not None and not event.mark.heard:
        context.gates.append(event.mark)


@entry()
def cuStreamWaitEvent(hStream: Any, hEvent: Any, Flags: Any) -> None:
    """Make a stream's later work wait for an event's last record; external waits become nodes (cuStreamWaitEvent)."""
    stream, event, flags = find_stream(hStream), find_event(hEvent), number(Flags)
    if flags & ~CUevent_wait_flags.CU_EVENT_WAIT_EXTERNAL.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if flags:
        if stream.capture is None:
            raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
        stream.capture.add(stream, WaitForEvent(event))
        return
    captured = event.captured
    if captured is not None:
        if not captured[0].active:
            raise StatusError(CUresult.CUDA_ERROR_CAPTURED_EVENT)
        captured[0].join(stream, captured[1])
        return
    if captures.active:
        if stream.capture is not None:
            stream.capture.require_valid()
            if event.mark is None:
                return
            # A wait for an event outside the graph can't become a part of the graph.
            stream.capture.invalidate()
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
        captures.refuse_implicit(stream)
    mark = event.mark
    if mark is not None and not mark.heard:
        enqueue(stream, None, mark)


def _refuse_captured(event: Event) -> None:
    # Its mark is a position in a graph, which may be reached any number of times.
    if event.captured is not None:
        event.captured[0].invalidate()
        raise StatusError(CUresult.CUDA_ERROR_CAPTURED_EVENT)


@entry()
def cuEventSynchronize(hEvent: Any) -> None:
    """Run all work before the event's last record (cuEventSynchronize)."""
    event = find_event(hEvent)
    _refuse_captured(event)
    captures.refuse_unsafe()
    complete(event.mark)
    event.context.raise_failure()


@entry()
def cuEventQuery(hEvent: Any) -> None:
    """Run one piece of work; CUDA_ERROR_NOT_READY until the event's mark is reached (cuEventQuery)."""
    event = find_event(hEvent)
    _refuse_captured(event)
    captures.refuse_unsafe()
    if not step(event.mark):
        raise StatusError(CUresult.CUDA_ERROR_NOT_READY)
    event.context.raise_failure()


@entry(values=1)
def cuEventElapsedTime(hStart: Any, hEnd: Any) -> float:
    """Return the wall-clock time in milliseconds between two events' marks (cuEventElapsedTime)."""
    start, end = find_event(hStart), find_event(hEnd)
    if start.captured is not None or end.captured is not None:
        raise StatusError(CUresult.CUDA_ERROR_CAPTURED_EVENT)
    if start.context is not end.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    if (start.flags | end.flags) & _DISABLE_TIMING or start.mark is None or end.mark is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    refuse_broken(start.mark)
    refuse_broken(end.mark)
    if not (start.mark.done and end.mark.done):
        raise StatusError(CUresult.CUDA_ERROR_NOT_READY)
    hear(start.mark, end.mark)
    return (end.mark.time - start.mark.time) / 1e6


@entry(values=1)
def host_time(hEvent: Any) -> int:
    """Return the time at an event's mark in nanoseconds of `time.perf_counter_ns`.

    Work that ran before a fault still has its times.
    """
    event = events.find(hEvent)
    if event.mark is None or not event.mark.done or not event.mark.time:
        raise StatusError(CUresult.CUDA_ERROR_NOT_READY)
    return event.mark.time


def end_context(context: Context) -> None:
    """Forget the events of a context."""
    events.remove_all(lambda event: event.context is context)
