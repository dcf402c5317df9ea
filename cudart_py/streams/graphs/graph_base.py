"""The base class of graphs: their handle, device, nodes and edges, and the objects that they keep alive."""

from __future__ import annotations

from typing import Any

from ...base import arguments
from ...context.capture import RetainedObjects
from ...context.device import Device
from ...context.lifetimes import Handle
from ...driver.calls import api
from .conditionals import Condition
from .nodes import GraphNode, nodes_of


class GraphBase(Handle):
    """The nodes of a graph; `Graph` adds the methods that change and instantiate it."""

    __slots__ = ("_capturing", "_conditions", "_device", "_removed", "_retained")

    _kind = "graph"  # the `GraphNode.kind` of a node that contains a graph

    def _begin(self, device: Device) -> None:
        self._device = device
        self._retained: tuple[RetainedObjects, ...] = ()
        self._conditions: tuple[Condition, ...] = ()
        # The handles of nodes that were removed, which the driver may give to new nodes.
        self._removed: set[int] = set()
        self._capturing = False

    @property
    def handle(self) -> int:
        """The CUgraph as an int; raises ValueError before its capture has ended and when closed."""
        if self._capturing:
            raise ValueError("this Graph is still being captured: use it after the `with` block")
        return self._open_handle()

    @property
    def device(self) -> Device:
        """The device of the captured stream, or the device for which the graph was created."""
        return self._device

    @property
    def node_count(self) -> int:
        """The number of nodes: kernels, copies, fills, host functions (cuGraphGetNodes)."""
        return int(api.cuGraphGetNodes(self.handle, 0)[1])

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes, in the order in which they were captured or added (cuGraphGetNodes)."""
        return nodes_of(self)

    @property
    def edges(self) -> tuple[tuple[GraphNode, GraphNode], ...]:
        """The dependencies: pairs of a node and a node that directly depends on it (cuGraphGetEdges)."""
        return tuple((GraphNode(self, before), GraphNode(self, after)) for before, after in native_edges(self))


def native_edges(graph: GraphBase) -> list[tuple[Any, Any]]:
    """Return the edges as pairs of CUgraphNodes (cuGraphGetEdges)."""
    count = int(api.cuGraphGetEdges(graph.handle, 0)[-1])
    before, after = api.cuGraphGetEdges(graph.handle, count)[:2] if count else ((), ())
    return list(zip(before, after, strict=True))


def check_graph(call: str, graph: Any, name: str = "graph") -> None:
    """Raise TypeError or ValueError unless a call's argument is a Graph that is open and uses only open objects.

    A graph that is still being captured passes: its `handle` raises the error.
    """
    arguments.instance(call, name, graph, GraphBase, "a Graph")
    if not graph._capturing:
        arguments.opened(call, name, graph, GraphBase, "a Graph")
    # The driver reads the CUDA arrays of copy nodes, and crashes if one has been destroyed.
    for retained in graph._retained:
        retained.check()
