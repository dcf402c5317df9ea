"""Advance an array in managed memory, so that all pages are where they are needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from library_tour.course.managed import kernel_over


def advanced(x: NDArray[np.uint32], y: NDArray[np.uint32], steps: int) -> None:
    """Advance the elements of `x` by `steps` steps, and store the results in `y` for the host to read."""
    cuda.prefetch(x)
    cuda.prefetch(y)
    kernel_over(x, y, steps)()
    cuda.prefetch(y, "host")
    cuda.legacy_default.synchronize()
