"""Compute the side of the largest square tile of floats that fits in a block's shared memory, on any device."""

from __future__ import annotations

import math

import cudart_py as cuda

FLOAT_BYTES = 4


def largest_tile(has: cuda.DeviceProperties) -> int:
    """Return the number of rows, and columns, of the tile."""
    return math.isqrt(has.shared_memory_per_block_optin // FLOAT_BYTES)
