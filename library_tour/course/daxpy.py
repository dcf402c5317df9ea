"""Compute y = a x + y in double precision. Memory bandwidth limits the kernel.

On the simulator, which checks results but does not measure time:

    $ library-tour run daxpy
    daxpy: y = a x + y: a kernel at the speed of memory
    size 1,048,579: elements per vector
           check
    ────────────
    daxpy  right
    For each element, the kernel performs two operations and moves 24 bytes, so
    memory bandwidth limits it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Result, Size
from ..variants import Variant, measure

TITLE = "y = a x + y: a kernel at the speed of memory"
SIZE = Size("elements per vector", full=2**27 + 3, small=2**20 + 3)
BLOCK = 256
A = 2.7

Doubles = NDArray[np.float64]


def reference(x: Doubles, y: Doubles) -> Doubles:
    """Return a x + y, rounded twice: after the product and after the sum."""
    return A * x + y


def run(device: cuda.Device, size: int) -> Result:
    """Check and time the only variant."""
    x, y = np.random.default_rng().random((2, size))
    device_x, device_y = cuda.to_device(x), cuda.empty_like(y)
    kernel = load("daxpy")["daxpy"]
    variant = Variant(
        name="daxpy",
        prepare=lambda: device_y.copy_from(y),
        launch=kernel[blocks_for(size, BLOCK), BLOCK].bind(A, device_x, device_y, size),
        output=device_y,
        expected=reference(x, y),
        # The kernel rounds once and NumPy twice. All values are below 4, so the results differ by no more than this.
        tolerance=2 * np.spacing(2.0),
        amount=3 * x.nbytes,
    )
    limit = copy_limit(device)
    note = "For each element, the kernel performs two operations and moves 24 bytes, so memory bandwidth limits it."
    return Result(measure([variant], limit), limit, notes=[note])
