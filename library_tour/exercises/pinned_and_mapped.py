"""Multiply an array in mapped host memory by a factor, and return the result in another host array.

The result is right, but the array is copied to the device, and the result is copied back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from library_tour.device_code import blocks_for, load

BLOCK = 256


def scaled(elements: NDArray[np.uint32], factor: int) -> NDArray[np.uint32]:
    """Return the elements, multiplied by the factor modulo 2^32."""
    kernel = load("pinned_and_mapped")["scale"][blocks_for(elements.size, BLOCK), BLOCK]
    on_device, result = cuda.to_device(elements), cuda.empty_like(elements)
    kernel(on_device, result, factor, elements.size)
    return result.to_host()
