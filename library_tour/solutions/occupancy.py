"""Work out how many loads of 4 bytes each thread must have in flight, so that a multiprocessor reaches a bandwidth."""

from __future__ import annotations

import math

import cudart_py as cuda


def loads_in_flight(
    capability: tuple[int, int], threads: int, registers: int, latency: float, bytes_a_cycle: float
) -> int:
    """Return the loads of a thread for blocks of `threads` threads with `registers` registers each.

    A load takes `latency` cycles, and the multiprocessor is to move `bytes_a_cycle` bytes in a cycle.
    """
    # Threads and not lanes: the idle lanes of a block's last warp load nothing.
    resident = cuda.occupancy(capability, threads, registers).blocks * threads
    return math.ceil(latency * bytes_a_cycle / (4 * resident))
