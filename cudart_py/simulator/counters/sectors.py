"""Sectors: counts of the aligned 32-byte pieces of global memory that the accesses of warps touch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SECTOR = 32


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


def count_atomic_sectors(rows: Array, present: Array | None) -> tuple[int, int]:
    """Return the sectors of atomics, and their number if the assembler combines no lanes.

    Lanes that access the same word take turns, and each turn counts its own sectors. If all lanes of a warp access one
    word, the assembler combines them into one access, except for floating-point numbers.
    """
    words = rows >> 2
    order = np.argsort(words, axis=1, kind="stable")
    arranged = np.take_along_axis(words, order, axis=1)
    taking = np.ones(words.shape, np.bool_) if present is None else np.take_along_axis(present, order, axis=1)
    together = (arranged[:, 0] == arranged[:, -1])[:, None]
    # A lane's turn is its index among the active lanes at its word; inactive lanes have no turn.
    start = np.ones(words.shape, np.bool_)
    start[:, 1:] = arranged[:, 1:] != arranged[:, :-1]
    taken = np.cumsum(taking, axis=1)
    before = np.where(start, taken - taking, 0)
    turn = taken - taking - np.maximum.accumulate(before, axis=1)
    turn = np.where(together, 0, turn)
    key = np.where(taking, (turn << 48) + (arranged >> 3), -1)
    key = np.sort(key, axis=1)
    distinct = key >= 0
    distinct[:, 1:] &= key[:, 1:] != key[:, :-1]
    sectors = np.count_nonzero(distinct, axis=1)
    alone = np.where(together[:, 0], np.count_nonzero(taking, axis=1), sectors)
    return int(sectors.sum()), int(alone.sum())
