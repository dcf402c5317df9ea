"""Conditional nodes: conditions, and nodes with one graph per body."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings.driver import (
    CU_GRAPH_COND_ASSIGN_DEFAULT,
    CUgraphConditionalHandle,
    CUgraphConditionalNodeType,
    CUgraphNode,
    CUgraphNodeType,
    CUresult,
)

from ...state.arguments import number
from ...state.contexts import current, find_context
from ...state.errors import StatusError
from ...state.queue.conditionals import Condition, Conditional
from ...state.queue.graphs import Graph, find_graph, find_nodes
from ..entry import entry

_KIND = CUgraphConditionalNodeType
# The offset in bytes of the graphs in CUDA_CONDITIONAL_NODE_PARAMS, after the handle, the type and the size.
_GRAPHS_OFFSET = 16


@entry(values=1)
def cuGraphConditionalHandleCreate(hGraph: Any, ctx: Any, defaultLaunchValue: Any, flags: Any) -> Any:
    """Create a condition for a conditional node of a graph (cuGraphConditionalHandleCreate)."""
    graph, given = find_graph(hGraph), number(flags)
    context = find_context(ctx) if number(ctx) else current()
    if given & ~CU_GRAPH_COND_ASSIGN_DEFAULT:
        raise _refuse()
    condition = Condition(context, number(defaultLaunchValue) & 0xFFFFFFFF, assigned=bool(given))
    graph.conditions.append(condition)
    return CUgraphConditionalHandle(condition.handle)


@entry(values=1)
def cuGraphAddNode(hGraph: Any, dependencies: Any, dependencyData: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a conditional node after the given nodes; other types of nodes are not supported (cuGraphAddNode)."""
    graph = find_graph(hGraph)
    before = find_nodes(graph, dependencies, numDependencies)
    if nodeParams is None:
        raise _refuse()
    if nodeParams.type != CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    given = nodeParams.conditional
    kind, size = given.type, int(given.size)
    most = {_KIND.CU_GRAPH_COND_TYPE_WHILE: 1, _KIND.CU_GRAPH_COND_TYPE_IF: 2}.get(kind, size)
    if not 1 <= size <= most:
        raise _refuse()
    condition = _find_condition(graph, number(given.handle))
    if condition.used or (number(given.ctx) and find_context(given.ctx) is not condition.context):
        raise _refuse()
    conditional = Conditional(condition, kind, tuple(Graph(graph) for _ in range(size)))
    condition.used = True
    node = graph.add(conditional, before)
    ctypes.c_size_t.from_address(given.getPtr() + _GRAPHS_OFFSET).value = ctypes.addressof(conditional.handles)
    return CUgraphNode(node.handle)


def _find_condition(graph: Graph, handle: int) -> Condition:
    """Return the condition that a handle refers to; it must belong to the graph or to a graph that contains it."""
    outer: Graph | None = graph
    while outer is not None:
        for condition in outer.conditions:
            if condition.handle == handle:
                return condition
        outer = outer.parent
    raise _refuse()


def _refuse() -> StatusError:
    return StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
