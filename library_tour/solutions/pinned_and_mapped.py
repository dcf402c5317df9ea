"""Multiply an array in mapped host memory by a factor, and return the result in another host array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from library_tour.device_code import blocks_for, load

BLOCK = 256


def scaled(elements: NDArray[np.uint32], factor: int) -> NDArray[np.uint32]:
    """Return the elements, multiplied by the factor modulo 2^32."""
    kernel = load("pinned_and_mapped")["scale"][blocks_for(elements.size, BLOCK), BLOCK]
    result = cuda.pinned_empty(elements.shape, np.uint32, mapped=True)
    kernel(elements, result, factor, elements.size)
    cuda.legacy_default.synchronize()
    return result
