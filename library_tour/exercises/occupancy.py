"""Compute how many 4-byte loads each thread must have in flight for a multiprocessor to reach a bandwidth.

For now, the function assumes that the multiprocessor is full, whatever the block size and the registers per thread.
`cuda.occupancy` returns the number of blocks that are resident.
"""

from __future__ import annotations

import math

import cudart_py as cuda


def loads_in_flight(
    capability: tuple[int, int], threads: int, registers: int, latency: float, bytes_per_cycle: float
) -> int:
    """Return the loads per thread, for blocks of `threads` threads with `registers` registers each.

    A load takes `latency` cycles. The multiprocessor must move `bytes_per_cycle` bytes per cycle.
    """
    resident = cuda.MULTIPROCESSORS[capability].threads
    return math.ceil(latency * bytes_per_cycle / (4 * resident))
