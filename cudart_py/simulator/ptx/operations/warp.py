"""Warp-level operations: shuffles, votes, matches and reductions (``shfl``, ``vote``, ``match``, ``redux``).

Operands have the shape ``(warps, 32)``, or are scalars common to all lanes. ``active`` is a boolean array of that shape
that marks the lanes that take part, or None if all do. ``members`` is the instruction's member mask (u32), one for all
lanes or one per lane, because lanes of one warp may take part in different groups at once. The results of inactive
lanes are meaningless. Shuffles and votes may return read-only views.

Reading from an inactive lane is undefined in PTX. Here, the reading lane gets 0, as on an H200. It gets its own value
if the source is out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions import warps
from .atomics import UFUNCS

Array = NDArray[Any]

LANES = np.arange(32, dtype=np.uint32)
ALL = np.uint32(0xFFFFFFFF)


# --- shuffles -----------------------------------------------------------------------------------------------------


def shuffle(mode: str, value: Array, lane: Array, control: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Return the value of each lane's source lane, and whether the source was in range (``shfl``)."""
    return _fetch(value, *shuffle_source(mode, lane, control), active)


def shuffle_source(mode: str, lane: Array, control: Array) -> tuple[Array, Array]:
    """Return the source lane of each lane, itself where that is out of range, and whether it is in range."""
    source, within = _rule(warps.shuffle_source, mode)(LANES, lane, control)
    return source, within


def _rule(lowering: Callable[..., Any], *told: str) -> Callable[..., Any]:
    """Return a lowering of three words as a function on arrays; `told` are the arguments before them."""
    return array_function(lowering, "u32", "u32", "u32", told=told)


def _fetch(value: Array, source: Array, within: Array, active: Array | None) -> tuple[Array, Array]:
    predicate = np.broadcast_to(within, value.shape)
    if source.ndim == 1 and active is None:
        # All warps have the same sources, so whole columns are taken.
        return np.take(value, source, axis=1), predicate
    places = np.arange(0, value.size, 32)[:, None]
    flat = places + source
    fetched = np.take(value.reshape(-1), flat)
    if active is not None:
        fetched = np.where(np.take(active.reshape(-1), flat), fetched, value.dtype.type(0))
    return fetched, predicate


# --- votes --------------------------------------------------------------------------------------------------------


def ballot_bits(truth: Array, active: Array | None = None) -> Array:
    """Pack the predicates of the active lanes into one u32 per warp, of the shape ``(warps, 1)``."""
    if active is not None:
        truth = truth & active
    packed: Array = np.packbits(truth, axis=1, bitorder="little").view("<u4")
    return packed


def _present(active: Array | None) -> Any:
    """Return the active mask of each warp."""
    return ALL if active is None else ballot_bits(active)


def vote(mode: str, truth: Array, members: Array, active: Array | None = None) -> Array:
    """Return the vote of the members: any, all, uni or ballot (``vote.sync``)."""
    result: Array = _rule(warps.vote, mode)(ballot_bits(truth, active), _present(active), members)
    return result


def elect(mode: str, lane: Array, members: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Elect the lowest member: return its index to each lane, and whether the lane is that member (``elect.sync``).

    The instruction has no modes, and `lane` contains the lanes' indices.
    """
    leader, elected = _rule(warps.elect)(lane, _present(active), members)
    return leader, elected


# --- matches ------------------------------------------------------------------------------------------------------


def _equal_bits(value: Array) -> Array:
    """Return, for each lane, the lanes of its warp that hold the same bits."""
    bits = value.view(np.uint64 if value.dtype.itemsize == 8 else np.uint32)
    result = np.zeros(bits.shape, np.uint32)
    for lane in range(32):
        same = (bits == bits[:, lane : lane + 1]).astype(np.uint32)
        result |= same << lane
    return result


def match(mode: str, value: Array, members: Array, active: Array | None = None) -> Any:
    """Compare the members' values (``match.sync.b32/.b64``).

    For ``any``, return the members that hold the same value as the lane, as bits. For ``all``, return the members and
    true if all hold the same value, else zero and false.
    """
    rule = _rule(warps.match_any if mode == "any" else warps.match_all)
    return rule(_equal_bits(value), _present(active), members)


# --- reductions ---------------------------------------------------------------------------------------------------


def redux(operation: str, value: Array, members: Array, active: Array | None = None) -> Array:
    """Reduce the members' values and return the result to each member (``redux.sync``).

    ``operation`` is one of add, min, max, and, or, xor; min and max are signed or unsigned, like the array's type.
    """
    ufunc = UFUNCS[operation]
    if active is None and np.ndim(members) == 0 and members == ALL:
        total: Array = ufunc.reduce(value, axis=1, keepdims=True, dtype=value.dtype)
        return total
    bits = warps.neutral(operation, "s32" if value.dtype.kind == "i" else "u32")
    neutral = np.uint32(bits).view(value.dtype)
    present = _present(active) & members
    result = np.full(value.shape, neutral)
    for lane in range(32):
        counts = (present >> lane) & np.uint32(1) != 0
        result = ufunc(result, np.where(counts, value[:, lane : lane + 1], neutral))
    return result


# The operations of opcodes on a value and a member mask of each lane. Results may have one element per warp.
COLLECTIVES: dict[str, Callable[..., Any]] = {"vote": vote, "match": match, "redux": redux, "elect": elect}
