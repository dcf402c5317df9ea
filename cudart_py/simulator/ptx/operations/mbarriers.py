"""The operations on barriers in 64-bit words of shared memory (``mbarrier``).

A word holds, from its lowest bit: the pending arrivals of the current phase (20 bits), the arrivals that each phase
expects (20), the pending bytes of copies (the tx-count; 23, signed), and the phase's parity (the highest bit). The
hardware's layout is opaque to programs, so the simulator can choose its own.

The hardware adds up the arrivals that one instruction of a warp brings to a barrier, and all of its lanes get the same
state (measured on an H200, sm_90). The launch fails if they are more than the phase's pending arrivals: a warp of 32
lanes cannot complete two phases of 16 at once, although 32 arrivals one after another can. Only ``.noComplete`` returns
to each lane the arrivals that were pending before its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instructions import barriers

Array = NDArray[Any]

_COUNT = barriers.MISSING
MISSING = np.uint64(_COUNT)
_BYTES = (1 << 23) - 1
_PARITY = np.uint64(63)


def fields(word: int) -> tuple[int, int, int, int]:
    """Return a barrier's pending arrivals, the arrivals that a phase expects, the pending bytes, and the parity."""
    transfer = word >> 40 & _BYTES
    if transfer >> 22:
        transfer -= 1 << 23
    return word & _COUNT, word >> 20 & _COUNT, transfer, word >> 63


def _word(missing: int, needed: int, transfer: int, parity: int) -> int:
    if missing <= 0 and transfer == 0:
        # The phase is complete: the next one begins.
        missing, parity = needed, parity ^ 1
    return missing & _COUNT | (needed & _COUNT) << 20 | (transfer & _BYTES) << 40 | parity << 63


class TooManyArrivals(Exception):  # noqa: N818  # because it is an event of the kernel's, as `Fault` is
    """An instruction of a warp brings more `arrivals` than are `missing`; `lane` is the index of its first lane."""

    def __init__(self, lane: int, arrivals: int, missing: int, needed: int) -> None:
        super().__init__(f"{arrivals} arrivals at a barrier that still expects {missing} of {needed}")
        self.lane = lane
        self.arrivals = arrivals
        self.missing = missing
        self.needed = needed


def apply(
    verb: str, view: Array, index: Array, operands: Sequence[Array], parity: bool, warps: Array | None = None
) -> Any:
    """Perform `verb` for each lane on the words of `view` at `index`.

    Arrivals return the previous word, from which ``test_wait`` takes the phase and ``pending_count`` the pending
    arrivals. Waits return whether the phase is complete. `warps` contains the lanes' warps, in ascending order; None
    means that all lanes are in one warp. Raises TooManyArrivals.
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
        _update(verb, view, index, operands, before, np.zeros(len(index), np.int64) if warps is None else warps)
    return before


def _update(verb: str, view: Array, index: Array, operands: Sequence[Array], before: Array, warps: Array) -> None:
    """Arrive, or expect or receive bytes, and correct the words `before` that later lanes of a barrier return.

    The arrivals or bytes of a barrier's lanes are added up. The order of the lanes matters only if a phase ends between
    them.
    """
    for place in np.unique(index):
        lanes, word = np.flatnonzero(index == place), int(view[place])
        amounts = operands[0][lanes].astype(np.int64) if operands else np.ones(len(lanes), np.int64)
        if verb.startswith("arrive"):
            view[place] = _arrive(verb, word, lanes, amounts, before, warps[lanes])
        elif _ends_between(verb, word, int(amounts.sum())):
            for amount in amounts:
                word = _after(verb, word, int(amount), 1)
            view[place] = word
        else:
            view[place] = _after(verb, word, int(amounts.sum()), len(lanes))


def _arrive(verb: str, word: int, lanes: Array, amounts: Array, before: Array, warps: Array) -> int:
    """Return a barrier's word after some lanes have arrived, warp after warp."""
    arrivals = np.ones(len(lanes), np.int64) if verb.endswith("_expect") else amounts
    first = np.flatnonzero(np.diff(warps, prepend=-1))
    total = np.add.reduceat(arrivals, first)
    if int(total.sum()) <= word & _COUNT:
        # No phase ends between the warps. The pending arrivals are in the lowest bits, so they can be subtracted.
        ahead = np.repeat(np.cumsum(total) - total, np.diff(first, append=len(lanes)))
        before[lanes] -= _ahead(verb, arrivals, ahead)
        return _after(verb, word, int(amounts.sum()), len(lanes))
    for start, end, brought in zip(first, [*first[1:], len(lanes)], total, strict=True):
        missing, needed, _, _ = fields(word)
        if brought > missing:
            raise TooManyArrivals(int(lanes[start]), int(brought), missing, needed)
        part = slice(start, end)
        before[lanes[part]] = np.uint64(word) - _ahead(verb, arrivals[part], np.zeros(end - start, np.int64))
        word = _after(verb, word, int(amounts[part].sum()), int(end - start))
    return word


def _ahead(verb: str, arrivals: Array, ahead: Array) -> Array:
    """Return the arrivals before each lane's: by earlier warps (`ahead`), or with ``.noComplete`` by earlier lanes."""
    if verb.endswith("_nocomplete"):
        ahead = np.cumsum(arrivals) - arrivals
    return ahead.astype(np.uint64)


def _ends_between(verb: str, word: int, total: int) -> bool:
    """Return whether a phase may end before the last lane has reported its bytes; `total` is the bytes of all lanes."""
    missing, _, transfer, _ = fields(word)
    return verb == "complete_tx" and missing == 0 and total > transfer


def _after(verb: str, word: int, amount: int, lanes: int) -> int:
    """Return a word after `lanes` lanes have performed `verb`; `amount` is the sum of their operands."""
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
