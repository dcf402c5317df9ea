"""The contents that memory had before it was written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# Memory is saved in aligned pieces of 256 elements. In global memory, which consists of bytes, each of them belongs to
# one allocation.
PIECE_SHIFT = 8


class SavedMemory:
    """The contents that pieces of memory had before the first write."""

    def __init__(self) -> None:
        # Each piece with its array, keyed by the identity of the array and the number of the piece.
        self._pieces: dict[tuple[int, int], tuple[Array, Array]] = {}

    def save(self, memory: Array, places: Array, size: int) -> None:
        """Save the pieces that are about to be written: `size` bytes at each place."""
        for number in np.unique(np.concatenate([places, places + (size - 1)]) >> PIECE_SHIFT).tolist():
            key = id(memory), number
            if key not in self._pieces:
                self._pieces[key] = memory, memory[piece_span(number)].copy()

    def has_changed(self) -> bool:
        """Return whether a piece differs from its saved contents."""
        return any(
            not np.array_equal(memory[piece_span(number)], contents)
            for (_, number), (memory, contents) in self._pieces.items()
        )

    def restore(self) -> None:
        """Write the saved contents back, and forget them."""
        for (_, number), (memory, contents) in self._pieces.items():
            memory[piece_span(number)] = contents
        self.clear()

    def clear(self) -> None:
        """Forget the saved contents."""
        self._pieces.clear()


def piece_span(number: int) -> slice:
    """Return the elements of a piece."""
    return slice(number << PIECE_SHIFT, number + 1 << PIECE_SHIFT)
