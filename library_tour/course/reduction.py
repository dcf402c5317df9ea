"""Sum an array: from one atomic an element to none at all.

On the software driver, which checks, counts and does not time:

    $ library-tour run reduction
    reduction: A sum whose additions wait less and less for one another
    size 65,539: numbers to sum
    limit: read bandwidth
                          course ms  loads  atomics    error  check
    ───────────────────────────────────────────────────────────────
    an atomic an element      1,105  2,049    2,049  2.8e-06  right
    an atomic a block          31.4  2,049      257  1.1e-07  right
    the same with CUB                2,049      257  1.1e-07  right
    fixed grid, by four                513    1,056  5.1e-09  right
    two passes                         522        0  5.1e-09  right
    two passes at once                 546    1,056  5.1e-09  right
    The checks add multiples of 1/64, exact in any order; the errors are relative
    ones of numbers in [0, 1), of which a single float total notices no more once it
    has reached 2^24.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, on_host
from ..device_code import blocks_for, load
from ..limits import read_limit
from ..stop import Result, Size
from ..variants import Variant, measure

TITLE = "A sum whose additions wait less and less for one another"
SIZE = Size("numbers to sum", full=2**29 + 3, small=2**16 + 3)
BLOCK = 256
# Of the last variant: loads in flight, and blocks on a multiprocessor.
ONCE, ONCE_RESIDENT = "sum_once<8>", 8
EXPLAINED_BY = ("loads", "atomics")
# Of one pass, from the course's total for 256 of them on a T1000.
COURSE_MS = {"an atomic an element": 283e3 / 256, "an atomic a block": 8.04e3 / 256}

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
    limit = read_limit(device)
    rows = measure(variants, limit, EXPLAINED_BY)

    random.random(out=host, dtype=np.float32)
    x.copy_from(host)
    exact = host.sum(dtype=np.float64)
    sums = {variant.name: sum_with(variant) for variant, row in zip(variants, rows, strict=True) if row.check}
    rows = [
        replace(row, values={**row.values, "error": float(abs(sums[row.name][0] - exact) / exact)})
        if row.name in sums
        else row
        for row in rows
    ]
    again = [
        compare(f"{variant.name}: the same bits again", sum_with(variant), sums[variant.name])
        for variant in variants[-2:]
    ]
    note = (
        "The checks add multiples of 1/64, exact in any order; the errors are relative ones of numbers in [0, 1), "
        "of which a single float total notices no more once it has reached 2^24."
    )
    return Result(rows, limit, checks=again, notes=[note])


def make_variants(device: cuda.Device, x: cuda.DeviceArray, expected: Floats) -> list[Variant]:
    """Return the ways to sum `x`; what an atomic adds to is set to zero first, and that is timed too."""
    module = load("reduction", names=[ONCE])
    total = cuda.empty(1, np.float32)
    # A thread for every element, or as many blocks as the device holds at once.
    every, resident = blocks_for(x.size, BLOCK), device.sm_count * device.properties.max_threads_per_sm // BLOCK
    partials = cuda.empty(resident, np.float32)

    def adding(kernel: str, grid: int) -> Callable[[], object]:
        def add() -> None:
            cuda.memset(total, 0)
            module[kernel][grid, BLOCK](x, total, x.size)

        return add

    first = module["sum_partials"][resident, BLOCK].bind(x, partials, x.size)
    second = module["sum_partials"][1, BLOCK].bind(partials, total, resident)

    def two_passes() -> None:
        first()
        second()

    launches: dict[str, Callable[[], object]] = {
        "an atomic an element": adding("sum_atomic", every),
        "an atomic a block": adding("sum_block", every),
        "the same with CUB": adding("sum_block_cub", every),
        "fixed grid, by four": adding("sum_grid", resident),
        "two passes": two_passes,
        "two passes at once": module[ONCE][ONCE_RESIDENT * device.sm_count, BLOCK].bind(x, partials, total, x.size),
    }
    return [
        Variant(
            name=name, launch=launch, output=total, expected=expected, amount=x.nbytes,
            columns={"course ms": COURSE_MS.get(name, "")},
        )
        for name, launch in launches.items()
    ]  # fmt: skip


def sum_with(variant: Variant) -> Floats:
    """Return the sum that a variant computes."""
    variant.launch()
    return on_host(variant.output)
