"""Multiply numbers in mapped memory of the host, and return the results in another array of the host.

The result is right, but the numbers are copied to the device, and the results back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from library_tour.device_code import blocks_for, load

BLOCK = 256


def scaled(numbers: NDArray[np.uint32], factor: int) -> NDArray[np.uint32]:
    """Return the numbers, multiplied by the factor modulo 2^32."""
    kernel = load("pinned_and_mapped")["scale"][blocks_for(numbers.size, BLOCK), BLOCK]
    on_device, result = cuda.to_device(numbers), cuda.empty_like(numbers)
    kernel(on_device, result, factor, numbers.size)
    return result.to_host()
