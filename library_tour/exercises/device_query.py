"""Find the largest square tile of floats that a block can hold in shared memory, on any device.

So far, the size of shared memory is assumed, and not asked for: every device has these 48 KiB without being opted in.
"""

from __future__ import annotations

import math

import cudart_py as cuda

FLOAT_BYTES = 4


def largest_tile(has: cuda.DeviceProperties) -> int:
    """Return how many rows and columns the tile has."""
    return math.isqrt(48 * 1024 // FLOAT_BYTES)
