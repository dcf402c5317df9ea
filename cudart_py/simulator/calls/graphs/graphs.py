"""Graphs: creating, copying, querying, drawing and destroying them, and changing the edges between their nodes."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUgraph, CUgraphEdgeData, CUgraphNode, CUresult

from ...state.arguments import number
from ...state.errors import StatusError, invalid_value
from ...state.queue import captures
from ...state.queue.graphs import ChildGraph, Graph, Node, find_graph, find_node
from ..entry import entry


@entry(values=1)
def cuGraphCreate(flags: Any) -> Any:
    """Create an empty graph (cuGraphCreate)."""
    if number(flags):
        raise invalid_value()
    return CUgraph(Graph().handle)


@entry(frees=True)
def cuGraphDestroy(hGraph: Any) -> None:
    """Destroy a graph and its nodes, unless it is inside a node of another graph (cuGraphDestroy)."""
    graph = find_graph(hGraph)
    if graph.owned:
        raise invalid_value()
    if captures.is_captured(graph):
        raise StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)
    graph.destroy()


@entry(values=1)
def cuGraphClone(originalGraph: Any) -> Any:
    """Return a copy of a graph (cuGraphClone)."""
    return CUgraph(find_graph(originalGraph).clone().handle)


@entry(values=1)
def cuGraphChildGraphNodeGetGraph(hNode: Any) -> Any:
    """Return the graph inside a node, which keeps its ownership (cuGraphChildGraphNodeGetGraph)."""
    operation = find_node(hNode).operation
    if not isinstance(operation, ChildGraph):
        raise invalid_value()
    return CUgraph(operation.graph.handle)


@entry(values=1)
def cuGraphNodeFindInClone(hOriginalNode: Any, hClonedGraph: Any) -> Any:
    """Return the node of a copied graph that corresponds to a node of the original (cuGraphNodeFindInClone)."""
    graph, original = find_graph(hClonedGraph), find_node(hOriginalNode).handle
    found = next((node for node in graph.nodes if node.original == original), None)
    if found is None:
        raise invalid_value()
    return CUgraphNode(found.handle)


def _edges(graph: Graph, before: Any, after: Any, data: Any, count: Any) -> list[tuple[Node, Node]]:
    """Return the edges that the arguments of a call describe, as pairs of nodes of a graph."""
    wanted = number(count)
    starts, ends = ([find_node(node) for node in list(nodes or ())[:wanted]] for nodes in (before, after))
    edges = list(zip(starts, ends, strict=False))
    if len(starts) != wanted or len(ends) != wanted or any(one.graph != graph.handle for one in starts + ends):
        raise invalid_value()
    if any(edge.from_port or edge.to_port or int(edge.type) for edge in list(data or ())[:wanted]):
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    return edges


@entry()
def cuGraphAddDependencies(hGraph: Any, from_: Any, to: Any, edgeData: Any, numDependencies: Any) -> None:
    """Make nodes depend on other nodes; only an instantiation detects cycles (cuGraphAddDependencies)."""
    graph = find_graph(hGraph)
    edges = _edges(graph, from_, to, edgeData, numDependencies)
    if len(set(edges)) < len(edges) or any(one is other or one in other.dependencies for one, other in edges):
        raise invalid_value()
    for before, after in edges:
        after.dependencies = (*after.dependencies, before)


@entry()
def cuGraphRemoveDependencies(hGraph: Any, from_: Any, to: Any, edgeData: Any, numDependencies: Any) -> None:
    """Remove edges, which must exist, from a graph without memory nodes (cuGraphRemoveDependencies)."""
    graph = find_graph(hGraph)
    edges = _edges(graph, from_, to, edgeData, numDependencies)
    if len(set(edges)) < len(edges) or any(before not in after.dependencies for before, after in edges):
        raise invalid_value()
    _require_no_memory(graph)
    for before, after in edges:
        after.dependencies = tuple(one for one in after.dependencies if one is not before)


@entry(frees=True)
def cuGraphDestroyNode(hNode: Any) -> None:
    """Remove a node and its edges from a graph without memory nodes (cuGraphDestroyNode)."""
    node = find_node(hNode)
    graph = find_graph(node.graph)
    _require_no_memory(graph)
    graph.remove(node)


def _require_no_memory(graph: Graph) -> None:
    """Raise CUDA_ERROR_NOT_SUPPORTED for a graph that allocates or frees memory: its nodes and edges must stay."""
    if graph.has_memory:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)


def _listed(found: list[Node], wanted: int) -> tuple[list[Any], int]:
    """Return up to `wanted` handles, and their number; if `wanted` is 0, return no handles and their total number."""
    if not wanted:
        return [], len(found)
    given = [CUgraphNode(node.handle) for node in found[:wanted]]
    return given + [CUgraphNode() for _ in range(wanted - len(given))], min(wanted, len(found))


@entry(values=2)
def cuGraphGetNodes(hGraph: Any, numNodes: Any = 0) -> tuple[list[Any], int]:
    """Return a graph's nodes, or with 0 how many there are (cuGraphGetNodes)."""
    return _listed(find_graph(hGraph).nodes, number(numNodes))


