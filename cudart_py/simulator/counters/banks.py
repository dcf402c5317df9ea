"""Wavefronts and bank conflicts: the work of the 32 banks of shared memory for the accesses of warps.

In one wavefront, each bank delivers one 4-byte word to any number of lanes. Accesses of 8 bytes take two passes of 16
lanes, and accesses of 16 bytes take four passes of 8 lanes. Two passes of a load merge into one if every lane of the
warp has the same address as its neighbour, as measured on an H200. The neighbour is the lane whose number differs in
bit 0, or, for all lanes alike, in bit 1. The passes of stores, of atomics and of `ldmatrix` never merge. Each wavefront
of a pass beyond the first is a bank conflict. A bank serves atomics one lane at a time, even if the lanes access the
same word. A compare-and-swap takes twice the wavefronts, but has no more conflicts.

A row contains the byte offsets of one warp's lanes. The offsets need not be relative to the start of the block's shared
memory: adding the same offset to all lanes does not change which of them conflict.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# Loads by each lane's address, stores and accesses by rows of matrices, atomics, and atomics that compare and swap.
Kind = Literal["load", "store", "atomic", "swap"]
_BANKS = 32
_WORD = 4
_LANES = np.arange(32)


def count_wavefronts(rows: Array, present: Array | None, size: int, kind: Kind = "load") -> tuple[int, int]:
    """Return the number of wavefronts for rows of `size`-byte accesses, and how many of them are bank conflicts.

    `present` is a mask of the active lanes; None means all lanes.
    """
    words = rows >> 2
    relative = words - words[:, :1]
    if (relative == relative[0]).all() and (present is None or (present == present[0]).all()):
        # All warps have the same access pattern, as is usual if all blocks do the same work, so counting one is enough.
        lanes = None if present is None else present[0].tobytes()
        wavefronts, conflicts = _of_one(relative[0].tobytes(), lanes, size, kind)
        return wavefronts * len(rows), conflicts * len(rows)
    if present is None:
        present = np.ones(words.shape, np.bool_)
    found = _count(words, present, size, kind)
    return int(found[0].sum()), int(found[1].sum())


@lru_cache(maxsize=4096)
def _of_one(relative: bytes, lanes: bytes | None, size: int, kind: Kind) -> tuple[int, int]:
    words = np.frombuffer(relative, np.int64)[None, :]
    present = np.ones(words.shape, np.bool_) if lanes is None else np.frombuffer(lanes, np.bool_)[None, :]
    wavefronts, conflicts = _count(words, present, size, kind)
    return int(wavefronts[0]), int(conflicts[0])


def _count(words: Array, present: Array, size: int, kind: Kind) -> tuple[Array, Array]:
    """Return the wavefronts and conflicts of each row of word indices."""
    passes = max(1, size // _WORD)
    wavefronts, conflicts = _in_passes(words, present, passes, distinct=kind in ("load", "store"))
    if kind == "load" and passes > 1:
        merged, joined = _in_passes(words, present, passes // 2, distinct=True), _joins(words, present)
        wavefronts, conflicts = (np.where(joined, *pair) for pair in zip(merged, (wavefronts, conflicts), strict=True))
    return (2 * wavefronts if kind == "swap" else wavefronts), conflicts


def _in_passes(words: Array, present: Array, passes: int, *, distinct: bool) -> tuple[Array, Array]:
    """Return the wavefronts and conflicts of each row, whose lanes are served in so many passes."""
    parts = zip(np.split(words, passes, axis=1), np.split(present, passes, axis=1), strict=True)
    most = np.stack([_most(*part, distinct=distinct) for part in parts])
    return most.sum(axis=0), np.maximum(most - 1, 0).sum(axis=0)


def _joins(words: Array, present: Array) -> Array:
    """Return a mask of the rows in which every active lane has the address of its neighbour, so that passes merge."""
    result = np.zeros(len(words), np.bool_)
    for distance in (1, 2):
        other = _LANES ^ distance
        alike = (words == words[:, other]) | ~present | ~present[:, other]
        result |= alike.all(axis=1)
    return result


def _most(words: Array, present: Array, *, distinct: bool) -> Array:
    """Return, for each row, the largest number of words (distinct ones, or all) that any bank has to deliver.

    For wider accesses, these are each lane's first words: if they share a bank, so do the others.
    """
    count = len(words)
    if distinct:
        # Inactive lanes get a sentinel word, which sorts first and is not counted.
        words = np.sort(np.where(present, words, np.iinfo(np.int64).min), axis=1)
        counted = words > np.iinfo(np.int64).min
        counted[:, 1:] &= words[:, 1:] != words[:, :-1]
    else:
        counted = present
    bank = (words & (_BANKS - 1)) + np.arange(count)[:, None] * _BANKS
    counts = np.bincount(bank[counted], minlength=count * _BANKS)
    most: Array = counts.reshape(-1, _BANKS).max(axis=1)
    return most


def assign_wavefronts(row: Array, present: Array, size: int, kind: Kind = "load") -> Array:
    """Return the index of the wavefront that serves each 4-byte word of each lane of a warp.

    `row` has the lanes' byte offsets. The result has one row per lane and one column per word, -1 for an inactive lane.
    The largest index is one less than the number of wavefronts that `count_wavefronts` returns. A compare-and-swap is
    served by the second wavefront of a pair.
    """
    words = row >> 2
    each = max(1, size // _WORD)
    lanes = _LANES.size // each
    alone = kind in ("atomic", "swap")
    if kind == "load" and each > 1 and _joins(words[None], present[None])[0]:
        lanes *= 2
    result = np.full((_LANES.size, each), -1)
    begin = 0
    for first in range(0, _LANES.size, lanes):
        served: dict[int, list[tuple[int, int]]] = {bank: [] for bank in range(_BANKS)}
        for lane in range(first, first + lanes):
            for part in range(each if present[lane] else 0):
                word = int(words[lane]) + part
                known = served[word % _BANKS]
                # Atomics of several lanes on one word are served one after another.
                key = word, lane if alone else 0
                if key not in known:
                    known.append(key)
                result[lane, part] = begin + known.index(key)
        begin += max(map(len, served.values()))
    return np.where(result < 0, result, 2 * result + 1) if kind == "swap" else result
