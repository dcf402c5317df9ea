"""Warp rows: per-lane values of a group, arranged with one row per warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..ptx.running.groups import Group

Array = NDArray[Any]
_LANES = 32


class WarpRows:
    """The lanes of a group, or the lanes at some positions in it, in rows of 32.

    `count` is the number of warps. `present` is a mask of the active lanes of each warp; None means all lanes.
    """

    def __init__(self, group: Group, positions: Array | None = None) -> None:
        lanes = group.lane_numbers if positions is None else group.lane_numbers.take(positions)
        threads = group.chunk.threads
        self._places: Array | None = None
        self.present: Array | None = None
        if threads % _LANES == 0 and len(lanes) == group.chunk.lanes:
            self.count = len(lanes) // _LANES
            return
        warps = _warp_numbers(lanes, threads)
        first = np.flatnonzero(np.concatenate(([True], warps[1:] != warps[:-1])))
        self.count = len(first)
        active = np.diff(first, append=len(lanes))
        if self.count * _LANES == len(lanes):
            return
        # An inactive lane repeats the first active lane of its row, which adds nothing to the row's bytes.
        row = np.repeat(np.arange(self.count), active)
        column = (lanes % threads if threads % _LANES else lanes) % _LANES
        self._places = np.repeat(first[:, None], _LANES, axis=1)
        self._places[row, column] = np.arange(len(lanes))
        self.present = np.zeros((self.count, _LANES), np.bool_)
        self.present[row, column] = True

    def arrange(self, values: Array) -> Array:
        """Return an array over the lanes, arranged in rows."""
        return values.reshape(-1, _LANES) if self._places is None else values.take(self._places)


def _warp_numbers(lanes: Array, threads: int) -> Array:
    """Return the number of each lane's warp; the last warp of a block may be partial."""
    if threads % _LANES == 0:
        return lanes >> 5
    per_block = -(-threads // _LANES)
    warps: Array = lanes // threads * per_block + lanes % threads // _LANES
    return warps


def warps_of(group: Group) -> int:
    """Return the number of warps that have a lane in a group."""
    notes = _notes(group)
    count: int | None = notes.get("warps")
    if count is None:
        chunk = group.chunk
        if group.n == chunk.lanes:
            count = chunk.blocks * -(-chunk.threads // _LANES)
        elif "rows" in notes:
            count = notes["rows"].count
        else:
            warps = _warp_numbers(group.lane_numbers, chunk.threads)
            count = 1 + int(np.count_nonzero(warps[1:] != warps[:-1]))
        notes["warps"] = count
    return count


def rows_of(group: Group) -> WarpRows:
    """Return the rows of all lanes of a group, computed once per group."""
    notes = _notes(group)
    rows: WarpRows | None = notes.get("rows")
    if rows is None:
        rows = notes["rows"] = WarpRows(group)
    return rows


def _notes(group: Group) -> dict[str, Any]:
    notes: dict[str, Any] | None = group.notes
    if notes is None:
        notes = group.notes = {}
    return notes