@entry(values=2)
def cuGraphGetRootNodes(hGraph: Any, numRootNodes: Any = 0) -> tuple[list[Any], int]:
    """Return the nodes without dependencies, or with 0 how many there are (cuGraphGetRootNodes)."""
    roots = [node for node in find_graph(hGraph).nodes if not node.dependencies]
    return _listed(roots, number(numRootNodes))


@entry(values=4)
def cuGraphGetEdges(hGraph: Any, numEdges: Any = 0) -> tuple[list[Any], list[Any], list[Any], int]:
    """Return a graph's edges, or with 0 how many there are (cuGraphGetEdges)."""
    edges = find_graph(hGraph).edges()
    wanted = number(numEdges)
    before, count = _listed([edge[0] for edge in edges], wanted)
    after, _ = _listed([edge[1] for edge in edges], wanted)
    return before, after, [CUgraphEdgeData() for _ in range(wanted)], count


@entry(values=3)
def cuGraphNodeGetDependencies(hNode: Any, numDependencies: Any = 0) -> tuple[list[Any], list[Any], int]:
    """Return the nodes on which a node depends, or with 0 how many there are (cuGraphNodeGetDependencies)."""
    wanted = number(numDependencies)
    before, count = _listed(list(find_node(hNode).dependencies), wanted)
    return before, [CUgraphEdgeData() for _ in range(wanted)], count


@entry(values=3)
def cuGraphNodeGetDependentNodes(hNode: Any, numDependentNodes: Any = 0) -> tuple[list[Any], list[Any], int]:
    """Return the nodes that depend on a node, or with 0 how many there are (cuGraphNodeGetDependentNodes)."""
    node, wanted = find_node(hNode), number(numDependentNodes)
    # Nodes don't refer to the nodes that depend on them, because that would form reference cycles.
    dependents = [other for other in find_graph(node.graph).nodes if node in other.dependencies]
    after, count = _listed(dependents, wanted)
    return after, [CUgraphEdgeData() for _ in range(wanted)], count


@entry(values=1)
def cuGraphNodeGetType(hNode: Any) -> Any:
    """Return a node's type (cuGraphNodeGetType)."""
    return find_node(hNode).type


@entry()
def cuGraphDebugDotPrint(hGraph: Any, path: Any, flags: Any) -> None:
    """Write the graph to a file in Graphviz's DOT language (cuGraphDebugDotPrint)."""
    graph = find_graph(hGraph)
    if not path or number(flags) < 0:
        raise invalid_value()
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(graph.dot(number(flags)))
    except OSError:
        raise StatusError(CUresult.CUDA_ERROR_OPERATING_SYSTEM) from None
