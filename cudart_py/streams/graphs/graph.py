"""Graphs: work that is captured from streams or added node by node, and its executable form, for many launches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...base import arguments
from ...context.capture import RetainedObjects
from ...context.current import activated
from ...context.device import Device, current_device
from ...driver import enums
from ...driver.calls import api, raw
from ...driver.unwrap import failure
from ...hints import hinted
from .executable_graph import ExecutableGraph
from .graph_base import GraphBase, check_graph
from .nodes import WORKS, GraphNode, NodeWork, check_change, retained_by

_KEEPS_NODES = "A graph that allocates or frees memory keeps its nodes and edges: build another graph"


@hinted
class Graph(GraphBase):
    """Work and its dependencies (CUgraph): captured by `with stream.capture() as graph:`, or added node by node.

        graph = cuda.graphs.Graph()
        first = graph.add(scale[grid, block].bind(x, 2.0))
        graph.add(cuda.graphs.NodeCopy(y, x), after=first)
        executable = graph.instantiate()

    `Graph()` is an empty graph of `device`, by default the current device (cuGraphCreate). Nodes without edges between
    them may run at the same time. Changes do not affect executable graphs that exist. The graph keeps the objects that
    its work uses alive. A captured graph can be used once the block has ended.
    """

    __slots__ = ()

    def __init__(self, device: Device | None = None) -> None:
        # Set before the checks, so that the finalizer of a refused graph finds nothing to destroy.
        self._value = None
        self._owned = True
        if device is not None:
            arguments.instance("Graph", "device", device, Device, "a Device or None")
        self._begin(device or current_device())
        with activated(self._device):
            self._value = int(api.cuGraphCreate(0))

    @classmethod
    def _recorded(cls, device: Device) -> Graph:
        """Return a graph that is being captured, and has no handle yet."""
        graph = cls.__new__(cls)
        graph._value, graph._owned = None, True
        graph._begin(device)
        graph._capturing = True
        return graph

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

    def add(self, work: NodeWork | Graph, *, after: GraphNode | Sequence[GraphNode] = ()) -> GraphNode:
        """Add a node that does some work once the node or nodes `after` have finished, and return it.

        `work` is one of these, whose class describes it:

        - a bound launch, `kernel[grid, block].bind(...)`, whose stream is ignored (cuGraphAddKernelNode),
        - `graphs.NodeCopy`, `graphs.NodeFill` (cuGraphAddMemcpyNode, cuGraphAddMemsetNode),
        - `graphs.NodeFunction`, a host function (cuGraphAddHostNode),
        - `graphs.NodeRecord`, `graphs.NodeWait` for events (cuGraphAddEventRecordNode, cuGraphAddEventWaitNode),
        - `graphs.NodeMemoryOperations` for integers in memory (cuGraphAddBatchMemOpNode),
        - `graphs.NodeAllocation`, `graphs.NodeFree` (cuGraphAddMemAllocNode, cuGraphAddMemFreeNode),
        - another graph, of which a copy becomes one node (cuGraphAddChildGraphNode).

        Raises ValueError for nodes of another graph, and for objects that are closed or on another device.
        """
        call, graph, device = "Graph.add", self.handle, self._device
        arguments.instance(call, "work", work, (NodeWork, Graph), WORKS)
        before = self._dependencies(call, after)
        if isinstance(work, Graph):
            check_graph(call, work, "work")
            if work is self:
                raise arguments.unusable(call, "work", "be another graph")
            if work.device is not device:
                rule = f"belong to device {device.ordinal}, like this graph"
                raise arguments.unusable(call, "work", rule, f"to device {work.device.ordinal}")
        else:
            work._check_node(call, device, adds=True)
        with activated(device):
            if isinstance(work, Graph):
                native = api.cuGraphAddChildGraphNode(graph, before, len(before), work.handle)
            else:
                native = work._add_node(graph, before, device)
        return self._added(native, retained_by(work, int(native)))

    def add_empty(self, *, after: GraphNode | Sequence[GraphNode] = ()) -> GraphNode:
        """Add a node without work, which only orders other nodes, and return it (cuGraphAddEmptyNode)."""
        graph = self.handle
        before = self._dependencies("Graph.add_empty", after)
        with activated(self._device):
            native = api.cuGraphAddEmptyNode(graph, before, len(before))
        return self._added(native, ())

    def _added(self, native: Any, retained: tuple[RetainedObjects, ...]) -> GraphNode:
        self._removed.discard(int(native))
        self._retained = (*self._retained, *retained)
        return GraphNode(self, native)

    def _dependencies(self, call: str, after: Any) -> list[Any]:
        """Return the handles of the nodes in the argument `after`, without repetitions."""
        nodes = [after] if isinstance(after, GraphNode) else after
        arguments.instance(call, "after", nodes, (tuple, list), "a GraphNode, or a tuple or list of them")
        found = [self._own(call, f"after[{place}]", node) for place, node in enumerate(nodes)]
        return [enums.CUgraphNode(handle) for handle in dict.fromkeys(found)]

    def _own(self, call: str, name: str, node: Any) -> int:
        """Return the handle of an argument that must be a node of this graph."""
        arguments.instance(call, name, node, GraphNode)
        if node.graph is not self:
            raise arguments.unusable(call, name, "belong to this graph")
        return int(node.handle)

    def _ends(self, call: str, before: Any, after: Any) -> tuple[int, int]:
        """Return the handles of the ends of an edge, after checking the types of both."""
        arguments.instance(call, "after", after, GraphNode)
        return self._own(call, "before", before), self._own(call, "after", after)

    def add_edge(self, before: GraphNode, after: GraphNode) -> None:
        """Make the node `after` depend on the node `before` (cuGraphAddDependencies).

        Raises ValueError if it already does. Edges that form a cycle raise an error when the graph is instantiated.
        """
        call, graph = "Graph.add_edge", self.handle
        start, end = self._ends(call, before, after)
        if start == end:
            raise arguments.unusable(call, "after", "be a different node than 'before'")
        if before in after.dependencies:
            raise arguments.unusable(call, "after", "not depend on 'before' already")
        api.cuGraphAddDependencies(graph, [enums.CUgraphNode(start)], [enums.CUgraphNode(end)], None, 1)

    def remove_edge(self, before: GraphNode, after: GraphNode) -> None:
        """Remove the direct dependency of the node `after` on the node `before` (cuGraphRemoveDependencies).

        Raises ValueError if there is none, and NotSupportedError for a graph that allocates or frees memory.
        """
        call, graph = "Graph.remove_edge", self.handle
        start, end = self._ends(call, before, after)
        if before not in after.dependencies:
            raise arguments.unusable(call, "after", "directly depend on 'before'")
        edge = [enums.CUgraphNode(start)], [enums.CUgraphNode(end)], None, 1
        (status,) = raw.cuGraphRemoveDependencies(graph, *edge)
        if status:
            raise failure(status, "cuGraphRemoveDependencies", _KEEPS_NODES)

    def remove(self, node: GraphNode) -> None:
        """Remove a node with all its edges (cuGraphDestroyNode).

        Raises NotSupportedError for a graph that allocates or frees memory.
        """
        self.handle  # noqa: B018  # raises when closed
        place = self._own("Graph.remove", "node", node)
        (status,) = raw.cuGraphDestroyNode(place)
        if status:
            raise failure(status, "cuGraphDestroyNode", _KEEPS_NODES)
        self._removed.add(place)
        self._retained = tuple(one for one in self._retained if one.node != place)

    def set_node(self, node: GraphNode, work: NodeWork) -> None:
        """Change the work of a node, for graphs that are instantiated later (cuGraphKernelNodeSetParams and so on).

        `node` and `work` are as for `ExecutableGraph.set_node`, except that `work` is not a graph. A copy or a fill may
        use any kind of memory.
        """
        call = "Graph.set_node"
        self.handle  # noqa: B018  # raises when closed
        arguments.instance(call, "work", work, NodeWork, WORKS.removesuffix(", or a Graph"))
        place = self._own(call, "node", node)
        check_change(call, node, work, self._device)
        with activated(self._device):
            work._set_node(place, self._device)
        self._retained = (*(one for one in self._retained if one.node != place), *retained_by(work, place))

    def clone(self) -> Graph:
        """Return a copy of the graph, with corresponding nodes in the same order (cuGraphClone).

        Raises NotSupportedError for a graph with conditional nodes, or with nodes that allocate or free memory.
        """
        check_graph("Graph.clone", self)
        made = Graph._recorded(self._device)
        with activated(self._device):
            made._value = int(api.cuGraphClone(self.handle))
        made._capturing = False
        named = {one.handle: other.handle for one, other in zip(self.nodes, made.nodes, strict=True)}
        made._retained = tuple(one._replace(node=named.get(one.node, 0)) for one in self._retained)
        return made

    def instantiate(self, *, auto_free: bool = False, node_priorities: bool = False) -> ExecutableGraph:
        """Return an executable copy of the graph in its current state (cuGraphInstantiate).

        - `auto_free`: a launch first frees the memory that an earlier launch has allocated and that has not been freed.
        - `node_priorities`: the nodes have the priorities that their launches were given, or those of the streams that
          were captured. Otherwise, all nodes have the priority of the stream in which the graph is launched.
        """
        auto_free = arguments.flag("Graph.instantiate", "auto_free", auto_free)
        node_priorities = arguments.flag("Graph.instantiate", "node_priorities", node_priorities)
        return ExecutableGraph(self, auto_free=auto_free, node_priorities=node_priorities)

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuGraphDestroy(value)

    def __repr__(self) -> str:
        if self._capturing:
            return "<Graph being captured>"
        return f"<Graph {'closed' if self.closed else f'of {self.node_count} nodes'}>"
