"""Graphs: work captured from streams, and its executable form, which can be launched repeatedly."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import arguments, errors
from ..context import debugging
from ..context.capture import LEGACY, Capture, RetainedObjects, captures, find, hold
from ..context.current import activated
from ..context.device import Device
from ..context.epoch import epoch
from ..context.lifetimes import Handle, finalize
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.launch_log import GraphRecord, note_launched
from ..driver.unwrap import failure
from ..hints import hinted
from .conditionals import Condition
from .graph_nodes import GraphNode, NodeWork, add_child_graph, has_fill, kind_of, nodes_of
from .stream_base import StreamBase, resolved

if TYPE_CHECKING:
    from .stream import Stream

_MODES = ("global", "thread_local", "relaxed")
# The kinds of nodes that the driver can disable.
_SWITCHED = ("kernel", "memcpy", "memset")


@hinted
class Graph(Handle):
    """Work and its dependencies, captured by `with stream.capture() as graph:` (CUgraph).

    The graph keeps the objects that the work uses alive. It can be used once the block has ended.
    """

    __slots__ = ("_capturing", "_conditions", "_device", "_retained")

    def __init__(self, device: Device | None = None) -> None:
        # Set before the checks, so that the finalizer of a refused graph finds nothing to destroy.
        self._value = None
        self._owned = True
        if device is None:
            raise TypeError(
                "Graph: 'device' is missing; create a graph by capturing a stream, `with stream.capture() as graph:`"
            )
        self._device = arguments.instance("Graph", "device", device, Device)
        self._retained: tuple[RetainedObjects, ...] = ()
        self._conditions: tuple[Condition, ...] = ()
        self._capturing = True

    @property
    def handle(self) -> int:
        """The CUgraph as an int; raises ValueError before its capture has ended and when closed."""
        if self._capturing:
            raise ValueError("this Graph is still being captured: use it after the `with` block")
        return self._open_handle()

    @property
    def device(self) -> Device:
        """The device of the captured stream."""
        return self._device

    @property
    def node_count(self) -> int:
        """The number of nodes: kernels, copies, fills, host functions (cuGraphGetNodes)."""
        return int(api.cuGraphGetNodes(self.handle, 0)[1])

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes, in the order in which they were captured (cuGraphGetNodes)."""
        return nodes_of(self)

    @property
    def edges(self) -> tuple[tuple[GraphNode, GraphNode], ...]:
        """The dependencies: pairs of a node and a node that directly depends on it (cuGraphGetEdges)."""
        count = int(api.cuGraphGetEdges(self.handle, 0)[-1])
        before, after = api.cuGraphGetEdges(self.handle, count)[:2] if count else ((), ())
        return tuple((GraphNode(self, one), GraphNode(self, other)) for one, other in zip(before, after, strict=True))

    def dot(self, *, verbose: bool = False) -> str:
        """Return the graph in Graphviz's DOT language, including all parameters if `verbose` (cuGraphDebugDotPrint)."""
        import tempfile  # imported late, because it imports a dozen modules

        verbose = arguments.flag("Graph.dot", "verbose", verbose)
        flags = int(enums.CUgraphDebugDot_flags.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE) if verbose else 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.dot")
            api.cuGraphDebugDotPrint(self.handle, path.encode(), flags)
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()

    def instantiate(self) -> ExecutableGraph:
        """Return an executable copy of the graph in its current state (cuGraphInstantiate)."""
        return ExecutableGraph(self)

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphDestroy(value)

    def __repr__(self) -> str:
        if self._capturing:
            return "<Graph being captured>"
        return f"<Graph {'closed' if self.closed else f'of {self.node_count} nodes'}>"


def _node_kinds(graph: Graph) -> tuple[str, ...]:
    """Return the kind of each node, such as "kernel" or "memcpy", in the order of creation (cuGraphNodeGetType)."""
    return tuple(kind_of(node.handle) for node in nodes_of(graph))


