"""Count how often the 32 banks of shared memory must be asked for what the lanes of warps touch together.

A bank gives one 4-byte word at a time, to any number of lanes. Rows are byte places; where a block's shared memory
starts among them doesn't matter, because banks that all lanes of a warp are off by don't change who meets whom.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_wavefronts"]

Array = NDArray[Any]
_BANKS = 32
_WORD = 4


def count_wavefronts(rows: Array, active: int | Array, size: int) -> tuple[int, int]:
    """Give the wavefronts of rows of accesses of `size` bytes, and how many are above the least possible.

    `active` is how many lanes of each row take part; the places of others must repeat those of lanes that do.
    """
    words = rows >> 2
    relative = words - words[:, :1]
    if (relative == relative[0]).all():
        # All warps do the same, which is the rule in programs whose blocks are alike.
        most = np.array([_most_in_a_bank(relative[0].tobytes(), size)])
        total = int(most[0]) * len(rows)
        if isinstance(active, int):
            least = _least(active, size)
            return max(total, least * len(rows)), max(total - least * len(rows), 0)
        most = np.repeat(most, len(rows))
    else:
        most = _most(words, size)
    least_each = _least_each(active, size, len(rows))
    wavefronts = np.maximum(most, least_each)
    return int(wavefronts.sum()), int((wavefronts - least_each).sum())


def _least(active: int, size: int) -> int:
    """Give the wavefronts that lanes need at least: what 4 bytes of each bank can't hold goes into another."""
    return max(1, -(-active * size // (_BANKS * _WORD)))


def _least_each(active: int | Array, size: int, count: int) -> Array:
    if isinstance(active, int):
        return np.full(count, _least(active, size))
    least: Array = np.maximum(1, -(-active * size // (_BANKS * _WORD)))
    return least


@lru_cache(maxsize=4096)
def _most_in_a_bank(relative: bytes, size: int) -> int:
    return int(_most(np.frombuffer(relative, np.int64)[None, :], size)[0])


def _most(words: Array, size: int) -> Array:
    """Give, for each row, the greatest number of different words that one bank must give."""
    if size > _WORD:
        words = (words[:, :, None] + np.arange(size // _WORD)).reshape(len(words), -1)
    ordered = np.sort(words, axis=1)
    fresh = np.ones(ordered.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=fresh[:, 1:])
    bank = (ordered & (_BANKS - 1)) + np.arange(len(ordered))[:, None] * _BANKS
    counts = np.bincount(bank[fresh], minlength=len(ordered) * _BANKS)
    most: Array = counts.reshape(-1, _BANKS).max(axis=1)
    return most
