"""Capture: what streams are given becomes a graph's nodes instead of work.

The streams of a capture are the one that began it and those that have waited for its events. What the driver can't
capture spoils it: everything answers CUDA_ERROR_STREAM_CAPTURE_INVALIDATED then, until it is ended.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUresult,
    CUstreamCaptureMode,
    CUstreamCaptureStatus,
    cuuint64_t,
)

from . import work
from .contexts import local
from .errors import StatusError, entry, number
from .graphs import Graph, Node, find_node
from .streams import find_stream

if TYPE_CHECKING:
    from .contexts import Context
    from .work import Operation, Stream

__all__ = [
    "Capture",
    "cuStreamBeginCapture",
    "cuStreamEndCapture",
    "cuStreamGetCaptureInfo",
    "cuStreamIsCapturing",
    "cuStreamUpdateCaptureDependencies",
    "cuThreadExchangeStreamCaptureMode",
    "forbidding",
]

_identities = itertools.count(1)
_GLOBAL = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL.value
_RELAXED = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED.value
_STATUS = CUstreamCaptureStatus


class Capture:
    """A capture under way: its graph, and for each stream the nodes that its next one comes after."""

    def __init__(self, origin: Stream, mode: int) -> None:
        self.origin = origin
        self.mode = mode
        self.thread = threading.get_ident()
        self.identity = next(_identities)
        self.graph = Graph()
        self.streams: dict[Stream, tuple[Node, ...]] = {origin: ()}
        self.active = True
        self.invalid = False
        origin.capture = self
        work.captures.append(self)

    def require_valid(self) -> None:
        """Raise CUDA_ERROR_STREAM_CAPTURE_INVALIDATED once something has spoiled the capture."""
        if self.invalid:
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)

    def invalidate(self) -> None:
        """Spoil the capture."""
        self.invalid = True

    def add(self, stream: Stream, operation: Operation | None) -> None:
        """Make a node of an operation that one of the streams is given."""
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
        """Return what a wait for an event that is recorded here comes after."""
        self.require_valid()
        return self, self.streams[stream]

    def join(self, stream: Stream, nodes: tuple[Node, ...]) -> None:
        """Let a stream wait for nodes, which takes it into the capture."""
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
        """Tell whether the context's legacy stream would have to wait for one of the streams."""
        return any(stream.blocking and stream.context is context for stream in self.streams)

    def joined(self) -> bool:
        """Tell whether all that was captured comes before the first stream's end."""
        reached: set[Node] = set()
        waiting = list(self.streams[self.origin])
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting.extend(node.dependencies)
        return reached.issuperset(self.graph.nodes)

    def leave(self, stream: Stream) -> None:
        """Let a stream go that is destroyed: the capture ends with its first stream, and goes on without another."""
        if stream is self.origin:
            self.end()
            self.graph.discard()
            return
        del self.streams[stream]
        stream.capture = None

    def end(self) -> None:
        """Let the streams go; an interrupt in between leaves a capture that can be ended again."""
        self.active = False
        if self in work.captures:
            work.captures.remove(self)
        for stream in reversed(self.streams):  # the first one last, by which the capture is found
            stream.capture = None


def forbidding() -> list[Capture]:
    """Return the captures because of which the calling thread may make no unsafe calls."""
    mode = local.capture_mode
    if mode == _RELAXED:
        return []
    thread = threading.get_ident()
    return [
        capture
        for capture in work.captures
        if (capture.thread == thread and capture.mode != _RELAXED) or (mode == _GLOBAL and capture.mode == _GLOBAL)
    ]


def _mode(mode: Any) -> int:
    value = number(mode)
    if not _GLOBAL <= value <= _RELAXED:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return value


@entry()
def cuStreamBeginCapture(hStream: Any, mode: Any) -> None:
    """Begin to capture what a stream is given, as cuStreamBeginCapture."""
    stream = find_stream(hStream)
    chosen = _mode(mode)
    if stream.is_legacy:
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    if stream.capture is not None:
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    Capture(stream, chosen)


@entry(values=1)
def cuStreamEndCapture(hStream: Any) -> Any:
    """End a capture and return its graph, as cuStreamEndCapture."""
    stream = find_stream(hStream)
    capture = stream.capture
    if capture is None:
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    if stream is not capture.origin:
        capture.invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
    capture.end()
    if capture.mode != _RELAXED and capture.thread != threading.get_ident():
        # An H200's driver ends the capture all the same, and nobody gets its graph.
        capture.graph.discard()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    if capture.invalid:
        capture.graph.discard()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    if not capture.joined():
        capture.graph.discard()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    return CUgraph(capture.graph.handle)


def _status(stream: Stream) -> Any:
    capture = stream.capture
    if capture is None:
        if stream.is_legacy and any(other.blocks_legacy(stream.context) for other in work.captures):
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return _STATUS.CU_STREAM_CAPTURE_STATUS_NONE
    if capture.invalid:
        return _STATUS.CU_STREAM_CAPTURE_STATUS_INVALIDATED
    return _STATUS.CU_STREAM_CAPTURE_STATUS_ACTIVE


@entry(values=1)
def cuStreamIsCapturing(hStream: Any) -> Any:
    """Return whether a stream is being captured, as cuStreamIsCapturing."""
    return _status(find_stream(hStream))


@entry(values=6)
def cuStreamGetCaptureInfo(hStream: Any) -> tuple[Any, ...]:
    """Return a capture's state, number, graph and what comes before the next node, as cuStreamGetCaptureInfo."""
    stream = find_stream(hStream)
    status = _status(stream)
    capture = stream.capture
    if capture is None or capture.invalid:
        return status, cuuint64_t(0), CUgraph(), [], [], 0
    before = [CUgraphNode(node.handle) for node in capture.streams[stream]]
    data = [CUgraphEdgeData() for _ in before]
    return status, cuuint64_t(capture.identity), CUgraph(capture.graph.handle), before, data, len(before)


@entry()
def cuStreamUpdateCaptureDependencies(
    hStream: Any, dependencies: Any, dependencyData: Any, numDependencies: Any, flags: Any
) -> None:
    """Say what a captured stream's next node comes after, instead or besides, as cuStreamUpdateCaptureDependencies."""
    stream = find_stream(hStream)
    capture = stream.capture
    if capture is None:
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    capture.require_valid()
    given = [find_node(node) for node in (dependencies or [])[: number(numDependencies)]]
    if any(node not in capture.graph.nodes for node in given) or number(flags) not in (0, 1):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    before = () if number(flags) else capture.streams[stream]
    capture.streams[stream] = tuple(dict.fromkeys((*before, *given)))


@entry(values=1)
def cuThreadExchangeStreamCaptureMode(mode: Any) -> Any:
    """Set how unsafe calls go with captures; return the mode before, as cuThreadExchangeStreamCaptureMode."""
    before = local.capture_mode
    local.capture_mode = _mode(mode)
    return CUstreamCaptureMode(before)
