"""Vector clocks of warps, which barriers in memory (``mbarrier``) pass on from arriving to waiting threads.

The clock of a warp has, for each warp w of its block, the time up to which the accesses of w happen before the warp's
own accesses. A barrier has two clocks: one for all arrivals, and one for the arrivals up to the end of the last
completed phase. A wait receives the second clock. Each clock comes with the time up to which the arriving threads had
acquired the releases of other blocks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...ptx.instructions.barriers import PARITY
from ...ptx.operations import mbarriers

Array = NDArray[np.int64]
_LANES = 32
_PARITY = np.uint64(PARITY)


class WarpClocks:
    """The clocks of a chunk's warps and barriers; the chunk has `blocks` blocks with `threads` threads each.

    `words` are the 64-bit words of the blocks' shared memory, which contain the barriers.
    """

    def __init__(self, blocks: int, threads: int, words: NDArray[np.uint64]) -> None:
        self._threads = threads
        self._words = words
        warps = -(-threads // _LANES)
        # Indexed by block, warp, and the warp whose accesses the time refers to.
        self._clocks = np.zeros((blocks, warps, warps), np.int64)
        # The row in the arrays below of each barrier that has been used, indexed by its word; -1 for other words.
        self._rows = np.full(len(words), -1, np.int32)
        self._parity = np.zeros(0, np.uint64)
        self._complete = np.zeros((0, warps), np.int64)
        self._arrived = np.zeros((0, warps), np.int64)
        self._acquired = np.zeros((2, 0), np.int64)

    def arrive(self, lanes: Array, barriers: Array, acquired: Array, now: int, arrivals: Array) -> None:
        """Record that each lane is about to arrive at its barrier; `arrivals` says how many times.

        `barriers` contains the offset of each lane's barrier in the blocks' shared memory. `acquired` is the time up to
        which the lanes have acquired the releases of other blocks. `now` is 0 for an arrival that releases nothing.
        """
        rows = self._rows_of(barriers)
        if now:
            block, warp = self._warps_of(lanes)
            passed = self._clocks[block, warp]
            passed[np.arange(len(lanes)), warp] = now
            np.maximum.at(self._arrived, rows, passed)
            np.maximum.at(self._acquired[1], rows, acquired)
        # If a phase ends in the middle of these arrivals, the next one begins. All lanes count as arriving in both.
        total = np.bincount(rows, arrivals, len(self._parity))
        between = rows[total[rows] > self._words[barriers >> 3] & mbarriers.MISSING]
        if len(between):
            self._complete_phases(np.unique(between))

    def wait(self, lanes: Array, barriers: Array) -> Array:
        """Record that lanes wait at barriers, given by offsets; return the time up to which they acquire releases."""
        rows = self._rows_of(barriers)
        np.maximum.at(self._clocks, self._warps_of(lanes), self._complete[rows])
        acquired: Array = self._acquired[0][rows]
        return acquired

    def of(self, lanes: Array) -> Array:
        """Return the clock of each lane's warp, with one row per lane."""
        clocks: Array = self._clocks[self._warps_of(lanes)]
        return clocks

    def passed(self, lanes: Array, when: Array, other: Array) -> NDArray[np.bool_]:
        """Return a mask of the accesses of `lanes` at `when` that happen before the current accesses of `other`.

        The result is meaningful only for pairs of lanes in the same block.
        """
        block, warp = self._warps_of(other)
        result: NDArray[np.bool_] = when < self._clocks[block, warp, lanes % self._threads // _LANES]
        return result

    def _warps_of(self, lanes: Array) -> tuple[Array, Array]:
        block, thread = np.divmod(lanes, self._threads)
        return block, thread // _LANES

    def _rows_of(self, barriers: Array) -> NDArray[np.int32]:
        """Return the rows of barriers, after checking which phases have been completed."""
        numbers = barriers >> 3
        rows: NDArray[np.int32] = self._rows[numbers]
        fresh = numbers[rows < 0]
        if len(fresh):
            fresh = np.unique(fresh)
            self._rows[fresh] = np.arange(len(self._parity), len(self._parity) + len(fresh))
            self._parity = np.append(self._parity, self._words[fresh] >> _PARITY)
            more = ((0, len(fresh)), (0, 0))
            self._complete, self._arrived = np.pad(self._complete, more), np.pad(self._arrived, more)
            self._acquired = np.pad(self._acquired, more[::-1])
            rows = self._rows[numbers]
        # Only an arrival completes a phase, so at most one phase has been completed since the last check.
        done = np.unique(rows[self._words[numbers] >> _PARITY != self._parity[rows]])
        if len(done):
            self._parity[done] ^= np.uint64(1)
            self._complete_phases(done)
        return rows

    def _complete_phases(self, rows: NDArray[np.int32]) -> None:
        self._complete[rows] = self._arrived[rows]
        self._acquired[0, rows] = self._acquired[1, rows]
