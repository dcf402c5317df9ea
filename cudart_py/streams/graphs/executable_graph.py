"""Executable graphs: the form of graphs that can be launched repeatedly."""

from __future__ import annotations

import graphlib
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import errors
from ...base import arguments
from ...context import debugging
from ...context.capture import LEGACY, RetainedObjects, captures, hold
from ...context.current import activated
from ...context.device import Device
from ...context.epoch import epoch
from ...context.lifetimes import Handle
from ...driver import enums
from ...driver.calls import api, raw
from ...driver.launch_log import GraphRecord, note_launched
from ...driver.unwrap import failure
from ..stream_base import StreamBase, resolved
from .graph_base import GraphBase, check_graph, native_edges
from .nodes import (
    HOST_FUNCTION,
    WORKS,
    GraphNode,
    Launched,
    NodeWork,
    check_change,
    has_fill,
    kind_of,
    nodes_of,
    retained_by,
)

if TYPE_CHECKING:
    from ..stream import Stream
    from .graph import Graph

# The kinds of nodes that the driver can disable.
_SWITCHED = ("kernel", "memcpy", "memset")


def _node_kinds(graph: Graph) -> tuple[str, ...]:
    """Return the kind of each node, such as "kernel" or "memcpy", in the order of creation (cuGraphNodeGetType)."""
    return tuple(kind_of(node.handle) for node in nodes_of(graph))


def _edges(graph: Graph) -> tuple[tuple[int, int], ...]:
    """Return the edges as pairs of the indices of nodes."""
    indices = {int(node._native): index for index, node in enumerate(nodes_of(graph))}
    return tuple((indices[int(before)], indices[int(after)]) for before, after in native_edges(graph))


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


