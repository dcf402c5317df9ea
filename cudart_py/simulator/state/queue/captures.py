"""Captures: streams whose operations become a graph's nodes instead of work.

The streams of a capture are its origin, which began it, and the streams that have waited for its events. An operation
that the driver can't capture invalidates the capture: until it is ended, every call in it returns
CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUresult, CUstreamCaptureMode

from ..errors import StatusError
from .graphs import Graph, Node

if TYPE_CHECKING:
    from ..contexts import Context
    from .operations import Operation
    from .stream import Stream

GLOBAL = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL.value
RELAXED = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED.value

_identities = itertools.count(1)


class _CaptureModes(threading.local):
    """The capture mode of each thread, which cuThreadExchangeStreamCaptureMode changes."""

    def __init__(self) -> None:
        self.mode: int = GLOBAL


of_thread = _CaptureModes()


class Capture:
    """A capture in progress: its graph and, for each stream, the nodes on which the stream's next node depends.

    It creates a graph, or adds nodes to the caller's graph after the nodes `before`.
    """

    def __init__(self, origin: Stream, mode: int, graph: Graph | None = None, before: tuple[Node, ...] = ()) -> None:
        self.origin = origin
        self.mode = mode
        self.thread = threading.get_ident()
        self.identity = next(_identities)
        self.graph = Graph() if graph is None else graph
        self._earlier = frozenset(self.graph.nodes)
        self.streams: dict[Stream, tuple[Node, ...]] = {origin: before}
        self.active = True
        self.invalid = False
        origin.capture = self
        active.append(self)

    def require_valid(self) -> None:
        """Raise CUDA_ERROR_STREAM_CAPTURE_INVALIDATED if the capture has been invalidated."""
        if self.invalid:
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)

    def invalidate(self) -> None:
        """Mark the capture as invalidated until it ends."""
        self.invalid = True

    def add(self, stream: Stream, operation: Operation | None) -> None:
        """Add a node for an operation that is submitted to one of the streams."""
        self.require_valid()
        if operation is None:
            return
        try:
            node = self.graph.add(operation, self.streams[stream])
        except StatusError:
            self.invalidate()
            raise
        self.streams[stream] = (node,)

    def record(self, stream: Stream) -> tuple[Capture, tuple[Node, ...]]:
        """Return this capture, and the nodes on which a wait for an event recorded in the stream now would depend."""
        self.require_valid()
        return self, self.streams[stream]

    def join(self, stream: Stream, nodes: tuple[Node, ...]) -> None:
        """Make a stream wait for nodes, which adds the stream to the capture."""
        self.require_valid()
        if stream.capture is None:
            if stream.is_legacy:
                self.invalidate()
                raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
            stream.capture = self
            self.streams[stream] = nodes
        elif stream.capture is self:
            self.streams[stream] = tuple(dict.fromkeys((*self.streams[stream], *nodes)))
        else:
            self.invalidate()
            stream.capture.invalidate()
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE)

    def blocks_legacy(self, context: Context) -> bool:
        """Return whether the context's legacy stream would have to wait for one of the capture's streams."""
        return any(stream.blocking and stream.context is context for stream in self.streams)

    def joined(self) -> bool:
        """Return whether all captured work has been joined to the origin stream."""
        reached: set[Node] = set()
        waiting = list(self.streams[self.origin])
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting.extend(node.dependencies)
        return reached.issuperset(node for node in self.graph.nodes if node not in self._earlier)

    def discard(self) -> None:
        """Destroy the graph and undo the effects of the capture; an H200's driver destroys the caller's graph too."""
        self.graph.destroy()

    def leave(self, stream: Stream) -> None:
        """Release a stream that is destroyed: the capture ends with its origin, but continues without other streams."""
        if stream is self.origin:
            self.end()
            self.discard()
            return
        del self.streams[stream]
        stream.capture = None

    def end(self) -> None:
        """Release the streams; an interrupt in between leaves a capture that can be ended again."""
        self.active = False
        if self in active:
            active.remove(self)
        for stream in reversed(self.streams):  # the origin last, because the capture is found through it
            stream.capture = None


# The captures in progress, of all threads.
active: list[Capture] = []


def is_captured(graph: Graph) -> bool:
    """Return whether work is being captured into a graph."""
    return any(capture.graph is graph for capture in active)


def end_captures(context: Context) -> None:
    """End the captures that streams of a context began, and discard their graphs."""
    ended = [capture for capture in active if capture.origin.context is context]
    for capture in ended:
        capture.end()
        capture.discard()


def refuse_unsafe() -> None:
    """Invalidate the captures that forbid unsafe calls; if any, raise CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED."""
    mode = of_thread.mode
    if not active or mode == RELAXED:
        return
    thread = threading.get_ident()
    forbid = [
        capture
        for capture in active
        if (capture.thread == thread and capture.mode != RELAXED) or (mode == GLOBAL and capture.mode == GLOBAL)
    ]
    _invalidate(forbid, CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)


def refuse_all(context: Context) -> None:
    """Invalidate a context's captures of any mode; if any, raise CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED."""
    of_context = [capture for capture in active if capture.origin.context is context]
    _invalidate(of_context, CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)


def refuse_implicit(stream: Stream) -> None:
    """Raise CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream if it would have to wait for a captured stream."""
    if stream.is_legacy:
        blocked = [capture for capture in active if capture.blocks_legacy(stream.context)]
        _invalidate(blocked, CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)


def _invalidate(captures: list[Capture], status: CUresult) -> None:
    """Invalidate some captures, and raise a status if there are any."""
    for capture in captures:
        capture.invalidate()
    if captures:
        raise StatusError(status)
