"""Find the largest square tile of floats that a block can hold in shared memory, on any device."""

from __future__ import annotations

import math

import cudart_py as cuda

FLOAT_BYTES = 4


def largest_tile(has: cuda.DeviceProperties) -> int:
    """Return how many rows and columns the tile has."""
    return math.isqrt(has.shared_memory_per_block_optin // FLOAT_BYTES)
