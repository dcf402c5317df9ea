"""Sum an array: from one atomic operation per element to none.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run reduction
    reduction: Sum of an array: atomics, shuffles and two passes
    size 65,539: elements to sum
                              course ms    error  loads  atomics  check
    ───────────────────────────────────────────────────────────────────
    NumPy on the host               125  8.6e-09                  right
    one atomic per element        1,105  5.1e-06  2,049    2,049  right
    one atomic per block           31.4  3.5e-07  2,049      257  right
    per block, with CUB                  3.5e-07  2,049      257  right
    fixed grid, vector loads             8.6e-09    513       17  right
    four loads in flight                 8.6e-09    513       17  right
    two passes                           8.6e-09    515        0  right
    two passes, one launch               8.6e-09    514       17  right
    minimum                                         515        0  right
    maximum                                         515        0  right
    largest magnitude                               515        0  right
    The checks add multiples of 1/64, whose sum is exact in any order. The 'error'
    column shows the relative error for random numbers in [0, 1). Once a single
    float total has reached 2^24, adding such a number no longer changes it.
    Each addition combines two values, so a sum of 65,539 elements takes at least 17
    steps (log2 N), however many threads there are. A tree of shuffles comes close
    to that. Atomic additions to a single total are performed one after another.
    The same tree finds the minimum, the maximum and the largest magnitude. NumPy's
    sum uses 2 threads, each of which sums parts of the array.
    The 'course ms' column shows the lectures' times for one sum, on a T1000 and its
    host. The sums were 7616.404 on the host, 7616.226 with one atomic per block and
    7618.101 with one per element. The first two differ by 2.3e-5 (the lecture says
    1.7e-5). The last two differ by 2.5e-4, because a single total is rounded the
    most times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, over_all, repeated
from ..limits import read_limit
from ..processors import in_threads, processors
from ..stop import Result, Row, Size, Value
from ..variants import Variant, measure

Floats = NDArray[np.float32]

TITLE = "Sum of an array: atomics, shuffles and two passes"
SIZE = Size("elements to sum", full=2**29 + 3, small=2**16 + 3)
BLOCK = 256
# Threads per block of a fixed grid (many, so that few blocks leave few sums for the end), and loads in flight.
FIXED_BLOCK, LOADS = 1024, 4
# Other operations for the two passes, with NumPy's functions for them.
OPERATIONS: dict[str, tuple[str, Callable[[Floats], np.float32]]] = {
    "minimum": ("Minimum", np.min),
    "maximum": ("Maximum", np.max),
    "largest magnitude": ("Magnitude", lambda block: np.abs(block).max()),
}
INSTANCES = (
    *("sum_grid<1>", f"sum_grid<{LOADS}>", f"sum_once<{LOADS}>"),
    *(f"fold_partials<{operation}, {LOADS}>" for operation in ("Sum", *(name for name, _ in OPERATIONS.values()))),
)
EXPLAINED_BY = ("loads", "atomics")
# The variants that add in a fixed order, so that their sums have the same bits every time.
ONE_ORDER = ("two passes", "two passes, one launch")
# The time of one sum, from the lectures' time for 256 of them on a T1000.
ON_HOST = "NumPy on the host"
COURSE_MS = {ON_HOST: 32.0e3 / 256, "one atomic per element": round(283e3 / 256), "one atomic per block": 8.04e3 / 256}


def reference(block: Floats, size: int) -> Floats:
    """Return the sum of `size` elements that repeat a block, rounded once, as an array of one element."""
    return np.array([over_all(double_sum, block, size)], np.float32)


def double_sum(x: Floats) -> np.float64:
    """Return the sum of an array, added in double precision."""
    return np.float64(x.sum(dtype=np.float64))


def run(device: cuda.Device, size: int) -> Result:
    """Check on elements whose sum is exact in any order, and time; then measure rounding errors on random elements."""
    random = np.random.default_rng()
    # Each element comes with its negative, so that every partial sum fits the 24 bits of a float. One element is
    # changed, so that the total is not zero.
    half = random.integers(-32, 33, min(size, INPUT_BLOCK) // 2 + 1).astype(np.float32) / 64
    block = np.concatenate([half, -half])
    block[0] += 1
    x = repeated(block, size)
    limit = read_limit(device)
    expected = reference(block, size)
    sums, others = make_variants(device, x, expected, block)
    rows = measure(sums, limit, EXPLAINED_BY)
    other_rows = measure(others, limit, EXPLAINED_BY)
    host = x.to_host()
    on_host_row = host_row(host, expected)

    block = random.random(block.size, np.float32)
    cuda.memcpy(x, repeated(block, size))
    x.to_host(out=host)
    exact = over_all(double_sum, block, size)
    totals = {variant.name: sum_with(variant) for variant, row in zip(sums, rows, strict=True) if row.check}
    totals[ON_HOST] = host_sum(host)
    rows = [
        replace(row, values={**row.values, "error": float(abs(totals[row.name][0] - exact) / exact)})
        if row.name in totals
        else row
        for row in (on_host_row, *rows)
    ]
    again = [
        compare(f"{variant.name}: the same bits again", sum_with(variant), totals[variant.name])
        for variant in sums
        if variant.name in ONE_ORDER
    ]
    return Result([*rows, *other_rows], limit, checks=again, notes=notes(size))


def notes(size: int) -> list[str]:
    """Return the conclusions from the table."""
    steps = math.ceil(math.log2(max(size, 2)))
    return [
        "The checks add multiples of 1/64, whose sum is exact in any order. The 'error' column shows the relative "
        "error for random numbers in [0, 1). Once a single float total has reached 2^24, adding such a number no "
        "longer changes it.",
        f"Each addition combines two values, so a sum of {size:,} elements takes at least {steps} steps (log2 N), "
        "however many threads there are. A tree of shuffles comes close to that. Atomic additions to a single total "
        "are performed one after another.",
        f"The same tree finds the minimum, the maximum and the largest magnitude. NumPy's sum uses {processors()} "
        "threads, each of which sums parts of the array.",
        "The 'course ms' column shows the lectures' times for one sum, on a T1000 and its host. The sums were 7616.404 "
        "on the host, 7616.226 with one atomic per block and 7618.101 with one per element. The first two differ by "
        "2.3e-5 (the lecture says 1.7e-5). The last two differ by 2.5e-4, because a single total is rounded the most "
        "times.",
    ]


def host_sum(x: Floats) -> Floats:
    """Return NumPy's sum, computed on all processors, as an array of one element."""
    return np.array([sum(in_threads(np.sum, x))], np.float32)


