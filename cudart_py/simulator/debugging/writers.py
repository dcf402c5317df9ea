"""The writers of memory: those of each byte of shared memory, and the latest one of any bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections import deque

    from ..ptx.running.scheduler import Chunk
    from .moments import Change, LaneGroup, Moment

Array = NDArray[Any]
# The index of the writer of bytes that nothing has written, and the lane of a write that no single lane makes.
NOBODY = -1


class Writers:
    """The writers of a chunk's memory.

    For each byte of shared memory, these are the lane that wrote it last and the index of the instruction; for local
    memory, only whether anything has written the byte.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.lanes = np.full(len(chunk.shared.bytes), NOBODY, np.int32)
        self.sites = np.full(len(chunk.shared.bytes), NOBODY, np.int32)
        self.local = np.zeros(len(chunk.local.bytes), np.bool_)


class LastWrite(NamedTuple):
    """The moment of an instruction, the group that executed it, and the lanes that wrote to some bytes."""

    moment: Moment
    group: LaneGroup
    lanes: Sequence[int]


def last_writer(history: deque[Moment], array: Array, place: int, size: int) -> LastWrite | None:
    """Return the latest instruction that has changed bytes of an array.

    Returns None if the history does not contain it.
    """
    where = np.arange(place, place + size)
    present = array[where]
    for moment in reversed(history):
        changes = (change for change in moment.changes if change.array is array)
        if moment.running is not None and any(_differs(change, where, present) for change in changes):
            lanes = [
                write.lanes[(write.places < place + size) & (write.places + write.size > place)]
                for write in moment.writes
                if write.array is array
            ]
            return LastWrite(moment, moment.running, np.unique(np.concatenate(lanes)).tolist() if lanes else ())
    return None


def _differs(change: Change, where: Array, present: Array) -> bool:
    """Return whether some bytes had other values before a change."""
    _, inner, outer = np.intersect1d(where, change.where, assume_unique=True, return_indices=True)
    return bool((present[inner] != change.before[outer]).any())
