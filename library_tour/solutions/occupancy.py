"""Compute how many 4-byte loads each thread must have in flight for a multiprocessor to reach a bandwidth."""

from __future__ import annotations

import math

import cudart_py as cuda


def loads_in_flight(
    capability: tuple[int, int], threads: int, registers: int, latency: float, bytes_per_cycle: float
) -> int:
    """Return the loads per thread, for blocks of `threads` threads with `registers` registers each.

    A load takes `latency` cycles. The multiprocessor must move `bytes_per_cycle` bytes per cycle.
    """
    # Threads, not lanes: the idle lanes of a block's last warp load nothing.
    resident = cuda.occupancy(capability, threads, registers).blocks * threads
    return math.ceil(latency * bytes_per_cycle / (4 * resident))
