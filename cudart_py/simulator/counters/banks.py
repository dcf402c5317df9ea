"""Wavefronts and bank conflicts: what the 32 banks of shared memory must do for the accesses of warps.

A bank gives one 4-byte word at a time, to any number of lanes; a wavefront is one word of each bank. Accesses of 8
bytes take two passes of 16 lanes, and accesses of 16 bytes four passes of 8 lanes. Two passes become one where each
lane of the warp has the address of its neighbour (the lane number with the lowest or the second bit inverted), as
measured on an H200. A wavefront beyond the first of a pass is a bank conflict. Atomics take one lane after the other,
even at one word.

Rows hold the lanes' byte places. A block's shared memory may begin anywhere among them: an offset that all lanes of a
warp share doesn't change which of them meet in a bank.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_BANKS = 32
_WORD = 4
_LANES = np.arange(32)


def count_wavefronts(rows: Array, present: Array | None, size: int, *, atomic: bool = False) -> tuple[int, int]:
    """Return the wavefronts of rows of accesses of `size` bytes, and how many of them are conflicts.

    `present` says which lanes take part; None stands for all.
    """
    words = rows >> 2
    relative = words - words[:, :1]
    if (relative == relative[0]).all() and (present is None or (present == present[0]).all()):
        # All warps do the same, which is the rule in programs whose blocks are alike.
        lanes = None if present is None else present[0].tobytes()
        wavefronts, conflicts = _of_one(relative[0].tobytes(), lanes, size, atomic)
        return wavefronts * len(rows), conflicts * len(rows)
    if present is None:
        present = np.ones(words.shape, np.bool_)
    found = _count(words, present, size, atomic)
    return int(found[0].sum()), int(found[1].sum())


@lru_cache(maxsize=4096)
def _of_one(relative: bytes, lanes: bytes | None, size: int, atomic: bool) -> tuple[int, int]:
    words = np.frombuffer(relative, np.int64)[None, :]
    present = np.ones(words.shape, np.bool_) if lanes is None else np.frombuffer(lanes, np.bool_)[None, :]
    wavefronts, conflicts = _count(words, present, size, atomic)
    return int(wavefronts[0]), int(conflicts[0])


def _count(words: Array, present: Array, size: int, atomic: bool) -> tuple[Array, Array]:
    """Return the wavefronts and conflicts of each row of word numbers."""
    if atomic:
        most = _most(words, present, 1, distinct=False)
        return most, np.maximum(most - 1, 0)
    each = max(1, size // _WORD)
    if each == 1:
        most = _most(words, present, 1)
        return most, np.maximum(most - 1, 0)
    passes = each
    joined = _joins(words, present)
    lanes = 32 // passes
    apart = [_most(words[:, at : at + lanes], present[:, at : at + lanes], each) for at in range(0, 32, lanes)]
    wavefronts = np.zeros(len(words), np.int64)
    conflicts = np.zeros(len(words), np.int64)
    for first in range(0, passes, 2):
        side = slice(first * lanes, (first + 2) * lanes)
        together = _most(words[:, side], present[:, side], each)
        two = apart[first] + apart[first + 1]
        beyond = np.maximum(apart[first] - 1, 0) + np.maximum(apart[first + 1] - 1, 0)
        wavefronts += np.where(joined, together, two)
        conflicts += np.where(joined, np.maximum(together - 1, 0), beyond)
    return wavefronts, conflicts


def _joins(words: Array, present: Array) -> Array:
    """Return in which rows all lanes have the address of their neighbour at one of the two distances."""
    result = np.zeros(len(words), np.bool_)
    for distance in (1, 2):
        other = _LANES ^ distance
        alike = (words == words[:, other]) | ~present | ~present[:, other]
        result |= alike.all(axis=1)
    return result


def _most(words: Array, present: Array, each: int, *, distinct: bool = True) -> Array:
    """Return for each row the largest number of words that one bank must give: of different words, or of all."""
    count = len(words)
    if each > 1:
        words = (words[:, :, None] + np.arange(each)).reshape(count, -1)
        present = np.repeat(present, each, axis=1)
    if distinct:
        # Lanes that take no part come first, with a word that no lane has.
        words = np.sort(np.where(present, words, np.iinfo(np.int64).min), axis=1)
        counted = words > np.iinfo(np.int64).min
        counted[:, 1:] &= words[:, 1:] != words[:, :-1]
    else:
        counted = present
    bank = (words & (_BANKS - 1)) + np.arange(count)[:, None] * _BANKS
    counts = np.bincount(bank[counted], minlength=count * _BANKS)
    most: Array = counts.reshape(-1, _BANKS).max(axis=1)
    return most


def assign_wavefronts(row: Array, present: Array, size: int, *, atomic: bool = False) -> Array:
    """Return the number of the wavefront that serves each 4-byte word of each lane of a warp, from 0 on.

    `row` has the lanes' byte places. The result has a row for each lane, -1 where it takes no part. The largest number
    is one less than the wavefronts that `count_wavefronts` returns.
    """
    words = row >> 2
    each = 1 if atomic else max(1, size // _WORD)
    lanes = _LANES.size // each
    if each > 1 and _joins(words[None], present[None])[0]:
        lanes *= 2
    result = np.full((_LANES.size, each), -1)
    begin = 0
    for first in range(0, _LANES.size, lanes):
        served: dict[int, list[tuple[int, int]]] = {bank: [] for bank in range(_BANKS)}
        for lane in range(first, first + lanes):
            for part in range(each if present[lane] else 0):
                word = int(words[lane]) + part
                known = served[word % _BANKS]
                # Atomics of several lanes at one word are served one after another.
                key = word, lane if atomic else 0
                if key not in known:
                    known.append(key)
                result[lane, part] = begin + known.index(key)
        begin += max(map(len, served.values()))
    return result
