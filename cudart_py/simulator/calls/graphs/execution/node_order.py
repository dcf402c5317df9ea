"""The order among a graph's nodes while it runs, which determines which of them may overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ....checks.findings import mode
from ....state.queue.operations import Operation, Waits
from ....state.queue.runner import Piece, runner
from ....state.queue.work import Work

if TYPE_CHECKING:
    from ....state.contexts import Context

# In larger graphs, each node is treated as if it came after all nodes that have already run.
_MOST_NODES = 1024


class NodeOrder:
    """The direct predecessors of each node, by position, and the positions in the order of the nodes' creation."""

    def __init__(self, before: Sequence[frozenset[int]], created: Sequence[int]) -> None:
        self.before = tuple(before)
        self.created = tuple(created)

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...] | None:
        """All predecessors of each node, direct or not; None if the nodes form one chain, or are too many."""
        count = len(self.before)
        if count > _MOST_NODES:
            return None
        found: dict[int, frozenset[int]] = {}
        while len(found) < count:
            for place, before in enumerate(self.before):
                if place not in found and all(one in found for one in before):
                    found[place] = before.union(*(found[one] for one in before))
        lengths = sorted(len(ancestors) for ancestors in found.values())
        return None if lengths == list(range(count)) else tuple(found[place] for place in range(count))


class RunningNode:
    """A running node; `parent` is the work that launched the graph, or the conditional node whose body contains it.

    `run` distinguishes this run of the graph from others, such as other iterations of a loop.
    """

    __slots__ = ("ancestors", "parent", "place", "run")

    def __init__(self, parent: Piece, run: object, place: int, ancestors: frozenset[int]) -> None:
        self.parent = parent
        self.run = run
        self.place = place
        self.ancestors = ancestors

    @property
    def work(self) -> Work:
        """The piece of work that launched the graph."""
        return self.parent.work

    def comes_after(self, piece: Piece) -> bool:
        """Return whether another piece of work, already done, happens before this node."""
        other = piece
        while isinstance(other, RunningNode):
            if other.run is self.run:
                return other.place in self.ancestors or other.place == self.place
            other = other.parent
        return self.parent.comes_after(piece)

    def shares_graph(self, piece: Piece) -> bool:
        """Return whether another piece of work is a node of the same launch of a graph."""
        return isinstance(piece, RunningNode) and piece.work is self.work


def run_nodes(operations: Sequence[Operation], order: NodeOrder, context: Context) -> Iterator[Waits]:
    """Run the operations of a graph, in steps like `Operation.steps`; of those that are ready, the last one runs first.

    Any order that respects the dependencies is correct, and this one reveals missing dependencies.
    """
    waiting = list(order.created)
    done: set[int] = set()
    held: dict[int, tuple[Iterator[Waits], Waits]] = {}  # the rest of the steps of nodes that wait for values
    before, running, run = order.before, runner.piece, object()
    ancestors = None if mode() == "off" or running is None else order.ancestors

    def ready(place: int) -> bool:
        return before[place] <= done and (place not in held or any(wait.met for wait in held[place][1]))

    while waiting:
        runner.poll()
        place = next(filter(ready, reversed(waiting)), None)
        if place is None:
            yield tuple(wait for _, waits in held.values() for wait in waits)
            continue
        if ancestors is not None and running is not None:
            # Nodes that no edges order may overlap.
            runner.piece = RunningNode(running, run, place, ancestors[place])
        steps = held.pop(place)[0] if place in held else operations[place].steps(context)
        waits = next(steps, ())
        if waits:
            held[place] = steps, waits
        else:
            waiting.remove(place)
            done.add(place)
    runner.piece = running
