"""Sectors: counts of the aligned 32-byte pieces of global memory that the accesses of warps touch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SECTOR = 32
_BYPASSING = 8


def run_sectors(start: int, size: int, warps: int) -> int:
    """Return the sectors of full warps whose lanes access contiguous elements of `size` bytes, from byte `start` on."""
    # A warp's bytes are a multiple of a sector, so all warps have the same alignment.
    each: int = (start % SECTOR + 32 * size + SECTOR - 1) // SECTOR
    return warps * each


def count_sectors(rows: Array) -> int:
    """Return the number of distinct sectors in each row of byte offsets, summed over the rows.

    An access is aligned and at most 16 bytes long, so it touches one sector.
    """
    return count_different(rows >> 5)


def count_different(rows: Array) -> int:
    """Return the number of distinct values in each row, summed over the rows."""
    before, after = rows[:, :-1], rows[:, 1:]
    if (after < before).any():
        rows = np.sort(rows, axis=1)
        before, after = rows[:, :-1], rows[:, 1:]
    return len(rows) + int(np.count_nonzero(after != before))


def count_bypassing_sectors(rows: Array, present: Array | None) -> int:
    """Return the number of sectors that copies around the L1 cache read.

    The lanes of a warp are served in groups of 8, and the sectors of each group count separately.
    """
    groups = rows.reshape(-1, _BYPASSING)
    if present is None:
        return count_sectors(groups)
    active = present.reshape(-1, _BYPASSING)
    some = active.any(axis=1)
    # An inactive lane repeats the first active lane of its group, which adds no sector.
    first = active.argmax(axis=1)[:, None]
    groups = np.where(active, groups, np.take_along_axis(groups, first, axis=1))
    return count_sectors(groups[some]) if some.any() else 0


def count_atomic_sectors(rows: Array, present: Array | None, size: int) -> tuple[int, int]:
    """Return the sectors of atomics of `size` bytes, and a second number of sectors.

    Lanes that access the same word take turns, and each turn counts its own sectors. The second number is that of the
    16-byte halves of the sectors for atomics of 8 bytes. For others, it is the number of sectors if complete warps,
    whose lanes then all access one word, make one access.
    """
    words = rows >> 2
    order = np.argsort(words, axis=1, kind="stable")
    arranged = np.take_along_axis(words, order, axis=1)
    taking = np.ones(words.shape, np.bool_) if present is None else np.take_along_axis(present, order, axis=1)
    # A lane's turn is its index among the active lanes at its word; inactive lanes have no turn.
    start = np.ones(words.shape, np.bool_)
    start[:, 1:] = arranged[:, 1:] != arranged[:, :-1]
    taken = np.cumsum(taking, axis=1)
    before = np.where(start, taken - taking, 0)
    turn = taken - taking - np.maximum.accumulate(before, axis=1)
    sectors = _count_turns(turn, arranged >> 3, taking)
    if size == 8:
        return int(sectors.sum()), int(_count_turns(turn, arranged >> 2, taking).sum())
    return int(sectors.sum()), int(np.where(taking.all(axis=1), 1, sectors).sum())


def _count_turns(turn: Array, places: Array, taking: Array) -> Array:
    """Return the number of distinct places per row, counted in each turn separately."""
    key = np.sort(np.where(taking, (turn << 48) + places, -1), axis=1)
    distinct = key >= 0
    distinct[:, 1:] &= key[:, 1:] != key[:, :-1]
    counts: Array = np.count_nonzero(distinct, axis=1)
    return counts
