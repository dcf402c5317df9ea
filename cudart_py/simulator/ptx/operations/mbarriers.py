"""The operations on barriers in 64-bit words of shared memory (``mbarrier``); `instructions.barriers` describes a word.

The hardware adds up the arrivals that one instruction of a warp brings to a barrier, and all of its lanes get the same
state (measured on an H200, sm_90). The launch fails if they are more than the phase's pending arrivals: a warp of 32
lanes cannot complete two phases of 16 at once, although 32 arrivals one after another can. Only ``.noComplete`` returns
to each lane the arrivals that were pending before its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions import barriers

Array = NDArray[Any]

MISSING = np.uint64(barriers.MISSING)

_initial = array_function(barriers.initial, "u32")
_has_passed = [array_function(partial(barriers.has_passed, parity=parity), "u64", "u64") for parity in (False, True)]
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
    if verb == "arrive_extra":
        return view[index]
    return _update(verb, view, index, operands, np.zeros(len(index), np.int64) if warps is None else warps)


def _update(verb: str, view: Array, index: Array, operands: Sequence[Array], warps: Array) -> Array:
    """Arrive, or expect or receive bytes, and return the words that the lanes found.

    The arrivals or bytes that a warp brings to a barrier are added up, but copies complete one after another.
    """
    amounts = operands[0].astype(np.int64) if operands else np.ones(len(index), np.int64)
    arrivals, transfer = (np.broadcast_to(each, amounts.shape) for each in barriers.moved(verb, amounts))
    steps = np.arange(len(index)) if verb == "complete_tx" else warps
    # The steps of each barrier, the lowest barrier first, and the step that each lane belongs to.
    count = steps.max(initial=0) + 1
    keys, which = np.unique(index * count + steps, return_inverse=True)
    places = keys // count
    arrived, received = (np.bincount(which, each).astype(np.int64) for each in (arrivals, transfer))
    after, found = _after[verb.startswith("arrive_drop")], np.empty(len(keys), np.uint64)
    turns = np.arange(len(keys)) - np.searchsorted(places, places)
    for turn in range(turns.max(initial=-1) + 1):
        now = np.flatnonzero(turns == turn)
        words = found[now] = view[places[now]]
        wrong = now[arrived[now] > (words & MISSING).view(np.int64)]
        if len(wrong):
            missing, needed, _, _ = barriers.fields(int(found[wrong[0]]))
            raise TooManyArrivals(int(np.argmax(which == wrong[0])), int(arrived[wrong[0]]), missing, needed)
        view[places[now]] = after(words, arrived[now].view(np.uint64), received[now].view(np.uint64))
    before: Array = found[which]
    if verb.endswith("_nocomplete"):
        order = np.argsort(which, kind="stable")
        earlier = np.cumsum(arrivals[order]) - arrivals[order]
        before[order] -= (earlier - earlier[np.searchsorted(which[order], which[order])]).view(np.uint64)
    return before
