"""The order among a graph's nodes while it runs, which says which of them may meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...state.queue.work import Piece, Work

__all__ = ["NodeOrder", "RunningNode"]

# Larger graphs are taken as if each node came after all those that have run.
_MOST_NODES = 1024


class NodeOrder:
    """The nodes directly before each node, by their places."""

    def __init__(self, before: Sequence[frozenset[int]]) -> None:
        self.before = tuple(before)

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...] | None:
        """The nodes before each node, direct or not; None where the nodes are in one line."""
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
    """A node of a graph that runs, as a part of the piece of work that launched the graph."""

    __slots__ = ("ancestors", "place", "work")

    def __init__(self, running: Work, place: int, ancestors: frozenset[int]) -> None:
        self.work = running
        self.place = place
        self.ancestors = ancestors

    def comes_after(self, other: Piece) -> bool:
        """Return whether another piece of work, already done, happens before this node."""
        if isinstance(other, RunningNode) and other.work is self.work:
            return other.place in self.ancestors or other.place == self.place
        return self.work.comes_after(other)
