"""Graphs: operations with the order among them, made by stream capture and kept to be run again.

A node holds the very operation that a stream would have been given: parameters of kernels were copied when it was
captured, host memory is read when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cuda.bindings.driver import (
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUgraphNodeType,
    CUresult,
)

from . import memory
from .copies import Copy
from .copies_2d import BoxCopy
from .errors import StatusError, entry, number
from .events import RecordEvent
from .fills import Fill
from .graph_memory import AllocateInGraph, FreeInGraph
from .handles import Handles
from .host_functions import HostCall
from .launches import Kernel
from .memory import host_address
from .work import Operation

__all__ = [
    "Graph",
    "Node",
    "cuGraphAddHostNode",
    "cuGraphClone",
    "cuGraphCreate",
    "cuGraphDebugDotPrint",
    "cuGraphDestroy",
    "cuGraphGetEdges",
    "cuGraphGetNodes",
    "cuGraphGetRootNodes",
    "cuGraphNodeGetDependencies",
    "cuGraphNodeGetType",
    "find_graph",
    "find_node",
]

_TYPES: dict[type, CUgraphNodeType] = {
    Kernel: CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL,
    Copy: CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY,
    BoxCopy: CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY,
    Fill: CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET,
    HostCall: CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST,
    AllocateInGraph: CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    FreeInGraph: CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE,
    RecordEvent: CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD,
}


class Node:
    """An operation in a graph and the nodes that come before it."""

    __slots__ = ("dependencies", "handle", "operation")

    def __init__(self, operation: Operation, dependencies: tuple[Node, ...]) -> None:
        self.operation = operation
        self.dependencies = dependencies
        self.handle = nodes.add(self)

    @property
    def kind(self) -> CUgraphNodeType:
        """Return the node's type."""
        return _TYPES[type(self.operation)]

    def describe(self) -> str:
        """Return one or two lines for a drawing."""
        operation = self.operation
        if isinstance(operation, Kernel):
            launch = operation.launch
            return f"{launch.entry.name}\n<<<{launch.grid}, {launch.block}, {launch.shared_bytes}>>>"
        if isinstance(operation, (Copy, BoxCopy)):
            return f"{operation.size} bytes"
        if isinstance(operation, Fill):
            return f"{operation.value:#x} in {operation.height} x {operation.width} x {operation.width_bytes} bytes"
        return ""


class Graph:
    """Nodes, each after those it depends on."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.handle = graphs.add(self)

    def add(self, operation: Operation, dependencies: Iterable[Node]) -> Node:
        """Add an operation after the given nodes; raise CUDA_ERROR_NOT_SUPPORTED for one that no graph can hold."""
        if type(operation) not in _TYPES:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        node = Node(operation, tuple(dependencies))
        self.nodes.append(node)
        return node

    def edges(self) -> list[tuple[Node, Node]]:
        """Return the pairs of a node and one that comes after it."""
        return [(before, node) for node in self.nodes for before in node.dependencies]

    def destroy(self) -> None:
        """Forget the graph and its nodes."""
        for node in self.nodes:
            nodes.remove(node.handle)
        graphs.remove(self.handle)

    def discard(self) -> None:
        """Destroy a graph that nobody has been given, with the allocations that it would have made."""
        for node in self.nodes:
            if isinstance(node.operation, AllocateInGraph):
                memory.known.remove(node.operation.allocation)
        self.destroy()

    def dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        numbers = {node: number for number, node in enumerate(self.nodes)}
        lines = ["digraph dot {", '  node [shape="rectangle"];']
        for node, index in numbers.items():
            kind = node.kind.name.removeprefix("CU_GRAPH_NODE_TYPE_")
            text = f"{index}\n{kind}\n{node.describe()}".strip().replace('"', r"\"").replace("\n", r"\n")
            lines.append(f'  node_{index} [label="{text}"];')
        lines += [f"  node_{numbers[before]} -> node_{numbers[after]};" for before, after in self.edges()]
        return "\n".join([*lines, "}", ""])


# The driver answers CUDA_ERROR_INVALID_VALUE for wrong handles of graphs.
graphs: Handles[Graph] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)
nodes: Handles[Node] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def find_graph(handle: Any) -> Graph:
    """Return the graph of a handle, or raise CUDA_ERROR_INVALID_VALUE."""
    return graphs.find(handle)


def find_node(handle: Any) -> Node:
    """Return the node of a handle, or raise CUDA_ERROR_INVALID_VALUE."""
    return nodes.find(handle)


@entry(values=1)
def cuGraphCreate(flags: Any) -> Any:
    """Make an empty graph, as cuGraphCreate."""
    if number(flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUgraph(Graph().handle)


@entry()
def cuGraphDestroy(hGraph: Any) -> None:
    """End a graph and its nodes, as cuGraphDestroy."""
    find_graph(hGraph).destroy()


@entry(values=1)
def cuGraphClone(originalGraph: Any) -> Any:
    """Return a graph with the same nodes, as cuGraphClone."""
    original = find_graph(originalGraph)
    clone = Graph()
    copies: dict[Node, Node] = {}
    for node in original.nodes:
        copies[node] = clone.add(node.operation, [copies[before] for before in node.dependencies])
    return CUgraph(clone.handle)


@entry(values=1)
def cuGraphAddHostNode(hGraph: Any, dependencies: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a call of a host function after the given nodes, as cuGraphAddHostNode."""
    graph = find_graph(hGraph)
    before = [find_node(node) for node in (dependencies or [])[: number(numDependencies)]]
    if nodeParams is None or not int(nodeParams.fn) or any(node not in graph.nodes for node in before):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUgraphNode(graph.add(HostCall(int(nodeParams.fn), host_address(nodeParams.userData)), before).handle)


