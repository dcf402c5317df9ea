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

__all__ = ["apply", "fields"]

Array = NDArray[Any]

_COUNT = (1 << 20) - 1
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

    Arrivals give the word before, from which ``test_wait`` knows the phase; waits give truth values.
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
        _update(verb, view, index, operands)
    return before


def _update(verb: str, view: Array, index: Array, operands: Sequence[Array]) -> None:
    """Arrive, or expect or receive bytes: the lanes of one barrier are added up, since their order is invisible."""
    words, inverse = np.unique(index, return_inverse=True)
    amounts = np.bincount(inverse, operands[0]) if operands else np.bincount(inverse)
    lanes = np.bincount(inverse)
    for place, amount, count in zip(words, amounts, lanes, strict=True):
        missing, needed, transfer, phase = fields(int(view[place]))
        if verb == "expect_tx":
            transfer += int(amount)
        elif verb == "complete_tx":
            transfer -= int(amount)
        elif verb in ("arrive_expect", "arrive_drop_expect"):
            transfer += int(amount)
            missing -= int(count)
            needed -= int(count) if verb == "arrive_drop_expect" else 0
        else:
            if verb == "arrive_drop":
                needed -= int(amount)
            missing -= int(amount)
        if verb == "expect_tx":
            # Expecting bytes can't complete a phase that nothing arrived at.
            view[place] = missing & _COUNT | needed << 20 | (transfer & _BYTES) << 40 | phase << 63
        else:
            view[place] = _word(missing, needed, transfer, phase)
