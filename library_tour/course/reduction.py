"""Sum an array: from one atomic operation an element to none.

On the software driver, which checks, counts and does not time:

    $ library-tour run reduction
    reduction: Sum of an array: atomics, shuffles and two passes
    size 65,539: numbers to sum
    limit: read bandwidth
                          course ms  loads  atomics    error  check
    ───────────────────────────────────────────────────────────────
    an atomic an element      1,105  2,049    2,049  4.1e-07  right
    an atomic a block          31.4  2,049      257  1.1e-07  right
    the same with CUB                2,049      257  2.3e-07  right
    fixed grid, by four                513       17  6.9e-08  right
    four loads in flight               513       17  6.9e-08  right
    two passes                         515        0  9.2e-09  right
    two passes at once                 514       17  5.1e-08  right
    The checks add multiples of 1/64, whose sum is exact in any order. The column
    'error' is the relative error for random numbers in [0, 1): a single float total
    no longer grows by such numbers once it has reached 2^24.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, on_host
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, over_all, repeated
from ..limits import read_limit
from ..stop import Result, Size
from ..variants import Variant, measure

TITLE = "Sum of an array: atomics, shuffles and two passes"
SIZE = Size("numbers to sum", full=2**29 + 3, small=2**16 + 3)
BLOCK = 256
# Of a fixed grid: few large blocks leave few sums for the end. And a thread's loads in flight.
FIXED_BLOCK, LOADS = 1024, 4
INSTANCES = ("sum_grid<1>", *(f"sum_{way}<{LOADS}>" for way in ("grid", "partials", "once")))
EXPLAINED_BY = ("loads", "atomics")
# The variants that add in a fixed order, so that their sums have the same bits every time.
ONE_ORDER = ("two passes", "two passes at once")
# Of one pass, from the course's total for 256 of them on a T1000.
COURSE_MS = {"an atomic an element": 283e3 / 256, "an atomic a block": 8.04e3 / 256}

Floats = NDArray[np.float32]


def reference(block: Floats, size: int) -> Floats:
    """Return the sum of a block again and again, an array of one element, rounded once."""
    return np.array([over_all(added, block, size)], np.float32)


def added(numbers: Floats) -> np.float64:
    """Add in double precision."""
    return np.float64(numbers.sum(dtype=np.float64))


def run(device: cuda.Device, size: int) -> Result:
    """Check on numbers that add exactly in any order, time, then show how the sums of others are rounded."""
    random = np.random.default_rng()
    # Each number comes with its negative, so that every partial sum fits the 24 bits of a float; one number is changed,
    # so that the total is not zero.
    half = random.integers(-32, 33, min(size, INPUT_BLOCK) // 2 + 1).astype(np.float32) / 64
    block = np.concatenate([half, -half])
    block[0] += 1
    x = repeated(block, size)
    variants = make_variants(device, x, reference(block, size))
    limit = read_limit(device)
    rows = measure(variants, limit, EXPLAINED_BY)

    block = random.random(block.size, np.float32)
    cuda.memcpy(x, repeated(block, size))
    exact = over_all(added, block, size)
    sums = {variant.name: sum_with(variant) for variant, row in zip(variants, rows, strict=True) if row.check}
    rows = [
        replace(row, values={**row.values, "error": float(abs(sums[row.name][0] - exact) / exact)})
        if row.name in sums
        else row
        for row in rows
    ]
    again = [
        compare(f"{variant.name}: the same bits again", sum_with(variant), sums[variant.name])
        for variant in variants
        if variant.name in ONE_ORDER
    ]
    note = (
        "The checks add multiples of 1/64, whose sum is exact in any order. The column 'error' is the relative error "
        "for random numbers in [0, 1): a single float total no longer grows by such numbers once it has reached 2^24."
    )
    return Result(rows, limit, checks=again, notes=[note])


def make_variants(device: cuda.Device, x: cuda.DeviceArray, expected: Floats) -> list[Variant]:
    """Return the ways to sum `x`. Where atomics add to a total, setting it to zero is part of the timed work."""
    module = load("reduction", names=INSTANCES)
    total = cuda.empty(1, np.float32)
    # As many blocks as the device holds at once, but no more than there are groups of four numbers.
    fixed = device.sm_count * device.properties.max_threads_per_sm // FIXED_BLOCK
    fixed = min(fixed, blocks_for(x.size, 4 * FIXED_BLOCK))
    partials = cuda.empty(fixed, np.float32)

    def adding(kernel: str, grid: int, block: int) -> Callable[[], object]:
        def add() -> None:
            cuda.memset(total, 0)
            module[kernel][grid, block](x, total, x.size)

        return add

    store = module[f"sum_partials<{LOADS}>"]
    first = store[fixed, FIXED_BLOCK].bind(x, partials, x.size)
    second = store[1, FIXED_BLOCK].bind(partials, total, fixed)

    def two_passes() -> None:
        first()
        second()

    every = blocks_for(x.size, BLOCK)
    launches: dict[str, Callable[[], object]] = {
        "an atomic an element": adding("sum_atomic", every, BLOCK),
        "an atomic a block": adding("sum_block", every, BLOCK),
        "the same with CUB": adding("sum_block_cub", every, BLOCK),
        "fixed grid, by four": adding("sum_grid<1>", fixed, FIXED_BLOCK),
        "four loads in flight": adding(f"sum_grid<{LOADS}>", fixed, FIXED_BLOCK),
        "two passes": two_passes,
        "two passes at once": module[f"sum_once<{LOADS}>"][fixed, FIXED_BLOCK].bind(x, partials, total, x.size),
    }
    return [
        Variant(
            name=name, launch=launch, output=total, expected=expected, amount=x.nbytes,
            columns={"course ms": COURSE_MS.get(name, "")},
        )
        for name, launch in launches.items()
    ]  # fmt: skip  # rows of a table


def sum_with(variant: Variant) -> Floats:
    """Return the sum that a variant computes."""
    variant.launch()
    return on_host(variant.output)
