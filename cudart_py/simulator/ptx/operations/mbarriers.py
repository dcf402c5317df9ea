"""Operate on barriers that live in 64-bit words of shared memory (``mbarrier``).

A word holds, from its lowest bit: arrivals still missing in this phase (20 bits), arrivals that a phase needs (20),
bytes still to come (23, as a signed number), and the phase's parity (the highest bit). The hardware's layout is
opaque to programs, so this one is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MISSING", "apply", "fields", "pending_count"]

Array = NDArray[Any]

_COUNT = (1 << 20) - 1
# The bits of a word that count the missing arrivals.
MISSING = np.uint64(_COUNT)
_BYTES = (1 << 23) - 1
_PARITY = np.uint64(63)


def fields(word: int) -> tuple[int, int, int, int]:
    """Return a barrier's missing arrivals, the arrivals that a phase needs, the bytes to come, and the parity."""
    transfer = word >> 40 & _BYTES
    if transfer >> 22:
        transfer -= 1 << 23
    return word & _COUNT, word >> 20 & _COUNT, transfer, word >> 63


def _word(missing: int, needed: int, transfer: int, parity: int) -> int:
    if missing <= 0 and transfer == 0:
        # The phase is complete: the next one begins.
        missing, parity = needed, parity ^ 1
    return missing & _COUNT | (needed & _COUNT) << 20 | (transfer & _BYTES) << 40 | parity << 63


def apply(verb: str, view: Array, index: Array, operands: Sequence[Array], parity: bool) -> Any:
    """Do `verb` for each lane on the words of `view` at `index`.

    Arrivals give the word before, from which ``test_wait`` knows the phase and ``pending_count`` the missing arrivals;
    waits give truth values.
    """
    if verb in ("test_wait", "try_wait"):
        now = view[index] >> _PARITY
        waited = operands[0].astype(np.uint64)
        return now != (waited & np.uint64(1) if parity else waited >> _PARITY)
    if verb == "init":
        counts = operands[0].astype(np.uint64) & np.uint64(_COUNT)
        view[index] = counts | counts << np.uint64(20)
        return None
    if verb == "inval":
        view[index] = 0
        return None
    before = view[index]
    if verb != "arrive_extra":
        _update(verb, view, index, operands, before)
    return before


def pending_count(state: Array) -> Array:
    """Return the arrivals that were missing before the one that gave a state (``mbarrier.pending_count``)."""
    result: Array = (state & MISSING).astype(np.uint32)
    return result


def _update(verb: str, view: Array, index: Array, operands: Sequence[Array], before: Array) -> None:
    """Arrive, or expect or receive bytes, and correct the words `before` that later lanes of a barrier get.

    The lanes of a barrier are added up. Only where a phase ends between them does it matter that one follows another.
    """
    for place in np.unique(index):
        lanes, word = np.flatnonzero(index == place), int(view[place])
        amounts = operands[0][lanes].astype(np.int64) if operands else np.ones(len(lanes), np.int64)
        arrivals = np.ones(len(lanes), np.int64) if verb.endswith("_expect") else amounts
        if _ends_between(verb, word, int(arrivals.sum())):
            for lane, amount in zip(lanes, amounts, strict=True):
                before[lane] = word
                word = _after(verb, word, int(amount), 1)
        else:
            if verb.startswith("arrive"):
                # The missing arrivals have the lowest bits.
                before[lanes] -= (np.cumsum(arrivals) - arrivals).astype(np.uint64)
            word = _after(verb, word, int(amounts.sum()), len(lanes))
        view[place] = word


def _ends_between(verb: str, word: int, total: int) -> bool:
    """Return whether a phase may end before the last of some lanes has done `verb`, with a sum of arrivals or bytes."""
    missing, _, transfer, _ = fields(word)
    if verb == "expect_tx":
        return False
    return (missing == 0 and total > transfer) if verb == "complete_tx" else total > missing


def _after(verb: str, word: int, amount: int, lanes: int) -> int:
    """Return a word after some lanes have done `verb`, with the sum of their operands."""
    missing, needed, transfer, parity = fields(word)
    if verb in ("expect_tx", "complete_tx"):
        return _word(missing, needed, transfer + (amount if verb == "expect_tx" else -amount), parity)
    arrivals = amount
    if verb.endswith("_expect"):
        transfer += amount
        arrivals = lanes
    if verb.startswith("arrive_drop"):
        needed -= arrivals
    return _word(missing - arrivals, needed, transfer, parity)
