"""Add two vectors on the device, and time every phase of the computation.

On the simulator, which checks results but does not measure time:

    $ library-tour run vector_add
    vector_add: Vector addition: the phases of a computation on a GPU
    size 1,048,579: elements per vector
                MB  check
    ─────────────────────
    allocate  12.6
    copy in   8.39
    launch    12.6  right
    copy out  4.19
    free      12.6
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, poison
from ..counters import counted
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Result, Row, Size
from ..timing import Phases

TITLE = "Vector addition: the phases of a computation on a GPU"
SIZE = Size("elements per vector", full=2**26 + 3, small=2**20 + 3)
BLOCK = 256

Floats = NDArray[np.float32]


def reference(a: Floats, b: Floats) -> Floats:
    """Return the sum."""
    return a + b


def add(kernel: cuda.Kernel, a: Floats, b: Floats, phase: Phases) -> Floats:
    """Return the sum, computed on the device."""
    with phase("allocate"):
        arrays = [cuda.empty_like(a) for _ in range(3)]
    device_a, device_b, device_sum = arrays
    poison(device_sum)
    with phase("copy in"):
        device_a.copy_from(a)
        device_b.copy_from(b)
    with phase("launch"):
        kernel[blocks_for(a.size, BLOCK), BLOCK](device_a, device_b, device_sum, a.size)
    with phase("copy out"):
        result = device_sum.to_host()
    with phase("free"):
        for array in arrays:
            array.close()
    return result


def run(device: cuda.Device, size: int) -> Result:
    """Check one computation with all its phases, and time a second one: the first one includes one-time setup."""
    a, b = np.random.default_rng().random((2, size), np.float32)
    kernel = load("vector_add")["vector_add"]
    check = compare("the sum equals NumPy's", add(kernel, a, b, Phases()), reference(a, b))
    phases = Phases()
    metrics = counted(lambda: add(kernel, a, b, phases)) if check.holds else {}

    limit = copy_limit(device)
    rows = [
        Row("allocate", {"MB": 3e-6 * a.nbytes, **phases.rates("allocate")}),
        Row("copy in", {"MB": 2e-6 * a.nbytes, **phases.rates("copy in", 2 * a.nbytes)}),
        Row("launch", {"MB": 3e-6 * a.nbytes, **phases.rates("launch", 3 * a.nbytes, limit)}, check, metrics=metrics),
        Row("copy out", {"MB": 1e-6 * a.nbytes, **phases.rates("copy out", a.nbytes)}),
        Row("free", {"MB": 3e-6 * a.nbytes, **phases.rates("free")}),
    ]
    return Result(rows, limit)
