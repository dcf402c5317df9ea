"""Multiply an array by several factors in one stream, and add the result to a total in another one.

The result is right, but the host waits for both streams, and all temporary arrays are kept until the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import cudart_py as cuda
from library_tour.device_code import blocks_for, load

BLOCK = 256


def add_product(
    total: cuda.DeviceArray,
    x: cuda.DeviceArray,
    factors: Sequence[int],
    working: cuda.Stream,
    reading: cuda.Stream,
    pool: cuda.MemoryPool,
) -> None:
    """Add the product of `x` and all factors to the total."""
    module, grid = load("stream_ordered"), blocks_for(x.size, BLOCK)
    arrays = [x]
    for factor in factors:
        arrays.append(cuda.empty(x.size, np.uint32, stream=working, pool=pool))
        module["store_multiple"][grid, BLOCK, 0, working](arrays[-2], arrays[-1], factor, x.size)
    working.synchronize()
    module["add_to"][grid, BLOCK, 0, reading](total, arrays[-1], x.size)
    reading.synchronize()
    for array in arrays[1:]:
        array.close()
