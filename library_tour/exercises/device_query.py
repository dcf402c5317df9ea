"""Compute the side of the largest square tile of floats that fits into a block's shared memory, on any device.

So far, the size is assumed: every device offers 48 KiB per block without opting in. Ask the device instead.
"""

from __future__ import annotations

import math

import cudart_py as cuda

FLOAT_BYTES = 4


def largest_tile(has: cuda.DeviceProperties) -> int:
    """Return the number of rows, and columns, of the tile."""
    return math.isqrt(48 * 1024 // FLOAT_BYTES)
