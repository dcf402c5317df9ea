"""The operations of warps: shuffles, votes, matches and reductions (``shfl``, ``vote``, ``match``, ``redux``).

Operands have the shape ``(warps, 32)``, or are scalars common to all lanes. ``active`` is a boolean array of that
shape that tells which lanes take part, or None where all do. ``members`` is the opcode's member mask, u32, one
for all or one for each lane: lanes of one warp may take part in different groups at once. What a lane that takes no
part gets is meaningless. Shuffles and votes may give read-only views.

Reading a lane that takes no part is undefined in PTX. Here such a lane gets its own value back, as it does where the
source is out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LANES = np.arange(32, dtype=np.int64)
ALL = np.uint32(0xFFFFFFFF)


# --- shuffles -----------------------------------------------------------------------------------------------------


def shfl_up(value: Array, distance: Array, control: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Return the value of the lane ``distance`` below (``shfl.sync.up.b32``, ``__shfl_up_sync``).

    ``control`` is the opcode's operand c: a clamp in bits 0 to 4, a segment mask in bits 8 to 12. The second
    result tells which lanes had a source within range.
    """
    return _fetch(value, *shfl_source("up", distance, control), active)


def shfl_down(value: Array, distance: Array, control: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Return the value of the lane ``distance`` above (``shfl.sync.down.b32``, ``__shfl_down_sync``)."""
    return _fetch(value, *shfl_source("down", distance, control), active)


def shfl_bfly(value: Array, lanes: Array, control: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Return the value of the lane whose number differs in these bits (``shfl.sync.bfly.b32``, ``__shfl_xor_sync``)."""
    return _fetch(value, *shfl_source("bfly", lanes, control), active)


def shfl_idx(value: Array, lane: Array, control: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Return the value of a numbered lane of the segment (``shfl.sync.idx.b32``, ``__shfl_sync``)."""
    return _fetch(value, *shfl_source("idx", lane, control), active)


def shfl_source(mode: str, lane: Array, control: Array) -> tuple[Array, Array]:
    """Return which lane each lane reads from in a shuffle of a mode, and whether that is within range."""
    offset, segment, limit, first = _operands(lane, control)
    if mode == "up":
        source: Array = LANES - offset
        return source, source >= limit
    source = {"down": LANES + offset, "bfly": LANES ^ offset, "idx": first | (offset & ~segment)}[mode]
    return source, source <= limit


def _operands(distance: Array, control: Array) -> tuple[Array, Array, Array, Array]:
    """Return distance, segment mask, last lane within range, and first lane of the segment."""
    offset = np.asarray(distance).astype(np.int64) & 31
    control = np.asarray(control).astype(np.int64)
    segment = (control >> 8) & 31
    first = LANES & segment
    limit = first | (control & 31 & ~segment)
    return offset, segment, limit, first


def _fetch(value: Array, source: Array, within: Array, active: Array | None) -> tuple[Array, Array]:
    warps = value.shape[0]
    source = np.where(within, source, LANES)
    predicate = np.broadcast_to(within, value.shape)
    if source.ndim == 1 and active is None:
        # One pattern for all warps: whole columns are taken.
        return np.take(value, source, axis=1), predicate
    places = np.arange(0, 32 * warps, 32)[:, None]
    flat = places + source
    if active is not None:
        present = np.take(active.reshape(-1), flat)
        flat = np.where(present, flat, places + LANES)
    return np.take(value.reshape(-1), flat), predicate


# --- votes --------------------------------------------------------------------------------------------------------


def ballot_bits(truth: Array, active: Array | None = None) -> Array:
    """Pack the truths of the active lanes into one u32 for each warp, of shape ``(warps, 1)``."""
    if active is not None:
        truth = truth & active
    packed: Array = np.packbits(truth, axis=1, bitorder="little").view("<u4")
    return packed


def _present(active: Array | None, members: Array) -> Array:
    """Return the lanes that both take part and are members, as bits."""
    return members if active is None else ballot_bits(active) & members


def _each(result: Array, shape: tuple[int, ...]) -> Array:
    """Return one value for each lane."""
    return np.broadcast_to(result, shape)


def activemask(active: Array) -> Array:
    """Return the lanes that take part, as bits, to each lane (``activemask.b32``)."""
    return _each(ballot_bits(active), active.shape)


def vote_ballot(truth: Array, members: Array, active: Array | None = None) -> Array:
    """Return the members whose predicate is true, as bits (``vote.sync.ballot.b32``)."""
    return _each(ballot_bits(truth, active) & members, truth.shape)


def vote_any(truth: Array, members: Array, active: Array | None = None) -> Array:
    """Return whether any member's predicate is true (``vote.sync.any.pred``)."""
    return _each(ballot_bits(truth, active) & members != 0, truth.shape)


def vote_all(truth: Array, members: Array, active: Array | None = None) -> Array:
    """Return whether all members' predicates are true (``vote.sync.all.pred``)."""
    present = _present(active, members)
    return _each(ballot_bits(truth, active) & members == present, truth.shape)


def vote_uni(truth: Array, members: Array, active: Array | None = None) -> Array:
    """Return whether all members' predicates are alike (``vote.sync.uni.pred``)."""
    votes = ballot_bits(truth, active) & members
    return _each((votes == 0) | (votes == _present(active, members)), truth.shape)


def elect(members: Array, active: Array) -> tuple[Array, Array]:
    """Elect the lowest member: its number for each lane, and which lane it is (``elect.sync``)."""
    present = _present(active, members)
    lowest = np.bitwise_count((present & -present) - np.uint32(1)).astype(np.uint32)
    leader = _each(lowest, active.shape)
    return leader, leader == LANES


# --- matches ------------------------------------------------------------------------------------------------------


def _equal_bits(value: Array) -> Array:
    """Return each lane the lanes of its warp that hold the same bits."""
    bits = value.view(np.uint64 if value.dtype.itemsize == 8 else np.uint32)
    result = np.zeros(bits.shape, np.uint32)
    for lane in range(32):
        same = (bits == bits[:, lane : lane + 1]).astype(np.uint32)
        result |= same << lane
    return result


def match_any(value: Array, members: Array, active: Array | None = None) -> Array:
    """Return the members that hold the same value as the lane, as bits (``match.any.sync.b32/.b64``)."""
    result: Array = _equal_bits(value) & _present(active, members)
    return result


def match_all(value: Array, members: Array, active: Array | None = None) -> tuple[Array, Array]:
    """Return the members, as bits, and true if all hold the same value, else zero and false (``match.all.sync``)."""
    present = _present(active, members)
    alike = (_equal_bits(value) & present) == present
    return np.where(alike, present, np.uint32(0)), alike


# --- reductions ---------------------------------------------------------------------------------------------------

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip  # rows of a table


def _neutral(operation: str, dtype: np.dtype[Any]) -> Any:
    info = np.iinfo(dtype)
    return {"min": info.max, "max": info.min, "and": -1 if info.min else info.max}.get(operation, 0)


def redux(operation: str, value: Array, members: Array, active: Array | None = None) -> Array:
    """Reduce the members' values and give each the result (``redux.sync``).

    ``operation`` is one of add, min, max, and, or, xor; the order of u32 or s32 is that of the array's type.
    """
    ufunc = _UFUNCS[operation]
    if active is None and np.ndim(members) == 0 and members == ALL:
        total: Array = ufunc.reduce(value, axis=1, keepdims=True, dtype=value.dtype)
        return _each(total, value.shape)
    neutral = value.dtype.type(_neutral(operation, value.dtype))
    present = _present(active, members)
    result = np.full(value.shape, neutral)
    for lane in range(32):
        counts = (present >> lane) & np.uint32(1) != 0
        result = ufunc(result, np.where(counts, value[:, lane : lane + 1], neutral))
    return result