def _difference(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """Return a sentence that says why an executable graph cannot be updated, from the kinds of both graphs' nodes."""
    if len(before) != len(after):
        return f"The graph has {len(after)} nodes, but the executable graph has {len(before)}"
    for position, (was, becomes) in enumerate(zip(before, after, strict=True)):
        if was != becomes:
            return f"Node {position} is a {becomes} in the graph, but a {was} in the executable graph"
    return (
        "Both graphs have the same kinds of nodes, but they differ in their dependencies or in something that an "
        "update cannot change, such as a kernel's device or attributes, or the kind of memory that a copy uses: "
        "instantiate the graph instead"
    )


def _check_graph(call: str, graph: Any, name: str = "graph") -> None:
    """Raise TypeError or ValueError unless a call's argument is a Graph that is open and uses only open objects.

    A graph that is still being captured passes: its `handle` raises the error.
    """
    arguments.instance(call, name, graph, Graph)
    if not graph._capturing:
        arguments.opened(call, name, graph, Graph)
    # The driver reads the CUDA arrays of copy nodes, and crashes if one has been destroyed.
    for retained in graph._retained:
        retained.check()


def add_graph(stream: Stream, graph: Graph) -> None:
    """Add a copy of a graph to the graph that the stream records into; see `Stream.add_graph`."""
    call = "Stream.add_graph"
    _check_graph(call, graph)
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
        graph = self._graph = Graph(device)
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


class ExecutableGraph(Handle):
    """A graph that can be launched (CUgraphExec). It keeps the objects that its work uses alive.

    If one of its arrays has been closed explicitly, the next launch raises ValueError.
    """

    __slots__ = ("_device", "_graph", "_handles", "_mark", "_native", "_nodes", "_record", "_retained")

    def __init__(self, graph: Graph) -> None:
        self._value = None
        self._owned = True
        _check_graph("ExecutableGraph", graph)
        for condition in graph._conditions:
            if not condition._used:
                raise ValueError(
                    f"ExecutableGraph: the graph has no conditional node that depends on the {condition!r}"
                )
        self._device = graph.device
        self._nodes = _node_kinds(graph)
        self._retained = graph._retained
        self._graph = weakref.ref(graph)
        self._handles = tuple(node.handle for node in nodes_of(graph))
        self._mark: object = None
        self._record = GraphRecord(graph.device.ordinal, LEGACY, len(self._nodes))
        with activated(graph.device):
            status, self._native = raw.cuGraphInstantiate(graph.handle, 0)
        if status:
            once = "conditional" in self._nodes or "mem_alloc" in self._nodes
            detail = "A graph with conditional nodes or allocations can have only one executable graph at a time"
            raise failure(status, "cuGraphInstantiate", detail if once else "")
        self._value = int(self._native)

    @property
    def device(self) -> Device:
        """The device on which the graph runs."""
        return self._device

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self._nodes)

    def launch(self, stream: Stream | None = None) -> None:
        """Launch the graph in a stream, by default the legacy default stream (cuGraphLaunch).

        Returns at once. Launches of the same graph run one after another.
        """
        target = resolved("ExecutableGraph.launch", stream)
        native, record = target.native, self._record
        handle = target._value  # the stream is open, since reading `native` did not raise
        if record.stream != handle:
            self._record = record = record._replace(stream=handle)
        if target._device is not None and target._device is not self._device:
            raise self._foreign(target)
        mark = self._mark
        if mark is not epoch.current:
            mark = self._check()
        with activated(self._device):
            (status,) = raw.cuGraphLaunch(self._native, native)
        if status:
            raise failure(status, "cuGraphLaunch", f"The launch was {record}")
        if mark is None and captures and hold(handle, "a graph", (self,)):
            return
        note_launched(record)
        if mark is None and debugging.state.enabled:  # in debug mode there is never a mark
            debugging.wait_for(record, self._device)

    def _check(self) -> object:
        """Check that the graph and all objects that it uses are open, and return the epoch's mark from before."""
        mark = epoch.mark()
        self.handle  # noqa: B018  # raises when closed
        for retained in self._retained:
            retained.check()
        self._mark = mark
        return mark

    def _foreign(self, stream: StreamBase) -> ValueError:
        return ValueError(
            f"the graph was captured on device {self._device.ordinal}, but the stream belongs to "
            f"device {stream.device.ordinal}"
        )

    def upload(self, stream: Stream | None = None) -> None:
        """Upload the graph in a stream, so that the first launch takes no longer than later ones (cuGraphUpload)."""
        target = resolved("ExecutableGraph.upload", stream)
        if target._device is not None and target._device is not self._device:
            raise self._foreign(target)
        with activated(self._device):
            api.cuGraphUpload(self.handle, target.native)

    def update(self, graph: Graph) -> None:
        """Use the parameters of another graph of the same topology in later launches (cuGraphExecUpdate).

        This is much cheaper than instantiating the other graph. If the topology differs, raises a CudaError that
        describes the difference, and the executable graph does not change.
        """
        _check_graph("ExecutableGraph.update", graph)
        with activated(self._device):
            status = raw.cuGraphExecUpdate(self.handle, graph.handle)[0]
        if status:
            raise failure(status, "cuGraphExecUpdate", _difference(self._nodes, _node_kinds(graph)))
        # The nodes of the instantiated graph still identify the work: each corresponds to the node of the other graph
        # at the same index.
        named = dict(zip((node.handle for node in nodes_of(graph)), self._handles, strict=True))
        self._retained = tuple(retained._replace(node=named.get(retained.node, 0)) for retained in graph._retained)
        self._mark = None

    def set_node(self, node: GraphNode, work: NodeWork | Graph) -> None:
        """Change the work of one node for later launches; the graph that the node belongs to stays as it is.

            executable.set_node(graph.nodes[0], scale[grid, block].bind(x, 3.0))

        `node` must belong to the graph that this one was instantiated from. The kind of the node determines `work`:

        - "kernel": a bound launch (cuGraphExecKernelNodeSetParams). Its kernel, shape and arguments replace the node's;
          its stream is ignored.
        - "memcpy": a `NodeCopy`.
        - "memset": a `NodeFill`.
        - "graph": a graph of the same topology (cuGraphExecChildGraphNodeSetParams).

        For all other kinds, capture the work again and call `update`.

        Raises ValueError for a node of another graph or kind, or for a launch with attributes, since attributes belong
        to the node. Raises InvalidValueError for work that the driver does not accept in this node.
        """
        call, executable = "ExecutableGraph.set_node", self.handle
        arguments.instance(call, "node", node, GraphNode)
        arguments.instance(call, "work", work, (NodeWork, Graph), "a BoundLaunch, a NodeCopy, a NodeFill or a Graph")
        if isinstance(work, Graph):
            _check_graph(call, work, "work")
        place, kind = self._place(call, node), node.kind
        kind_of_work = "graph" if isinstance(work, Graph) else work._kind
        if kind != kind_of_work:
            raise arguments.unusable(call, "node", f"be a {kind_of_work}, to match 'work'", f"a {kind}")
        retained: tuple[RetainedObjects, ...]
        if isinstance(work, Graph):
            with activated(self._device):
                api.cuGraphExecChildGraphNodeSetParams(executable, place, work.handle)
            retained = tuple(one._replace(node=place) for one in work._retained)
        else:
            work._check_node(call, self._device)
            work._change_node(executable, place, self._device)
            retained = (work._retained_by(place),)
        self._retained = (*(one for one in self._retained if one.node != place), *retained)
        self._mark = None

    def set_enabled(self, node: GraphNode, enabled: bool) -> None:
        """Disable a node in later launches, or enable it again (cuGraphNodeSetEnabled).

        The order of the other nodes does not change. `node` must be a kernel or a copy of the graph that this one was
        instantiated from. Raises NotSupportedError for a graph with a fill, even one inside a child graph or the body
        of a conditional node: in such graphs, NVIDIA's driver skips kernels that are enabled.
        """
        call, executable = "ExecutableGraph.set_enabled", self.handle
        enabled = arguments.flag(call, "enabled", enabled)
        place = self._place(call, node, _SWITCHED)
        # Driver 580.159.04 on an H200: in a graph of kernel, fill and kernel, the first two nodes are disabled, and
        # after a launch the first is enabled again. Nearly every following launch then skips a kernel that is enabled,
        # also according to cuGraphNodeGetEnabled. None of these helps: waiting in between, uploading the graph, setting
        # all nodes or their parameters again, or instantiating again and disabling before the first launch. Graphs of
        # kernels and copies were correct in 194,000 launches. Graphs in which the parameters of nodes, including
        # fills, were changed instead were correct in 98,000 launches.
        if has_fill(node.graph):
            raise errors.NotSupportedError(
                f"{call}: the graph has a fill (a memset node), and in such graphs NVIDIA's driver skips kernels that "
                "are enabled: capture a graph without the node's work, or fill with a kernel"
            )
        with activated(self._device):
            api.cuGraphNodeSetEnabled(executable, place, int(enabled))

    def is_enabled(self, node: GraphNode) -> bool:
        """Return whether launches run a node, which must be a kernel, a copy or a fill (cuGraphNodeGetEnabled)."""
        call, executable = "ExecutableGraph.is_enabled", self.handle
        place = self._place(call, node, _SWITCHED)
        with activated(self._device):
            return bool(api.cuGraphNodeGetEnabled(executable, place))

    def _place(self, call: str, node: GraphNode, kinds: tuple[str, ...] = ()) -> int:
        """Return a node's handle, after checking that the node belongs to the graph that was instantiated.

        If `kinds` is not empty, the node must be of one of these kinds. Raises TypeError and ValueError.
        """
        arguments.instance(call, "node", node, GraphNode)
        if node.graph is not self._graph():
            raise ValueError(
                f"{call}: argument 'node' does not belong to the graph that this one was instantiated from"
            )
        place = node.handle
        if kinds and node.kind not in kinds:
            allowed = " or ".join(kinds)
            raise arguments.unusable(call, "node", f"be a {allowed}", f"a {node.kind}")
        return place

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphExecDestroy(value)

    def __repr__(self) -> str:
        return f"<ExecutableGraph {'closed' if self.closed else f'of {len(self._nodes)} nodes'}>"