class ExecutableGraph(Handle):
    """A graph that can be launched (CUgraphExec). It keeps the objects that its work uses alive.

    If one of its arrays has been closed explicitly, the next launch raises ValueError.
    """

    __slots__ = (
        "_auto_free",
        "_device",
        "_edges",
        "_functions",
        "_graph",
        "_handles",
        "_mark",
        "_native",
        "_node_priorities",
        "_nodes",
        "_record",
        "_retained",
        "_told",
    )

    def __init__(self, graph: Graph, *, auto_free: bool = False, node_priorities: bool = False) -> None:
        self._value = None
        self._owned = True
        check_graph("ExecutableGraph", graph)
        self._auto_free = arguments.flag("ExecutableGraph", "auto_free", auto_free)
        self._node_priorities = arguments.flag("ExecutableGraph", "node_priorities", node_priorities)
        for condition in graph._conditions:
            if not condition._used:
                raise ValueError(
                    f"ExecutableGraph: the graph has no conditional node that depends on the {condition!r}"
                )
        self._device = graph.device
        self._nodes = _node_kinds(graph)
        self._retain(graph._retained)
        self._functions: tuple[RetainedObjects, ...] = ()
        self._graph = weakref.ref(graph)
        self._handles = tuple(node.handle for node in nodes_of(graph))
        self._edges = _edges(graph)
        self._record = GraphRecord(graph.device.ordinal, LEGACY, len(self._nodes))
        with activated(graph.device):
            status, self._native = raw.cuGraphInstantiate(graph.handle, self._flags())
        if status:
            raise failure(status, "cuGraphInstantiate", self._reason())
        self._value = int(self._native)

    def _flags(self) -> int:
        kinds = enums.CUgraphInstantiate_flags
        flags = int(kinds.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) if self._auto_free else 0
        return flags | (int(kinds.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) if self._node_priorities else 0)

    def _reason(self) -> str:
        """Return a sentence about a graph that the driver has refused to instantiate, or ""."""
        places: dict[int, list[int]] = {place: [] for place in range(len(self._nodes))}
        for before, after in self._edges:
            places[after].append(before)
        try:
            graphlib.TopologicalSorter(places).prepare()
        except graphlib.CycleError as error:
            *cycle, _ = error.args[1]
            first = cycle.index(min(cycle))
            path = " -> ".join(map(str, (*cycle[first:], *cycle[: first + 1])))
            return f"The edges between these nodes form a cycle: {path}"
        once = {"conditional", "mem_alloc", "mem_free"}.intersection(self._nodes)
        return (
            "A graph with conditional nodes or allocations can have only one executable graph at a time" if once else ""
        )

    def _retain(self, retained: tuple[RetainedObjects, ...]) -> None:
        """Keep objects alive for the next launches, and note which of them must be told about launches."""
        self._retained = retained
        self._told = tuple(thing for one in retained for thing in one.objects if isinstance(thing, Launched))
        self._mark: object = None

    @property
    def auto_free(self) -> bool:
        """Whether a launch first frees the memory that an earlier launch has left allocated."""
        return self._auto_free

    @property
    def node_priorities(self) -> bool:
        """Whether each node has its own priority, rather than that of the stream in which the graph is launched."""
        return self._node_priorities

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
            raise failure(status, "cuGraphLaunch", self._launch_detail(record))
        for thing in self._told:
            thing._note_launched()
        if mark is None and captures and hold(handle, "a graph", (self,)):
            return
        note_launched(record)
        if mark is None and debugging.state.enabled:  # in debug mode there is never a mark
            debugging.wait_for(record, self._device)

    def _launch_detail(self, record: GraphRecord) -> str:
        memory = (
            " A launch cannot allocate memory that an earlier launch has left allocated: free it, or instantiate the "
            "graph with auto_free=True."
        )
        return f"The launch was {record}.{memory if 'mem_alloc' in self._nodes else ''}"

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
        check_graph("ExecutableGraph.update", graph)
        with activated(self._device):
            status = raw.cuGraphExecUpdate(self.handle, graph.handle)[0]
        if status:
            raise failure(status, "cuGraphExecUpdate", _difference(self._nodes, _node_kinds(graph)))
        # The nodes of the instantiated graph still identify the work. If the two graphs were made in the same order,
        # each corresponds to the node of the other graph at the same index. Otherwise, the driver does not say which
        # nodes correspond, and the objects are kept for the whole graph.
        named: dict[int, int] = {}
        if _node_kinds(graph) == self._nodes and _edges(graph) == self._edges:
            named = dict(zip((node.handle for node in nodes_of(graph)), self._handles, strict=True))
        self._keep_functions(self._retained)
        self._retain(tuple(retained._replace(node=named.get(retained.node, 0)) for retained in graph._retained))

    def set_node(self, node: GraphNode, work: NodeWork | Graph) -> None:
        """Change the work of one node for later launches; the graph that the node belongs to stays as it is.

            executable.set_node(graph.nodes[0], scale[grid, block].bind(x, 3.0))

        `node` must belong to the graph that this one was instantiated from. The kind of the node determines `work`:

        - "kernel": a bound launch (cuGraphExecKernelNodeSetParams). Its kernel, shape and arguments replace the node's;
          its stream is ignored.
        - "memcpy": a `NodeCopy` (cuGraphExecMemcpyNodeSetParams).
        - "memset": a `NodeFill` (cuGraphExecMemsetNodeSetParams).
        - "host": a `NodeFunction` (cuGraphExecHostNodeSetParams). The function that it replaces stays alive until this
          graph is closed, because an earlier launch may still have to call it.
        - "event_record": a `NodeRecord` (cuGraphExecEventRecordNodeSetEvent).
        - "wait_event": a `NodeWait` (cuGraphExecEventWaitNodeSetEvent).
        - "batch_mem_op": a `NodeMemoryOperations` (cuGraphExecBatchMemOpNodeSetParams).
        - "graph": a graph of the same topology (cuGraphExecChildGraphNodeSetParams).

        For all other kinds, instantiate another graph.

        Raises ValueError for a node of another graph or kind, or for a launch with attributes, since attributes belong
        to the node. Raises InvalidValueError for work that the driver does not accept in this node.
        """
        call, executable = "ExecutableGraph.set_node", self.handle
        arguments.instance(call, "node", node, GraphNode)
        arguments.instance(call, "work", work, (NodeWork, GraphBase), WORKS)
        if isinstance(work, GraphBase):
            check_graph(call, work, "work")
        place = self._place(call, node)
        check_change(call, node, work, self._device)
        with activated(self._device):
            if isinstance(work, GraphBase):
                api.cuGraphExecChildGraphNodeSetParams(executable, place, work.handle)
            else:
                work._change_node(executable, place, self._device)
        self._keep_functions([one for one in self._retained if one.node == place])
        self._retain((*(one for one in self._retained if one.node != place), *retained_by(work, place)))

    def _keep_functions(self, replaced: Iterable[RetainedObjects]) -> None:
        """Keep host functions that are replaced: a launch in flight may still have to call them."""
        functions = (one for one in replaced if one.what == HOST_FUNCTION)
        self._functions = (*self._functions, *functions)

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
        if place not in self._handles:
            raise arguments.unusable(call, "node", "have been in the graph when it was instantiated")
        if kinds and node.kind not in kinds:
            allowed = " or ".join(kinds)
            raise arguments.unusable(call, "node", f"be a {allowed}", f"a {node.kind}")
        return place

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphExecDestroy(value)

    def __repr__(self) -> str:
        return f"<ExecutableGraph {'closed' if self.closed else f'of {len(self._nodes)} nodes'}>"
