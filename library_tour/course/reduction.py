"""Sum an array: from one atomic an element to none at all.

On the software driver, which checks and does not time:

    $ library-tour run reduction
    reduction: A sum with fewer and fewer additions that wait for one another
    size 65,539: numbers to sum
    limit: copy bandwidth
                             relative error  check
    ──────────────────────────────────────────────
    an atomic an element            8.3e-06  right
    an atomic a block               1.7e-07  right
    fixed grid, 4 at a time         6.6e-08  right
    two passes, no atomics          6.6e-08  right
    The checks add multiples of 1/64, exact in any order; the errors are of numbers
    in [0, 1), of which a single float total notices no more once it has reached
    2^24.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, on_host
from ..device_code import blocks_for, load
from ..stop import Result, Size
from ..timing import copy_limit
from ..variants import Variant, measure

TITLE = "A sum with fewer and fewer additions that wait for one another"
SIZE = Size("numbers to sum", full=2**29 + 3, small=2**16 + 3)
BLOCK = 256

Floats = NDArray[np.float32]


def reference(x: Floats) -> Floats:
    """Return the sum, an array of one element, added in double precision and rounded once."""
    return np.array([x.sum(dtype=np.float64)], np.float32)


def run(device: cuda.Device, size: int) -> Result:
    """Check on numbers that add exactly in any order, time, then show how the sums of others are rounded."""
    random = np.random.default_rng()
    # As many above as below zero, so that no partial sum outgrows the 24 bits of a float.
    host = random.integers(-32, 33, size, np.int8).astype(np.float32)
    host /= 64
    x = cuda.to_device(host)
    variants = make_variants(device, x, reference(host))
    limit = copy_limit(x.nbytes // 2)
    rows = measure(variants, limit)

    random.random(out=host, dtype=np.float32)
    x.copy_from(host)
    exact = host.sum(dtype=np.float64)
    sums = [sum_with(variant) for variant in variants]
    rows = [
        replace(row, values={**row.values, "relative error": float(abs(total[0] - exact) / exact)})
        for row, total in zip(rows, sums, strict=True)
    ]
    again = compare("two passes give the same bits again", sum_with(variants[-1]), sums[-1])
    note = (
        "The checks add multiples of 1/64, exact in any order; the errors are of numbers in [0, 1), "
        "of which a single float total notices no more once it has reached 2^24."
    )
    return Result(rows, limit, checks=[again], notes=[note])


def make_variants(device: cuda.Device, x: cuda.DeviceArray, expected: Floats) -> list[Variant]:
    """Return the ways to sum `x`; what an atomic adds to is set to zero first, and that is timed too."""
    module = load("reduction")
    total = cuda.empty(1, np.float32)
    # A thread for every element, or as many blocks as the device holds at once.
    every, resident = blocks_for(x.size, BLOCK), device.sm_count * device.properties.max_threads_per_sm // BLOCK
    partials = cuda.empty(resident, np.float32)

    def adding(kernel: str, grid: int) -> Callable[[], object]:
        launch = module[kernel][grid, BLOCK].bind(x, total, x.size)

        def add() -> None:
            cuda.memset(total, 0)
            launch()

        return add

    first = module["sum_partials"][resident, BLOCK].bind(x, partials, x.size)
    second = module["sum_partials"][1, BLOCK].bind(partials, total, resident)

    def two_passes() -> None:
        first()
        second()

    launches: dict[str, Callable[[], object]] = {
        "an atomic an element": adding("sum_atomic", every),
        "an atomic a block": adding("sum_block", every),
        "fixed grid, 4 at a time": adding("sum_grid", resident),
        "two passes, no atomics": two_passes,
    }
    return [
        Variant(name=name, launch=launch, output=total, expected=expected, nbytes=x.nbytes)
        for name, launch in launches.items()
    ]


def sum_with(variant: Variant) -> Floats:
    """Return the sum that a variant computes."""
    variant.launch()
    return on_host(variant.output)
