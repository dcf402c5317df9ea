"""Graphs: work captured from streams, and its executable form that is launched again and again."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import arguments, errors
from ..context import debugging
from ..context.capture import LEGACY, Capture, Held, captures, find, hold
from ..context.changes import changes
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle, finalize
from ..driver import enums
from ..driver.seam import api, raw
from ..driver.unwrap import failure
from .stream_base import StreamBase, resolved

if TYPE_CHECKING:
    from .stream import Stream

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


def _node_kinds(graph: Graph) -> tuple[str, ...]:
    """Return what each node does, "kernel" or "memcpy", in the order in which they were made (cuGraphNodeGetType)."""
    count = graph.node_count
    nodes = api.cuGraphGetNodes(graph.handle, count)[0] if count else ()
    return tuple(api.cuGraphNodeGetType(node).name.removeprefix("CU_GRAPH_NODE_TYPE_").lower() for node in nodes)


def _difference(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """Return a sentence on why an executable graph cannot take over another graph."""
    if len(before) != len(after):
        return f"The graph has {len(after)} nodes, and the executable graph has {len(before)}"
    for position, (was, becomes) in enumerate(zip(before, after, strict=True)):
        if was != becomes:
            return f"Node {position} is a {becomes} in the graph, and a {was} in the executable graph"
    return (
        "Both graphs have the same nodes, which differ in their order or in what an update cannot change, such as the "
        "device or the attributes of a kernel or the kind of memory of a copy: instantiate the graph instead"
    )


def _check_graph(call: str, graph: Any) -> None:
    """Check the argument `graph` of a call; one that is still being captured says so by its handle."""
    arguments.instance(call, "graph", graph, Graph)
    if not graph._capturing:
        arguments.opened(call, "graph", graph, Graph)


class Capturing:
    """The result of `stream.capture()`: captures inside its `with` block, and has the graph at its end.

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
        stream = self._stream
        if stream.handle == LEGACY:
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
            raise failure(status, "cuStreamEndCapture")

    def _drop(self) -> None:
        """Forget the graph, and the capture, which ends if it has not."""
        capture, graph = self._capture, self._graph
        if graph is not None:
            graph._capturing = False
        if capture is not None:
            capture.close()
        self._capture = self._graph = None

    def __del__(self, _finalize: Callable[[Any], None] = finalize) -> None:
        # A caller that entered without `with`, or was interrupted before the block, left it to the collector.
        if self._graph is not None:
            self._graph._capturing = False
        if self._capture is not None:
            _finalize(self._capture.close)


class ExecutableGraph(Handle):
    """A graph that can be launched (CUgraphExec). It keeps alive what its work uses.

    An array that is closed by hand is a ValueError at the next launch.
    """

    __slots__ = ("_device", "_held", "_mark", "_native", "_nodes", "_record")

    def __init__(self, graph: Graph) -> None:
        self._value = None
        self._owned = True
        _check_graph("ExecutableGraph", graph)
        self._device = graph.device
        self._nodes = _node_kinds(graph)
        self._held = graph._held
        self._mark: object = None
        self._record = debugging.GraphRecord(graph.device.ordinal, LEGACY, len(self._nodes))
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
        return len(self._nodes)

    def launch(self, stream: Stream | None = None) -> None:
        """Run the graph in a stream, by default the legacy one, after its earlier launches (cuGraphLaunch).

        Returns at once.
        """
        target = resolved("ExecutableGraph.launch", stream)
        handle, record = target.handle, self._record
        if record.stream != handle:
            self._record = record = record._replace(stream=handle)
        if target._device is not None and target._device is not self._device:
            raise self._foreign(target)
        mark = self._mark
        if changes.since(mark):
            mark = self._check()
        with activated(self._device):
            (status,) = raw.cuGraphLaunch(self._native, target.native)
        if status:
            raise failure(status, "cuGraphLaunch", f"The launch was {record}")
        if mark is None and captures and hold(handle, "a graph", (self,)):
            return
        debugging.note_launched(record)
        if _debug.enabled:
            debugging.wait_for(record, self._device)

    def _check(self) -> object:
        """Check that nothing that the graph uses was closed, and return the mark of the check."""
        mark = changes.mark()
        self.handle  # noqa: B018  # raises when closed
        for held in self._held:
            held.check()
        self._mark = mark
        return mark

    def _foreign(self, stream: StreamBase) -> ValueError:
        return ValueError(
            f"the graph was captured on device {self._device.ordinal}, and the stream belongs to "
            f"device {stream.device.ordinal}"
        )

    def upload(self, stream: Stream | None = None) -> None:
        """Prepare the first launch in a stream, so that it costs no more than later ones (cuGraphUpload)."""
        target = resolved("ExecutableGraph.upload", stream)
        if target._device is not None and target._device is not self._device:
            raise self._foreign(target)
        with activated(self._device):
            api.cuGraphUpload(self.handle, target.native)

    def update(self, graph: Graph) -> None:
        """Take over the parameters of another graph of the same shape, for later launches (cuGraphExecUpdate).

        Much cheaper than instantiating. Raises CudaError, naming what differs, for a graph of another shape;
        this one stays as it was then.
        """
        _check_graph("ExecutableGraph.update", graph)
        with activated(self._device):
            status = raw.cuGraphExecUpdate(self.handle, graph.handle)[0]
        if status:
            raise failure(status, "cuGraphExecUpdate", _difference(self._nodes, _node_kinds(graph)))
        self._held = graph._held
        self._mark = None

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphExecDestroy(value)

    def __repr__(self) -> str:
        return f"<ExecutableGraph {'closed' if self.closed else f'of {len(self._nodes)} nodes'}>"
