"""Graphs: work captured from streams, and its executable form that is launched again and again."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import arguments, debugging, errors
from ._driver import api, raw
from ._lifetime import Handle, closes, finalize
from .capture import Capture, Held, captures, find, hold
from .device import Device, activated
from .device import _thread as this_thread
from .stream import Stream, legacy_default, stream_handle

__all__ = ["Capturing", "ExecutableGraph", "Graph"]

_MODES = ("global", "thread_local", "relaxed")
_debug = debugging.state


class Graph(Handle):
    """Work and the order among it, captured by `with stream.capture() as graph:` (CUgraph).

    It keeps alive what the work uses. It has a handle from the end of its block on.
    """

    __slots__ = ("_capturing", "_device", "_held")

    def __init__(self, device: Device) -> None:
        self._value = None
        self._owned = True
        self._device = arguments.instance("Graph", "device", device, Device)
        self._held: tuple[Held, ...] = ()
        self._capturing = True

    @property
    def handle(self) -> int:
        """The CUgraph as an int; ValueError before its capture has ended and when closed."""
        if self._capturing:
            raise ValueError("this Graph is still being captured: use it behind the `with` block")
        return super().handle

    @property
    def device(self) -> Device:
        """The device of the stream that was captured."""
        return self._device

    @property
    def node_count(self) -> int:
        """The number of nodes: kernels, copies, fills, host functions (cuGraphGetNodes)."""
        return int(api.cuGraphGetNodes(self.handle, 0)[1])

    def dot(self, *, verbose: bool = False) -> str:
        """Return the graph in the language of Graphviz, with all parameters if `verbose` (cuGraphDebugDotPrint)."""
        import tempfile  # a dozen modules come with it, so that it is left until here

        verbose = arguments.flag("Graph.dot", "verbose", verbose)
        from cuda.bindings import driver as enums

        flags = int(enums.CUgraphDebugDot_flags.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE) if verbose else 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.dot")
            api.cuGraphDebugDotPrint(self.handle, path.encode(), flags)
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()

    def instantiate(self) -> ExecutableGraph:
        """Make the graph executable, as it is now (cuGraphInstantiate)."""
        return ExecutableGraph(self)

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphDestroy(value)

    def __repr__(self) -> str:
        if self._capturing:
            return "<Graph being captured>"
        return f"<Graph {'closed' if self.closed else f'of {self.node_count} nodes'}>"


def _check_graph(call: str, graph: Any) -> None:
    """Check the argument `graph` of a call; one that is still being captured says so by its handle."""
    arguments.instance(call, "graph", graph, Graph)
    if not graph._capturing:
        arguments.opened(call, "graph", graph, Graph)


class Capturing:
    """What `stream.capture()` returns: captures inside its `with` block, and has the graph at its end.

    However the block is left, the capture ends: an interrupt between two steps and a block that is dropped half-way,
    such as a generator's, are no exceptions.
    """

    __slots__ = ("_capture", "_graph", "_mode", "_stream")

    def __init__(self, stream: Stream, mode: str) -> None:
        self._capture: Capture | None = None
        self._graph: Graph | None = None
        self._stream = stream
        arguments.choice("Stream.capture", "mode", mode, _MODES)
        self._mode = mode

    def __enter__(self) -> Graph:
        from cuda.bindings import driver as enums

        stream = self._stream
        if stream.handle == legacy_default.handle:
            raise errors.CaptureError("the legacy default stream cannot be captured; make a Stream")
        if self._capture is not None or find(stream.handle) is not None:
            raise errors.CaptureError("the stream is being captured already")
        device = stream.device
        mode = getattr(enums.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{self._mode.upper()}")
        graph = self._graph = Graph(device)
        self._capture = Capture(stream.handle, device)
        try:
            self._capture.begin(mode)
        except BaseException:  # also an interrupt behind the driver's call
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
            raise errors.CaptureError("this capture has not begun, or has ended")
        if capture.ended:
            self._drop()
            if kind is None:
                raise errors.CaptureError("the stream was closed while it was captured: there is no graph")
            return
        try:
            status, made = capture.finish()
            if not status:
                graph._held, graph._value = tuple(capture.held), int(made)
        except BaseException:  # an interrupt
            self._drop()
            raise
        self._drop()
        if kind is not None:
            graph.close()
        elif status:
            raise errors.failure(status, "cuStreamEndCapture")

    def _drop(self) -> None:
        """Let the graph go, and the capture, which ends if it has not."""
        capture, graph = self._capture, self._graph
        if graph is not None:
            graph._capturing = False
        if capture is not None:
            capture.close()
        self._capture = self._graph = None

    def __del__(self, _finalize: Callable[[Any], None] = finalize) -> None:
        # Whoever entered without `with`, or was interrupted before the block, left it to the collector.
        if self._graph is not None:
            self._graph._capturing = False
        if self._capture is not None:
            _finalize(self._capture)


class ExecutableGraph(Handle):
    """A graph that can be launched (CUgraphExec). It keeps alive what its work uses.

    An array that is closed by hand is a ValueError at the next launch.
    """

    __slots__ = ("_checked", "_device", "_held", "_native", "_nodes", "_record")

    def __init__(self, graph: Graph) -> None:
        self._value = None
        self._owned = True
        _check_graph("ExecutableGraph", graph)
        self._device = graph.device
        self._nodes = graph.node_count
        self._held = graph._held
        self._checked: object = None
        self._record = debugging.GraphRecord(graph.device.ordinal, legacy_default.handle, self._nodes)
        with activated(graph.device):
            self._native = api.cuGraphInstantiate(graph.handle, 0)
        self._value = int(self._native)

    @property
    def device(self) -> Device:
        """The device that it runs on."""
        return self._device

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return self._nodes

    def launch(self, stream: Stream | None = None) -> None:
        """Run the graph in a stream, by default the legacy one, after its earlier launches (cuGraphLaunch).

        Returns at once.
        """
        stream = legacy_default if stream is None else stream
        try:
            native = stream._queue
        except AttributeError:
            stream_handle("ExecutableGraph.launch", stream)  # raises for what is no stream
            raise
        if self._checked is not closes.latest:
            self._check()
        if native is None:
            stream_handle("ExecutableGraph.launch", stream)
            native = stream.native
        if this_thread.device is self._device and (stream._device is None or stream._device is self._device):
            (status,) = raw.cuGraphLaunch(self._native, native)
        else:
            status = self._launch_elsewhere(stream)
        if self._record.stream != stream._value:
            self._record = self._record._replace(stream=stream._value)
        if status or _debug.last is not self._record:
            self._settle(status, stream)

    def _check(self) -> None:
        """Check that nothing that the graph uses was closed; needed only after something was."""
        latest = closes.latest
        self.handle  # noqa: B018  # raises when closed
        for held in self._held:
            held.check()
        self._checked = latest

    def _launch_elsewhere(self, stream: Stream) -> Any:
        stream_handle("ExecutableGraph.launch", stream)
        self._check_device(stream)
        with activated(self._device):
            (status,) = raw.cuGraphLaunch(self._native, stream.native)
        return status

    def _check_device(self, stream: Stream) -> None:
        if stream._device is not None and stream._device is not self._device:
            raise ValueError(
                f"the graph was captured on device {self._device.ordinal}, and the stream belongs to "
                f"device {stream._device.ordinal}"
            )

    def _settle(self, status: Any, stream: Stream) -> None:
        if status:
            raise errors.failure(status, "cuGraphLaunch", f"The launch was {self._record}")
        if captures and hold(stream.handle, "a graph", (self,)):
            return
        debugging.note_launched(self._record)
        if _debug.enabled:
            debugging.wait_for(self._record, self._device)
        # What another thread began meanwhile must be seen at the next launch.
        if captures or _debug.enabled:
            _debug.last = None

    def upload(self, stream: Stream | None = None) -> None:
        """Prepare the first launch in a stream, so that it costs no more than later ones (cuGraphUpload)."""
        stream_handle("ExecutableGraph.upload", stream)
        stream = legacy_default if stream is None else stream
        self._check_device(stream)
        with activated(self._device):
            api.cuGraphUpload(self.handle, stream.native)

    def update(self, graph: Graph) -> None:
        """Take over the parameters of another graph of the same shape, for later launches (cuGraphExecUpdate).

        Much cheaper than instantiating. Raises CudaError, naming what differs, for a graph of another shape;
        this one stays as it was then.
        """
        _check_graph("ExecutableGraph.update", graph)
        with activated(self._device):
            result = raw.cuGraphExecUpdate(self.handle, graph.handle)
        if result[0]:
            reason = getattr(result[1], "result", None) if len(result) > 1 else None
            raise errors.failure(result[0], "cuGraphExecUpdate", reason.name if reason is not None else "")
        self._held = graph._held
        self._checked = None

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphExecDestroy(value)

    def __repr__(self) -> str:
        return f"<ExecutableGraph {'closed' if self.closed else f'of {self._nodes} nodes'}>"
