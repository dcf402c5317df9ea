"""Bisection of a sequence whose items may be impossible to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Bisection(NamedTuple, Generic[Item]):
    """The first item that was judged bad, and the items directly before it, oldest first, that were skipped."""

    first_bad: Item
    skipped: list[Item]


def bisect(items: Sequence[Item], is_bad: Callable[[Item], bool | None]) -> Bisection[Item]:
    """Find where a sequence becomes bad: the item before the first is good, and the last is bad.

    `is_bad` returns None for an item that cannot be judged. It is skipped, and an item near it is tried instead. If
    good and bad items alternate, the result is one of the indices at which the sequence becomes bad.
    """
    good, bad = -1, len(items) - 1
    skipped: set[int] = set()
    while True:
        middle = (good + bad) // 2
        left = [index for index in range(good + 1, bad) if index not in skipped]
        if not left:
            return Bisection(items[bad], list(items[good + 1 : bad]))
        index = min(left, key=lambda index: abs(index - middle))
        verdict = is_bad(items[index])
        if verdict is None:
            skipped.add(index)
        elif verdict:
            bad = index
        else:
            good = index
