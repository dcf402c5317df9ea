"""Flat graphs: the operations of a graph and of its child graphs in one list, with their dependencies."""

from __future__ import annotations

from typing import Any

from ....state.queue.conditionals import Conditional
from ....state.queue.graphs import ChildGraph, Graph, Node
from ....state.queue.operations import Operation
from .bodies import RunConditional
from .node_order import NodeOrder


def kinds_of(graph: Graph) -> tuple[Any, ...]:
    """Return the kind of each node: its type or, for a node with graphs inside, a tuple of the kinds of their nodes."""
    return tuple(_kind(node.operation) for node in graph.ordered())


def _kind(operation: Operation) -> Any:
    if isinstance(operation, Conditional):
        return Conditional, operation.kind, *map(kinds_of, operation.bodies)
    return kinds_of(operation.graph) if isinstance(operation, ChildGraph) else operation.node_type


class FlatGraph:
    """The operations of a graph; `before` contains, for each of them, the positions of its direct predecessors.

    `created` lists the positions in the order in which the nodes were created.
    `places` maps the handle of a node, including nodes inside child graphs, to the position of its operation.
    `children` maps the handle of a child graph's node to the positions of all operations of the child graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.operations: list[Operation] = []
        self.before: list[frozenset[int]] = []
        self.places: dict[int, int] = {}
        self.children: dict[int, range] = {}
        self._ranks: list[tuple[int, ...]] = []
        self._add(graph, frozenset(), ())
        self.created = sorted(range(len(self._ranks)), key=self._ranks.__getitem__)

    def _to_run(self, operation: Operation) -> Operation:
        """Return the operation to run; for a conditional node, it contains the bodies as they are now."""
        if not isinstance(operation, Conditional):
            return operation
        bodies = [FlatGraph(body) for body in operation.bodies]
        return RunConditional(operation, [(body.operations, NodeOrder(body.before, body.created)) for body in bodies])

    def _add(self, graph: Graph, entry: frozenset[int], rank: tuple[int, ...]) -> frozenset[int]:
        """Add the operations of a graph after the positions `entry`, and return the positions of its last ones."""
        ends: dict[Node, frozenset[int]] = {}
        ranks = {node: (*rank, index) for index, node in enumerate(graph.nodes)}
        for node in graph.ordered():
            start = frozenset[int]().union(*(ends[before] for before in node.dependencies)) or entry
            first = len(self.operations)
            if isinstance(node.operation, ChildGraph):
                ends[node] = self._add(node.operation.graph, start, ranks[node])
                self.children[node.handle] = range(first, len(self.operations))
            else:
                self.operations.append(self._to_run(node.operation))
                self.before.append(start)
                self._ranks.append(ranks[node])
                self.places[node.handle] = first
                ends[node] = frozenset({first})
        followed = {before for node in graph.nodes for before in node.dependencies}
        return frozenset[int]().union(*(places for node, places in ends.items() if node not in followed)) or entry
