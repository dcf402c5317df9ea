"""Graphs: operations and the order among them, created by stream capture or by calls, and kept for many launches.

A node holds the same operation that would otherwise have been submitted to a stream: the parameters of a kernel are
copied when it is captured, and host memory is read when the node runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cuda.bindings.driver import CUgraphDebugDot_flags, CUgraphNodeType, CUresult

from ..arguments import number
from ..errors import StatusError
from ..handles import Handles
from .conditionals import Condition, Conditional
from .operations import Operation

_DOT = CUgraphDebugDot_flags
# The flag that requests the parameters of nodes, for each type of node.
_PARAMETERS = {
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS,
}


class Node:
    """An operation in a graph and the nodes on which it depends."""

    __slots__ = ("dependencies", "handle", "operation", "type")

    def __init__(self, operation: Operation, type: CUgraphNodeType, dependencies: tuple[Node, ...]) -> None:
        self.operation = operation
        self.type = type
        self.dependencies = dependencies
        self.handle = nodes.add(self)


class Graph:
    """A list of nodes, each after those on which it depends, and the conditions made for the graph.

    If the graph is a body of a conditional node, `parent` is the graph that contains that node.
    """

    def __init__(self, parent: Graph | None = None) -> None:
        self.nodes: list[Node] = []
        self.conditions: list[Condition] = []
        self.parent = parent
        self.handle = graphs.add(self)

    @property
    def inner(self) -> list[Graph]:
        """Return all graphs inside: child graphs and bodies of conditional nodes, and the graphs inside those."""
        found: list[Graph] = []
        for node in self.nodes:
            for graph in node.operation.inner:
                found += [graph, *graph.inner]
        return found

    def add(self, operation: Operation, dependencies: Iterable[Node]) -> Node:
        """Add an operation after the given nodes; raise CUDA_ERROR_NOT_SUPPORTED for one that no graph can hold."""
        if operation.node_type is None:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        node = Node(operation, operation.node_type, tuple(dependencies))
        self.nodes.append(node)
        return node

    def edges(self) -> list[tuple[Node, Node]]:
        """Return the edges, each as a node and a node that depends on it."""
        return [(before, node) for node in self.nodes for before in node.dependencies]

    def destroy(self) -> None:
        """Remove the graph, its nodes and their child graphs from the handles."""
        for node in self.nodes:
            for graph in node.operation.inner:
                graph.destroy()
            nodes.remove(node.handle)
        graphs.remove(self.handle)

    def clone(self) -> Graph:
        """Return a graph with new nodes for the same operations; child graphs are copied too.

        Raises CUDA_ERROR_NOT_SUPPORTED for a graph with conditional nodes, which can't be copied.
        """
        if any(isinstance(node.operation, Conditional) for graph in (self, *self.inner) for node in graph.nodes):
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        made = Graph()
        copies: dict[Node, Node] = {}
        for node in self.nodes:
            operation = node.operation
            if isinstance(operation, ChildGraph):
                operation = ChildGraph(operation.graph.clone())
            copies[node] = made.add(operation, [copies[before] for before in node.dependencies])
        return made

    def discard(self) -> None:
        """Destroy the graph of a capture that failed, and undo the effects of capturing its operations."""
        for node in self.nodes:
            node.operation.discard()
        self.destroy()

    def dot(self, flags: int = 0) -> str:
        """Return the graph in Graphviz's DOT language; `flags` (CUgraphDebugDot_flags) add parameters and handles."""
        numbers = {node: number for number, node in enumerate(self.nodes)}
        lines = ["digraph dot {", '  node [shape="rectangle"];']
        for node, index in numbers.items():
            kind = node.type.name.removeprefix("CU_GRAPH_NODE_TYPE_")
            parts = [str(index), kind, node.operation.describe()]
            if flags & (_DOT.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES):
                parts.append(f"node {node.handle:#x}")
            if flags & (_DOT.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | _PARAMETERS.get(node.type, 0)):
                parts += node.operation.parameters()
            text = "\n".join(filter(None, parts)).replace('"', r"\"").replace("\n", r"\n")
            lines.append(f'  node_{index} [label="{text}"];')
        lines += [f"  node_{numbers[before]} -> node_{numbers[after]};" for before, after in self.edges()]
        return "\n".join([*lines, "}", ""])


class ChildGraph(Operation):
    """A graph inside a node of another graph, which owns it; executable graphs hold the child's operations instead."""

    __slots__ = ("graph",)

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def inner(self) -> tuple[Graph, ...]:
        """Return the graph."""
        return (self.graph,)

    def describe(self) -> str:
        """Return the number of nodes in the child graph."""
        return f"of {len(self.graph.nodes)} nodes"


# The driver returns CUDA_ERROR_INVALID_VALUE for invalid handles of graphs.
graphs: Handles[Graph] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)
nodes: Handles[Node] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def find_graph(handle: Any) -> Graph:
    """Return the graph that a handle refers to, or raise CUDA_ERROR_INVALID_VALUE."""
    return graphs.find(handle)


def find_nodes(graph: Graph, handles: Any, count: Any) -> list[Node]:
    """Return the nodes for the first `count` handles; raise CUDA_ERROR_INVALID_VALUE if one is not in the graph.

    Raises RuntimeError for fewer handles, as NVIDIA's bindings do.
    """
    handles, count = handles or [], number(count)
    if len(handles) < count:
        raise RuntimeError(f"List is too small: {len(handles)} < {count}")
    found = [find_node(handle) for handle in handles[:count]]
    if any(node not in graph.nodes for node in found):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return found


def find_node(handle: Any) -> Node:
    """Return the node that a handle refers to, or raise CUDA_ERROR_INVALID_VALUE."""
    return nodes.find(handle)
