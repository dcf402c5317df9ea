"""Graphs: operations and the order among them, created by stream capture or by calls, and kept for many launches.

A node holds the same operation that would otherwise have been submitted to a stream: the parameters of a kernel are
copied when it is captured, and host memory is read when the node runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUgraphDebugDot_flags, CUgraphNodeType, CUresult

from ..arguments import number
from ..errors import StatusError
from ..handles import Handles
from .conditionals import Condition, Conditional
from .operations import Operation
from .user_objects import References

if TYPE_CHECKING:
    from ..contexts import Context

_MEMORY = (CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE)
_DOT = CUgraphDebugDot_flags
# The flag that requests the parameters of nodes, for each type of node.
_PARAMETERS = {
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL: _DOT.CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS,
}


class Empty(Operation):
    """The operation of a node that only orders other nodes, and of a disabled node in an executable graph."""

    __slots__ = ()

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY

    def run(self, context: Context) -> None:
        """Do nothing."""


class Node:
    """An operation in a graph and the nodes on which it depends.

    `graph` is the handle of the graph, since a reference would form a cycle. `original` is the handle of the node that
    this node is a copy of, or 0. `exposed` is the memory to which the parameters point that calls have returned.
    """

    __slots__ = ("dependencies", "exposed", "graph", "handle", "operation", "original", "type")

    def __init__(
        self, graph: int, operation: Operation, type: CUgraphNodeType, dependencies: tuple[Node, ...], original: int = 0
    ) -> None:
        self.graph = graph
        self.operation = operation
        self.type = type
        self.dependencies = dependencies
        self.original = original
        self.exposed: object = None
        self.handle = nodes.add(self)


class Graph:
    """Nodes in the order in which they were created, and the conditions made for the graph.

    If the graph is a body of a conditional node, `parent` is the graph that contains that node. `owned` says that the
    graph is inside a node, and is destroyed with it. `references` are the references to user objects that it owns.
    """

    def __init__(self, parent: Graph | None = None) -> None:
        self.owned = parent is not None
        self.nodes: list[Node] = []
        self.conditions: list[Condition] = []
        self.parent = parent
        self.references = References()
        self.handle = graphs.add(self)

    @property
    def inner(self) -> list[Graph]:
        """Return all graphs inside: child graphs and bodies of conditional nodes, and the graphs inside those."""
        found: list[Graph] = []
        for node in self.nodes:
            for graph in node.operation.inner:
                found += [graph, *graph.inner]
        return found

    @property
    def has_memory(self) -> bool:
        """Return whether a node of the graph or of a child graph allocates or frees memory."""
        return any(node.type in _MEMORY for graph in (self, *self.inner) for node in graph.nodes)

    def add(self, operation: Operation, dependencies: Iterable[Node], original: int = 0) -> Node:
        """Add an operation after the given nodes; raise CUDA_ERROR_NOT_SUPPORTED for one that no graph can hold."""
        if operation.node_type is None:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        node = Node(self.handle, operation, operation.node_type, tuple(dependencies), original)
        self.nodes.append(node)
        return node

    def remove(self, node: Node) -> None:
        """Remove a node, its child graph and its edges."""
        self.nodes.remove(node)
        for other in self.nodes:
            if node in other.dependencies:
                other.dependencies = tuple(before for before in other.dependencies if before is not node)
        _forget(node)

    def ordered(self) -> list[Node]:
        """Return the nodes, each after those on which it depends; raise CUDA_ERROR_INVALID_VALUE if they form a cycle.

        The order starts at the nodes on which no other depends, in the order of their creation, and follows each node's
        dependencies in the order in which they were added. So two graphs with the same edges have corresponding nodes
        at the same positions, even if these were created in a different order. The driver pairs nodes in this way too.
        """
        followed = {before for node in self.nodes for before in node.dependencies}
        found: dict[Node, None] = {}
        entered: set[Node] = set()
        waiting = [node for node in reversed(self.nodes) if node not in followed]
        while waiting:
            node = waiting.pop()
            if node in entered:
                found[node] = None
                continue
            entered.add(node)
            waiting.append(node)
            for before in reversed(node.dependencies):
                if before not in entered:
                    waiting.append(before)
                elif before not in found:
                    raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        if len(found) != len(self.nodes):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return list(found)

    def edges(self) -> list[tuple[Node, Node]]:
        """Return the edges, each as a node and a node that depends on it."""
        return [(before, node) for node in self.nodes for before in node.dependencies]

    def destroy(self) -> None:
        """Remove the graph, its nodes and their child graphs from the handles, and release their user objects."""
        for node in self.nodes:
            _forget(node)
        graphs.remove(self.handle)
        self.references.release_all()

    def clone(self) -> Graph:
        """Return a graph with new nodes for the same operations and user objects; child graphs are copied too.

        Raises CUDA_ERROR_NOT_SUPPORTED for a graph with conditional nodes or memory nodes, which can't be copied.
        """
        conditional = any(
            isinstance(node.operation, Conditional) for graph in (self, *self.inner) for node in graph.nodes
        )
        if conditional or self.has_memory:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        made = Graph()
        copies: dict[Node, Node] = {}
        for node in self.nodes:
            operation = node.operation
            if isinstance(operation, ChildGraph):
                operation = ChildGraph(operation.graph.clone())
            copies[node] = made.add(operation, (), node.handle)
        for node, copy in copies.items():
            copy.dependencies = tuple(copies[before] for before in node.dependencies)
        made.references = self.references.copy()
        return made

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
        graph.owned = True

    @property
    def inner(self) -> tuple[Graph, ...]:
        """Return the graph."""
        return (self.graph,)

    def describe(self) -> str:
        """Return the number of nodes in the child graph."""
        return f"of {len(self.graph.nodes)} nodes"


def _forget(node: Node) -> None:
    """Remove a node and the graphs inside it from the handles, and undo the effects of adding its operation."""
    node.operation.discard()
    for graph in node.operation.inner:
        graph.destroy()
    nodes.remove(node.handle)


# The driver returns CUDA_ERROR_INVALID_VALUE for invalid handles of graphs.
graphs: Handles[Graph] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)
nodes: Handles[Node] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def find_graph(handle: Any) -> Graph:
    """Return the graph that a handle refers to, or raise CUDA_ERROR_INVALID_VALUE."""
    return graphs.find(handle)


def find_nodes(graph: Graph, handles: Any, count: Any) -> list[Node]:
    """Return the nodes for the first `count` handles.

    Raises CUDA_ERROR_INVALID_VALUE if one of them is not in the graph, or is given twice, and RuntimeError for fewer
    handles, as NVIDIA's bindings do.
    """
    handles, wanted = handles or [], number(count)
    if len(handles) < wanted:
        raise RuntimeError(f"List is too small: {len(handles)} < {wanted}")
    found = [find_node(handle) for handle in handles[:wanted]]
    if any(node.graph != graph.handle for node in found) or len(set(found)) < len(found):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return found


def find_node(handle: Any) -> Node:
    """Return the node that a handle refers to, or raise CUDA_ERROR_INVALID_VALUE."""
    return nodes.find(handle)
