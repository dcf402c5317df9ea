"""Warp-level operations: the part in which each lane computes its result from words that all lanes contribute to.

Bit n of such a word belongs to lane n. `present` contains the lanes that execute the instruction together, and
`members` is the instruction's member mask, which may differ between the lanes of a warp.
"""

from __future__ import annotations

from .integer_math.integers import popc
from .values import Value, where


def shuffle_source(mode: str, lane: Value, offset: Value, control: Value) -> tuple[Value, Value]:
    """``shfl``: return the source lane of each lane, itself where that is out of range, and whether it is in range.

    `control` is the instruction's operand c: a clamp in bits 0 to 4, a segment mask in bits 8 to 12.
    """
    offset, segment = offset & 31, (control >> 8) & 31
    first = lane & segment
    limit = (first | (control & 31 & ~segment)).read_as("s32")
    match mode:
        case "up":
            source = lane - offset
        case "down":
            source = lane + offset
        case "bfly":
            source = lane ^ offset
        case _:
            source = first | (offset & ~segment)
    within = source.read_as("s32") >= limit if mode == "up" else source.read_as("s32") <= limit
    return where(within, source, lane), within


def vote(mode: str, votes: Value, present: Value, members: Value) -> Value:
    """``vote``: return the members whose predicate is true, or whether it is true for any, for all, or for all or none.

    `votes` contains the present lanes whose predicate is true.
    """
    votes = votes & members
    if mode == "ballot":
        return votes
    if mode == "any":
        return votes.differs(0)
    every = votes.equals(present & members)
    return every | votes.equals(0) if mode == "uni" else every


def match_any(same: Value, present: Value, members: Value) -> Value:
    """``match.any``: return the members that hold the same value as the lane; `same` holds all lanes that have it."""
    return same & present & members


def match_all(same: Value, present: Value, members: Value) -> tuple[Value, Value]:
    """``match.all``: return the members and true if all hold the same value, else zero and false."""
    everyone = present & members
    alike = (same & everyone).equals(everyone)
    return where(alike, everyone, 0), alike


def elect(lane: Value, present: Value, members: Value) -> tuple[Value, Value]:
    """``elect``: return the index of the lowest member, and whether the lane is that member."""
    everyone = present & members
    leader = popc((everyone & -everyone) - 1)
    return leader, leader.equals(lane)
