"""Stream capture: beginning, querying and ending it."""

from __future__ import annotations

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

from ...state.arguments import number
from ...state.errors import StatusError
from ...state.queue import captures
from ...state.queue.captures import Capture
from ...state.queue.graphs import find_graph, find_node, find_nodes
from ...state.streams import find_stream
from ..entry import entry

if TYPE_CHECKING:
    from ...state.queue.stream import Stream

_STATUS = CUstreamCaptureStatus


def _mode(mode: Any) -> int:
    value = number(mode)
    if not captures.GLOBAL <= value <= captures.RELAXED:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return value


@entry()
def cuStreamBeginCapture(hStream: Any, mode: Any) -> None:
    """Begin to capture the work submitted to a stream (cuStreamBeginCapture)."""
    stream = _free_stream(hStream)
    Capture(stream, _mode(mode))


@entry()
def cuStreamBeginCaptureToGraph(
    hStream: Any, hGraph: Any, dependencies: Any, dependencyData: Any, numDependencies: Any, mode: Any
) -> None:
    """Begin to capture a stream's work into a graph, after some of its nodes (cuStreamBeginCaptureToGraph)."""
    stream, graph = _free_stream(hStream), find_graph(hGraph)
    if captures.is_captured(graph):
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    before = find_nodes(graph, dependencies, numDependencies)
    Capture(stream, _mode(mode), graph, tuple(before))


def _free_stream(hStream: Any) -> Stream:
    """Return a stream on which a capture may begin, or raise the status that the driver returns for others."""
    stream = find_stream(hStream)
    captures.refuse_implicit(stream)
    if stream.is_legacy:
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    if stream.capture is not None:
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    return stream


@entry(values=1)
def cuStreamEndCapture(hStream: Any) -> Any:
    """End a capture and return its graph (cuStreamEndCapture)."""
    stream = find_stream(hStream)
    capture = stream.capture
    if capture is None:
        captures.refuse_implicit(stream)
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    if stream is not capture.origin:
        capture.invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
    capture.end()
    if capture.mode != captures.RELAXED and capture.thread != threading.get_ident():
        # An H200's driver nevertheless ends the capture, without returning its graph.
        capture.discard()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    if capture.invalid:
        capture.discard()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    if not capture.joined():
        capture.discard()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    return CUgraph(capture.graph.handle)


def _status(stream: Stream) -> Any:
    """Return a stream's status; raise CUDA_ERROR_STREAM_CAPTURE_IMPLICIT if captures forbid using the legacy stream."""
    capture = stream.capture
    if capture is None:
        if stream.is_legacy and any(other.blocks_legacy(stream.context) for other in captures.active):
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return _STATUS.CU_STREAM_CAPTURE_STATUS_NONE
    if capture.invalid:
        return _STATUS.CU_STREAM_CAPTURE_STATUS_INVALIDATED
    return _STATUS.CU_STREAM_CAPTURE_STATUS_ACTIVE


@entry(values=1)
def cuStreamIsCapturing(hStream: Any) -> Any:
    """Return whether a stream is being captured (cuStreamIsCapturing)."""
    return _status(find_stream(hStream))


@entry(values=6)
def cuStreamGetCaptureInfo(hStream: Any) -> tuple[Any, ...]:
    """Return a capture's status, id, graph and the next node's dependencies (cuStreamGetCaptureInfo)."""
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
    """Set, or add to, the dependencies of a captured stream's next node (cuStreamUpdateCaptureDependencies)."""
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
    """Set the thread's mode for unsafe calls and return the previous one (cuThreadExchangeStreamCaptureMode)."""
    before = captures.of_thread.mode
    captures.of_thread.mode = _mode(mode)
    return CUstreamCaptureMode(before)
