"""The operations on barriers in 64-bit words of shared memory (``mbarrier``); `instructions.barriers` describes a word.

The hardware adds up the arrivals that one instruction of a warp brings to a barrier, and all of its lanes get the same
state (measured on an H200, sm_90). The launch fails if they are more than the phase's pending arrivals: a warp of 32
lanes cannot complete two phases of 16 at once, although 32 arrivals one after another can. Only ``.noComplete`` returns
to each lane the arrivals that were pending before its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions import barriers

Array = NDArray[Any]

MISSING = np.uint64(barriers.MISSING)

_initial = array_function(barriers.initial, "u32")
_has_passed = [array_function(partial(barriers.has_passed, parity=parity), "u64", "u64") for parity in (False, True)]
_pending_bytes = array_function(barriers.pending_bytes, "u64")
_after = [array_function(partial(barriers.after, drops=drops), "u64", "u64", "u64") for drops in (False, True)]


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
        return _has_passed[parity](view[index], operands[0].astype(np.uint64))
    if verb == "init":
        view[index] = _initial(operands[0].astype(np.uint32))
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
    amounts = operands[0].astype(np.int64) if operands else np.ones(len(index), np.int64)
    arrivals, transfer = (np.broadcast_to(each, amounts.shape) for each in barriers.moved(verb, amounts))
    places, which = np.unique(index, return_inverse=True)
    words = view[places]
    arrived, received = (np.bincount(which, each, len(places)).astype(np.int64) for each in (arrivals, transfer))
    between = arrived > (words & MISSING).view(np.int64)
    if verb == "complete_tx":
        between |= (words & MISSING == 0) & (_pending_bytes(words) + received < 0)
    after = _after[verb.startswith("arrive_drop")]
    view[places] = np.where(between, words, after(words, arrived.view(np.uint64), received.view(np.uint64)))
    if arrivals.any():
        before -= _ahead(verb, which, warps, arrivals).view(np.uint64)
    for number in np.flatnonzero(between):
        lanes = np.flatnonzero(which == number)
        # The lanes of each warp arrive together, but copies complete one after another.
        each = warps[lanes] if verb.startswith("arrive") else np.arange(len(lanes))
        word = words[number : number + 1]
        for start, end in pairwise([*np.flatnonzero(_starts(each)), len(lanes)]):
            part = lanes[start:end]
            arrived, received = (each[part].sum(keepdims=True) for each in (arrivals, transfer))
            missing, needed, _, _ = barriers.fields(int(word[0]))
            if arrived[0] > missing:
                raise TooManyArrivals(int(part[0]), int(arrived[0]), missing, needed)
            before[part] = word
            if verb.endswith("_nocomplete"):
                before[part] -= (np.cumsum(arrivals[part]) - arrivals[part]).view(np.uint64)
            word = after(word, arrived.view(np.uint64), received.view(np.uint64))
        view[places[number]] = word[0]


def _ahead(verb: str, which: Array, warps: Array, arrivals: Array) -> Array:
    """Return the arrivals at its barrier before each lane's: by earlier warps, or with ``.noComplete`` by all lanes."""
    order = np.argsort(which, kind="stable")
    barrier, warp = which[order], warps[order]
    earlier = np.cumsum(arrivals[order]) - arrivals[order]
    first = _starts(barrier)
    ahead = earlier
    if not verb.endswith("_nocomplete"):
        ahead = _at_starts(earlier, first | _starts(warp))
    found = np.empty_like(arrivals)
    found[order] = ahead - _at_starts(earlier, first)
    return found


def _starts(values: Array) -> Array:
    """Return which elements begin a run of equal ones."""
    return np.append(True, values[1:] != values[:-1])


def _at_starts(values: Array, starts: Array) -> Array:
    """Return, for each element, the value at the start of its run."""
    found: Array = values[starts][np.cumsum(starts) - 1]
    return found