def _listed(found: list[Node], wanted: int) -> tuple[list[Any], int]:
    """Return up to so many handles, and their number; with none wanted, how many there are."""
    if not wanted:
        return [], len(found)
    given = [CUgraphNode(node.handle) for node in found[:wanted]]
    return given + [CUgraphNode() for _ in range(wanted - len(given))], min(wanted, len(found))


@entry(values=2)
def cuGraphGetNodes(hGraph: Any, numNodes: Any = 0) -> tuple[list[Any], int]:
    """Return a graph's nodes, or with 0 how many there are, as cuGraphGetNodes."""
    return _listed(find_graph(hGraph).nodes, number(numNodes))


@entry(values=2)
def cuGraphGetRootNodes(hGraph: Any, numRootNodes: Any = 0) -> tuple[list[Any], int]:
    """Return the nodes that come after no other, or with 0 how many there are, as cuGraphGetRootNodes."""
    roots = [node for node in find_graph(hGraph).nodes if not node.dependencies]
    return _listed(roots, number(numRootNodes))


@entry(values=4)
def cuGraphGetEdges(hGraph: Any, numEdges: Any = 0) -> tuple[list[Any], list[Any], list[Any], int]:
    """Return a graph's edges, or with 0 how many there are, as cuGraphGetEdges."""
    edges = find_graph(hGraph).edges()
    wanted = number(numEdges)
    before, count = _listed([edge[0] for edge in edges], wanted)
    after, _ = _listed([edge[1] for edge in edges], wanted)
    return before, after, [CUgraphEdgeData() for _ in range(wanted)], count


@entry(values=3)
def cuGraphNodeGetDependencies(hNode: Any, numDependencies: Any = 0) -> tuple[list[Any], list[Any], int]:
    """Return the nodes before a node, or with 0 how many there are, as cuGraphNodeGetDependencies."""
    wanted = number(numDependencies)
    before, count = _listed(list(find_node(hNode).dependencies), wanted)
    return before, [CUgraphEdgeData() for _ in range(wanted)], count


@entry(values=1)
def cuGraphNodeGetType(hNode: Any) -> Any:
    """Return a node's type, as cuGraphNodeGetType."""
    return find_node(hNode).kind


@entry()
def cuGraphDebugDotPrint(hGraph: Any, path: Any, flags: Any) -> None:
    """Write the graph to a file in the language of Graphviz, as cuGraphDebugDotPrint."""
    graph = find_graph(hGraph)
    if not path or number(flags) < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(graph.dot())
    except OSError:
        raise StatusError(CUresult.CUDA_ERROR_OPERATING_SYSTEM) from None