def host_row(x: Floats, expected: Floats) -> Row:
    """Check NumPy's sum, and time it with the host's clock."""
    check = compare(f"{ON_HOST}: the sum", host_sum(x), expected)
    values: dict[str, Value] = {"course ms": COURSE_MS[ON_HOST]}
    if timing.available() and check.holds:
        values = {**timing.rates(timing.waiting_ms(lambda: host_sum(x)), x.nbytes), **values}
    return Row(ON_HOST, values, check)


def make_variants(
    device: cuda.Device, x: cuda.DeviceArray, expected: Floats, block: Floats
) -> tuple[list[Variant], list[Variant]]:
    """Return the variants that sum `x`, and the variants that use two passes for other operations.

    If atomics add to a total, setting it to zero is part of the timed work.
    """
    module = load("reduction", names=INSTANCES)
    total = cuda.empty(1, np.float32)
    # One wave of blocks, but no more than the groups of four elements can keep busy.
    fixed = device.sm_count * device.properties.max_threads_per_sm // FIXED_BLOCK
    fixed = min(fixed, blocks_for(x.size, 4 * FIXED_BLOCK))
    partials = cuda.empty(fixed, np.float32)

    def adding(kernel: str, grid: int, threads: int) -> Callable[[], object]:
        def add() -> None:
            cuda.memset(total, 0)
            module[kernel][grid, threads](x, total, x.size)

        return add

    def two_passes(operation: str) -> Callable[[], object]:
        kernel = module[f"fold_partials<{operation}, {LOADS}>"]
        first = kernel[fixed, FIXED_BLOCK].bind(x, partials, x.size)
        second = kernel[1, FIXED_BLOCK].bind(partials, total, fixed)

        def launch() -> None:
            first()
            second()

        return launch

    every = blocks_for(x.size, BLOCK)
    launches: dict[str, Callable[[], object]] = {
        "one atomic per element": adding("sum_atomic", every, BLOCK),
        "one atomic per block": adding("sum_block", every, BLOCK),
        "per block, with CUB": adding("sum_block_cub", every, BLOCK),
        "fixed grid, vector loads": adding("sum_grid<1>", fixed, FIXED_BLOCK),
        "four loads in flight": adding(f"sum_grid<{LOADS}>", fixed, FIXED_BLOCK),
        "two passes": two_passes("Sum"),
        "two passes, one launch": module[f"sum_once<{LOADS}>"][fixed, FIXED_BLOCK].bind(x, partials, total, x.size),
    }
    sums = [
        Variant(
            name=name, launch=launch, output=total, expected=expected, amount=x.nbytes,
            columns={"course ms": COURSE_MS.get(name, "")},
        )
        for name, launch in launches.items()
    ]  # fmt: skip  # rows of a table
    others = [
        Variant(name=name, launch=two_passes(operation), output=total, amount=x.nbytes,
                expected=np.array([of_numpy(block[: x.size])], np.float32))
        for name, (operation, of_numpy) in OPERATIONS.items()
    ]  # fmt: skip  # rows of a table
    return sums, others


def sum_with(variant: Variant) -> Floats:
    """Return the sum that a variant computes."""
    variant.launch()
    return on_host(variant.output)
