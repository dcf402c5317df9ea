"""Bisection of a sequence whose items may be impossible to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Found(NamedTuple, Generic[Item]):
    """The first bad item that was seen, and the items directly before it, oldest first, that could not be judged."""

    first_bad: Item
    undecided: list[Item]


def bisect(items: Sequence[Item], is_bad: Callable[[Item], bool | None]) -> Found[Item]:
    """Find where a sequence becomes bad: the item before the first is good, and the last is bad.

    `is_bad` returns None for an item that cannot be judged; an item near it is then tried instead. If good and bad
    items alternate, the result is one of the places at which the sequence becomes bad.
    """
    good, bad = -1, len(items) - 1
    undecided: set[int] = set()
    while True:
        middle = (good + bad) // 2
        left = [place for place in range(good + 1, bad) if place not in undecided]
        if not left:
            return Found(items[bad], [items[place] for place in range(good + 1, bad)])
        place = min(left, key=lambda place: abs(place - middle))
        verdict = is_bad(items[place])
        if verdict is None:
            undecided.add(place)
        elif verdict:
            bad = place
        else:
            good = place
