"""Graphs: creating, copying, querying, drawing and destroying them."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUgraph, CUgraphEdgeData, CUgraphNode, CUresult

from ...state.arguments import host_address, number
from ...state.errors import StatusError
from ...state.queue.graphs import ChildGraph, Graph, Node, find_graph, find_node, find_nodes, graphs
from ..entry import entry
from ..launches.host_functions import HostCall
from ..memory.graph_memory import AllocateInGraph, FreeInGraph


@entry(values=1)
def cuGraphCreate(flags: Any) -> Any:
    """Create an empty graph (cuGraphCreate)."""
    if number(flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUgraph(Graph().handle)


@entry(frees=True)
def cuGraphDestroy(hGraph: Any) -> None:
    """Destroy a graph and its nodes (cuGraphDestroy)."""
    find_graph(hGraph).destroy()


@entry(values=1)
def cuGraphClone(originalGraph: Any) -> Any:
    """Return a copy of a graph (cuGraphClone)."""
    return CUgraph(find_graph(originalGraph).clone().handle)


@entry(values=1)
def cuGraphAddHostNode(hGraph: Any, dependencies: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a call of a host function after the given nodes (cuGraphAddHostNode)."""
    graph = find_graph(hGraph)
    before = find_nodes(graph, dependencies, numDependencies)
    if nodeParams is None or not int(nodeParams.fn):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUgraphNode(graph.add(HostCall(int(nodeParams.fn), host_address(nodeParams.userData)), before).handle)


@entry(values=1)
def cuGraphAddChildGraphNode(hGraph: Any, dependencies: Any, numDependencies: Any, childGraph: Any) -> Any:
    """Add a copy of another graph as one node after the given nodes (cuGraphAddChildGraphNode)."""
    graph, child = find_graph(hGraph), find_graph(childGraph)
    before = find_nodes(graph, dependencies, numDependencies)
    if graph is child:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    # `clone` refuses conditional nodes.
    if any(isinstance(node.operation, AllocateInGraph | FreeInGraph) for node in child.nodes):
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    return CUgraphNode(graph.add(ChildGraph(child.clone()), before).handle)


@entry(values=1)
def cuGraphChildGraphNodeGetGraph(hNode: Any) -> Any:
    """Return the graph inside a node, which keeps its ownership (cuGraphChildGraphNodeGetGraph)."""
    operation = find_node(hNode).operation
    if not isinstance(operation, ChildGraph):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUgraph(operation.graph.handle)


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
    dependents = [other for graph in graphs for other in graph.nodes if node in other.dependencies]
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
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(graph.dot(number(flags)))
    except OSError:
        raise StatusError(CUresult.CUDA_ERROR_OPERATING_SYSTEM) from None
