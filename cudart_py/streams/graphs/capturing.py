"""Captures of streams: the blocks that record a stream's work into a graph, and graphs as parts of such graphs."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ... import errors
from ...base import arguments
from ...context.capture import LEGACY, Capture, find
from ...context.current import activated
from ...context.lifetimes import finalize
from ...driver import enums
from ...driver.unwrap import failure
from .graph import Graph
from .graph_base import check_graph
from .nodes import add_child_graph

if TYPE_CHECKING:
    from ..stream import Stream

_MODES = ("global", "thread_local", "relaxed")


def add_graph(stream: Stream, graph: Graph) -> None:
    """Add a copy of a graph to the graph that the stream records into; see `Stream.add_graph`."""
    call = "Stream.add_graph"
    check_graph(call, graph)
    capture = find(stream.handle)
    if capture is None:
        raise errors.CaptureError(f"{call}: the stream is not being captured; call graph.instantiate().launch(stream)")
    if graph.device is not stream.device:
        rule = f"be on device {stream.device.ordinal}, like the stream"
        raise arguments.unusable(call, "graph", rule, f"captured on device {graph.device.ordinal}")
    with activated(graph.device):
        node = add_child_graph(stream, graph)
    for retained in graph._retained:
        capture.retained.append(retained._replace(node=node))


class Capturing:
    """The result of `stream.capture()`: captures work inside its `with` block and produces the graph at the end.

    The capture ends however the block is left, even by an interrupt, or when a generator is dropped in the middle of
    the block.
    """

    __slots__ = ("_capture", "_graph", "_mode", "_stream")

    def __init__(self, stream: Stream, mode: str) -> None:
        self._capture: Capture | None = None
        self._graph: Graph | None = None
        self._stream = stream
        arguments.choice("Stream.capture", "mode", mode, _MODES)
        self._mode = mode

    def __repr__(self) -> str:
        return f"<Capturing of {self._stream!r}>"

    def __enter__(self) -> Graph:
        stream = self._stream
        if stream.handle == LEGACY:
            raise errors.CaptureError("the legacy default stream cannot be captured; use a cudart_py.Stream")
        if self._capture is not None or find(stream.handle) is not None:
            raise errors.CaptureError("the stream is already being captured")
        device = stream.device
        mode = getattr(enums.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{self._mode.upper()}")
        graph = self._graph = Graph._recorded(device)
        self._capture = Capture(stream.handle, device)
        try:
            self._capture.begin(mode)
        except BaseException:  # also an interrupt after the driver's call
            self._drop()
            raise
        return graph

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        capture, graph = self._capture, self._graph
        if capture is None or graph is None:
            raise errors.CaptureError("this capture has not begun or has already ended")
        if capture.ended:
            self._drop()
            if kind is None:
                raise errors.CaptureError("the stream was closed while it was being captured, so no graph was produced")
            return
        try:
            status, made = capture.finish()
            if not status:
                retained = tuple(one.without_temporaries() for one in capture.retained)
                graph._retained, graph._value = retained, int(made)
                graph._conditions = tuple(capture.conditions)
        except BaseException:  # an interrupt
            self._drop()
            raise
        self._drop()
        if capture.body_lost:
            graph._owned = False
        if kind is not None or capture.body_lost:
            graph.close()
        if kind is None and capture.body_lost:
            raise errors.CaptureError("the body of a conditional node could not be captured, so no graph was produced")
        if kind is None and status:
            raise failure(status, "cuStreamEndCapture")

    def _drop(self) -> None:
        """Drop the graph and the capture, ending the capture if it has not ended."""
        capture, graph = self._capture, self._graph
        if graph is not None:
            graph._capturing = False
        if capture is not None:
            capture.close()
            for condition in capture.conditions:
                condition._release()
        self._capture = self._graph = None

    def __del__(self, _finalize: Callable[[Any], None] = finalize) -> None:
        # A caller that called `__enter__` without `with`, or was interrupted before the block, leaves the end to the
        # garbage collector. An interrupt may even have come before the constructor's first line.
        graph, capture = getattr(self, "_graph", None), getattr(self, "_capture", None)
        if graph is not None:
            graph._capturing = False
        if capture is not None:
            _finalize(capture.close)
