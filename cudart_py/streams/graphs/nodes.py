"""Nodes of graphs, and the work that can replace a node's work in an executable graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ...base import arguments
from ...context.capture import RetainedObjects
from ...context.device import Device
from ...driver import enums
from ...driver.calls import api
from ...driver.unwrap import failure
from ..stream_base import StreamBase

if TYPE_CHECKING:
    from .graph import Graph
    from .graph_base import GraphBase

_KIND = "CU_GRAPH_NODE_TYPE_"
# The description of a graph's nodes' work in error messages.
WORKS = "a BoundLaunch, a NodeCopy or another class of work for nodes, or a Graph"
# The description of a host function in a graph, by which it is recognised.
HOST_FUNCTION = "a callback"


class GraphNode:
    """One piece of work in a graph: an element of `graph.nodes` (CUgraphNode). It keeps the graph alive.

    Two nodes are equal if they are the same node of the same graph.
    """

    __slots__ = ("_graph", "_native")

    def __init__(self, graph: GraphBase, native: Any) -> None:
        self._graph: Graph = graph  # type: ignore[assignment]  # there are no other subclasses
        self._native = native

    @property
    def handle(self) -> int:
        """The CUgraphNode as an int; raises ValueError when the graph is closed or the node was removed."""
        return int(self._open())

    def _open(self) -> Any:
        self._graph.handle  # noqa: B018  # raises when closed
        if int(self._native) in self._graph._removed:
            raise ValueError("this GraphNode was removed from its graph")
        return self._native

    @property
    def graph(self) -> Graph:
        """The graph that the node belongs to."""
        return self._graph

    @property
    def kind(self) -> str:
        """The kind: "kernel", "memcpy", "memset", "host", "graph" for a child graph, ... (cuGraphNodeGetType)."""
        return kind_of(self._open())

    @property
    def priority(self) -> int:
        """The priority of a kernel; a lower number is a higher priority (cuGraphKernelNodeGetAttribute).

        It comes from the launch or from the captured stream, and counts only in a graph that is instantiated with
        `node_priorities=True`. Raises ValueError for other kinds of nodes.
        """
        native = self._open()
        if kind_of(native) != "kernel":
            kind = with_article(kind_of(native))
            raise ValueError(f"GraphNode.priority: only kernels have priorities, and this node is {kind}")
        identity = enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
        return int(api.cuGraphKernelNodeGetAttribute(native, identity).priority)

    @property
    def dependencies(self) -> tuple[GraphNode, ...]:
        """The nodes that this node directly depends on (cuGraphNodeGetDependencies)."""
        native = self._open()
        count = int(api.cuGraphNodeGetDependencies(native, 0)[-1])
        nodes = api.cuGraphNodeGetDependencies(native, count)[0] if count else ()
        return tuple(GraphNode(self._graph, native) for native in nodes)

    @property
    def dependents(self) -> tuple[GraphNode, ...]:
        """The nodes that directly depend on this node (cuGraphNodeGetDependentNodes)."""
        native = self._open()
        count = int(api.cuGraphNodeGetDependentNodes(native, 0)[-1])
        nodes = api.cuGraphNodeGetDependentNodes(native, count)[0] if count else ()
        return tuple(GraphNode(self._graph, native) for native in nodes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphNode):
            return NotImplemented
        return self._graph is other._graph and int(self._native) == int(other._native)

    def __hash__(self) -> int:
        return hash(int(self._native))

    def __repr__(self) -> str:
        removed = int(self._native) in self._graph._removed
        return f"<GraphNode {'of a closed graph' if self._graph.closed else 'removed' if removed else self.kind}>"


class Launched:
    """An object that is notified when a graph that uses it has been launched."""

    __slots__ = ()

    def _note_launched(self) -> None:
        """Note that a launch has been queued."""
        raise NotImplementedError


class NodeWork:
    """The work of a node of a graph, such as a bound launch, a copy or a fill."""

    __slots__ = ()

    _kind: ClassVar[str]  # the `GraphNode.kind` of the nodes that do this work

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if the work cannot run in a graph of this device.

        `adds` says that it is for a new node, and not a change.
        """
        raise NotImplementedError

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node that does this work to a graph of the current device, and return it."""
        raise NotImplementedError

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph of the current device do this work."""
        raise NotImplementedError

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph of the current device do this work."""
        raise NotImplementedError

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the objects that the work uses, for the node to keep alive."""
        raise NotImplementedError


def check_change(call: str, node: GraphNode, work: NodeWork | GraphBase, device: Device) -> None:
    """Raise ValueError if work cannot replace that of a node in a graph of this device."""
    kind, kind_of_work = node.kind, work._kind
    if kind != kind_of_work:
        rule = f"be {with_article(kind_of_work)}, to match 'work'"
        raise arguments.unusable(call, "node", rule, with_article(kind))
    if isinstance(work, NodeWork):
        work._check_node(call, device)


def retained_by(work: NodeWork | GraphBase, node: int) -> tuple[RetainedObjects, ...]:
    """Return the objects that a node with this work keeps alive."""
    if isinstance(work, NodeWork):
        return (work._retained_by(node),)
    return tuple(one._replace(node=node) for one in work._retained)


def with_article(kind: str) -> str:
    """Return a kind of node with its indefinite article, for error messages."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def kind_of(native: Any) -> str:
    """Return a node's kind in one word, such as "kernel" or "memcpy" (cuGraphNodeGetType)."""
    name: str = api.cuGraphNodeGetType(native).name
    return name.removeprefix(_KIND).lower()


def has_fill(graph: Graph) -> bool:
    """Return whether a graph has a fill, including those inside child graphs and bodies of conditional nodes."""
    # Drivers do not report the bodies of a conditional node, so the conditions record them. Child graphs have no
    # conditional nodes.
    bodies = [body for condition in graph._conditions for body in condition._bodies]
    return any(_fills(handle) for handle in (graph.handle, *bodies))


def _fills(graph: Any) -> bool:
    """Return whether the graph with this handle has a fill, directly or in a child graph."""
    count = int(api.cuGraphGetNodes(graph, 0)[-1])
    kinds = {int(node): kind_of(node) for node in (api.cuGraphGetNodes(graph, count)[0] if count else ())}
    children = [node for node, kind in kinds.items() if kind == "graph"]
    return "memset" in kinds.values() or any(_fills(api.cuGraphChildGraphNodeGetGraph(node)) for node in children)


def nodes_of(graph: GraphBase) -> tuple[GraphNode, ...]:
    """Return a graph's nodes in the order of creation (cuGraphGetNodes)."""
    count = graph.node_count
    return tuple(GraphNode(graph, node) for node in (api.cuGraphGetNodes(graph.handle, count)[0] if count else ()))


def add_child_graph(stream: StreamBase, graph: Graph) -> int:
    """Append a copy of a graph to the graph that a stream records into, and return the node (cuGraphAddChildGraphNode).

    Capturing the launch of an executable graph is not possible: drivers refuse it.
    """
    info = api.cuStreamGetCaptureInfo(stream.native)
    if info[0] != enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        raise failure(enums.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamGetCaptureInfo")
    parent, before = info[2], list(info[3])
    node = api.cuGraphAddChildGraphNode(parent, before, len(before), graph.handle)
    flags = enums.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
    api.cuStreamUpdateCaptureDependencies(stream.native, [node], None, 1, int(flags))
    return int(node)
