"""Memory as it was at a moment of the history."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .repeating.saved_memory import PIECE_SHIFT, piece_span

if TYPE_CHECKING:
    from .moments import Moment

Array = NDArray[Any]


class PastMemory:
    """The memory at one moment of the history.

    To go back by a moment, the changes of one instruction are undone, and to go forward, they are made again. So a
    search through the history applies each change once, however long the history is.
    """

    def __init__(self, history: deque[Moment]) -> None:
        self._history = history
        # The contents that undone changes had left, per moment. The last ones are those of the earliest moment.
        self._left: list[list[Array]] = []
        # The pieces of memory that these changes are in, keyed by the identity of the array and the piece's number.
        self._pieces: dict[tuple[int, int], Array] = {}

    def clear(self) -> None:
        """Return to the present, because memory or the history changes."""
        self._left.clear()
        self._pieces.clear()

    def read(self, array: Array, where: Array, moment: Moment) -> Array:
        """Return elements of an array as they were at a moment of the history."""
        present = len(self._history)
        target = max(moment.number - self._history[0].number, 0) if present else 0
        while present - len(self._left) > target:
            self._back(self._history[present - len(self._left) - 1])
        while present - len(self._left) < target:
            self._forward(self._history[present - len(self._left)])
        return self._elements(array, where)

    def _back(self, moment: Moment) -> None:
        """Take the changes of a moment's instruction back, the latest first."""
        self._left.append([self._exchanged(one.array, one.where, one.before) for one in moment.changes])

    def _forward(self, moment: Moment) -> None:
        """Make the changes of a moment's instruction again."""
        for one, left in zip(reversed(moment.changes), reversed(self._left.pop()), strict=True):
            self._exchanged(one.array, one.where, left)

    def _exchanged(self, array: Array, where: Array, contents: Array) -> Array:
        """Give elements other contents, and return those that they had."""
        before = self._elements(array, where)
        for number, positions in _by_piece(where):
            piece = self._pieces.get((id(array), number))
            if piece is None:
                piece = self._pieces[id(array), number] = array[piece_span(number)].copy()
            piece[where[positions] - (number << PIECE_SHIFT)] = contents[positions]
        return before

    def _elements(self, array: Array, where: Array) -> Array:
        values = array[where]
        for number, positions in _by_piece(where) if self._pieces else ():
            piece = self._pieces.get((id(array), number))
            if piece is not None:
                values[positions] = piece[where[positions] - (number << PIECE_SHIFT)]
        return values


def _by_piece(where: Array) -> Iterator[tuple[int, Array]]:
    """Yield the number of each piece that has some of the elements, and their positions in `where`."""
    numbers = where >> PIECE_SHIFT
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    for number, start, end in zip(found.tolist(), starts, ends, strict=True):
        yield number, order[start:end]
