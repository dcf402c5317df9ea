"""Conditions, and the conditional nodes that depend on them, which have one graph per body."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import (
    CU_GRAPH_COND_ASSIGN_DEFAULT,
    CUgraphConditionalHandle,
    CUgraphConditionalNodeType,
)

from ...state.arguments import number
from ...state.contexts import find_context, given_context
from ...state.errors import invalid_value
from ...state.queue.conditionals import Condition, Conditional
from ...state.queue.graphs import Graph, find_graph
from ..entry import entry

_KIND = CUgraphConditionalNodeType


@entry(values=1)
def cuGraphConditionalHandleCreate(hGraph: Any, ctx: Any, defaultLaunchValue: Any, flags: Any) -> Any:
    """Create a condition for a conditional node of a graph (cuGraphConditionalHandleCreate)."""
    graph, given = find_graph(hGraph), number(flags)
    context = given_context(ctx)
    if given & ~CU_GRAPH_COND_ASSIGN_DEFAULT:
        raise invalid_value()
    condition = Condition(context, number(defaultLaunchValue) & 0xFFFFFFFF, assigned=bool(given))
    graph.conditions.append(condition)
    return CUgraphConditionalHandle(condition.handle)


def conditional_of(graph: Graph, parameters: Any) -> Conditional:
    """Return the conditional node of a graph that a CUDA_CONDITIONAL_NODE_PARAMS describes."""
    kind, size = parameters.type, int(parameters.size)
    most = {_KIND.CU_GRAPH_COND_TYPE_WHILE: 1, _KIND.CU_GRAPH_COND_TYPE_IF: 2}.get(kind, size)
    if not 1 <= size <= most:
        raise invalid_value()
    condition = _find_condition(graph, number(parameters.handle))
    if condition.used or (number(parameters.ctx) and find_context(parameters.ctx) is not condition.context):
        raise invalid_value()
    condition.used = True
    return Conditional(condition, kind, tuple(Graph(graph) for _ in range(size)))


def _find_condition(graph: Graph, handle: int) -> Condition:
    """Return the condition that a handle refers to; it must belong to the graph or to a graph that contains it."""
    outer: Graph | None = graph
    while outer is not None:
        for condition in outer.conditions:
            if condition.handle == handle:
                return condition
        outer = outer.parent
    raise invalid_value()
