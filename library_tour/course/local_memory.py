"""Local arrays in registers, local memory or shared memory, depending on how they are indexed.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run local_memory
    local_memory: Local arrays: registers, local memory and spills
    size 4,101: groups of four values to count
    counters: measured over 4,101 groups in 3 blocks
                         local  instructions  sectors, random  sectors, same  check
    ───────────────────────────────────────────────────────────────────────────────
    loop, not unrolled  33,984       174,558             4.05           4.05  right
    loop, unrolled           0        54,582                                  right
    unrolled, spilled        0        54,582                                  right
    value as the index   1,992        10,986             17.9           5.14  right
    in shared memory         0         9,006                                  right
    Compiler report, per thread: registers, and bytes in the other columns
                        registers  local bytes  spill stores  spill loads
    ─────────────────────────────────────────────────────────────────────
    loop, not unrolled         32          128             0            0
    loop, unrolled             64            0             0            0
    unrolled, spilled          32          160           428          352
    value as the index         32          128             0            0
    in shared memory           40            0             0            0
    The 'local' column shows the number of accesses to local memory. The 'sectors'
    columns show the sectors per access, for random values and for values that are
    the same in all lanes of a warp. Spills are not counted, since PTX has an
    unlimited number of registers.
    Each thread counts its values in an array of 32 counters. Registers have no
    addresses, so an array whose indices vary is placed in local memory, a part of
    device memory that is accessed through the caches. Unrolling the loop turns each
    index into a constant and the array into 32 registers. Both loops still perform
    32 comparisons per value. Using the value as the index takes only a fifth of the
    instructions.
    In local memory, the words that have the same index are contiguous across the
    lanes of a warp. An access touches 4 sectors if the lanes agree on the index,
    and up to 32 if they do not. Here, shared memory is equally fast for all
    indices, because each lane's counters are in that lane's own bank.
    Limiting the registers per thread, here with __launch_bounds__, makes room for
    more resident threads. Values that do not fit are spilled to local memory, as
    the compiler's report shows. The kernel with spills is slower than the one
    without.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import read_limit
from ..stop import Bars, Result, Row, Size, Value
from ..variants import Variant, measure, of_slowest, side_by_side

TITLE = "Local arrays: registers, local memory and spills"
SIZE = Size("groups of four values to count", full=2**26 + 5, small=2**12 + 5)
BLOCK, COUNTERS, LANES = 256, 32, 32
CHECKED_BLOCKS = 3
KERNELS = {
    "loop, not unrolled": "count_in_loop",
    "loop, unrolled": "count_unrolled<1>",
    "unrolled, spilled": "count_unrolled<8>",
    "value as the index": "count_by_value",
    "in shared memory": "count_shared",
}
REPORTED = "Compiler report, per thread: registers, and bytes in the other columns"
EXPLAINED_BY = ("local", "sectors/local", "instructions")

Values = NDArray[np.uint32]


def reference(values: Values, threads: int) -> Values:
    """Return how often each value occurs among each thread's groups of four, shape (COUNTERS, threads)."""
    thread = np.arange(values.size) // 4 % threads
    counts = np.bincount(values * np.int64(threads) + thread, minlength=COUNTERS * threads)
    return counts.astype(np.uint32).reshape(COUNTERS, threads)


def make_values(groups: int) -> dict[str, Values]:
    """Return values in groups of four: random ones, and random ones that are equal for all lanes of a warp."""
    random = np.random.default_rng()
    same = random.integers(0, COUNTERS, (blocks_for(groups, LANES), 4), np.uint32)
    return {
        "random": random.integers(0, COUNTERS, 4 * groups, np.uint32),
        "same": same.repeat(LANES, axis=0)[:groups].ravel(),
    }


def run(device: cuda.Device, size: int) -> Result:
    """Check each variant on some groups and time it on all, for values that differ between lanes and for equal ones."""
    module = load("local_memory", names=[kernel for kernel in KERNELS.values() if "<" in kernel])
    limit = read_limit(device)
    cases = {
        case: measure(make_variants(device, module, block, size), limit, EXPLAINED_BY)
        for case, block in make_values(min(size, INPUT_BLOCK)).items()
    }
    if timing.available():
        rows = [of_slowest(row, limit) for row in side_by_side(cases, limit.unit)]
        bars = {
            row.name: {in_words(case): float(row.values[case]) for case in cases if case in row.values} for row in rows
        }
        pictures = [Bars("cases", limit.unit, bars, limit)]
        columns = (
            f"The columns show the rate in {limit.unit} for random values and for values that are the same in all "
            "lanes of a warp. The 'of limit' column refers to the slower case."
        )
    else:
        sectors = side_by_side({f"sectors, {case}": counted for case, counted in cases.items()}, "sectors/local")
        rows = [
            replace(row, values={**accesses(counted), **row.values})
            for row, counted in zip(sectors, cases["random"], strict=True)
        ]
        pictures = []
        columns = (
            "The 'local' column shows the number of accesses to local memory. The 'sectors' columns show the sectors "
            "per access, for random values and for values that are the same in all lanes of a warp. Spills are not "
            "counted, since PTX has an unlimited number of registers."
        )
    notes = [
        columns,
        "Each thread counts its values in an array of 32 counters. Registers have no addresses, so an array whose "
        "indices vary is placed in local memory, a part of device memory that is accessed through the caches. "
        "Unrolling the loop turns each index into a constant and the array into 32 registers. Both loops still "
        "perform 32 comparisons per value. Using the value as the index takes only a fifth of the instructions.",
        "In local memory, the words that have the same index are contiguous across the lanes of a warp. An access "
        "touches 4 sectors if the lanes agree on the index, and up to 32 if they do not. Here, shared memory is "
        "equally fast for all indices, because each lane's counters are in that lane's own bank.",
        "Limiting the registers per thread, here with __launch_bounds__, makes room for more resident threads. Values "
        "that do not fit are spilled to local memory, as the compiler's report shows. The kernel with spills is "
        "slower than the one without.",
    ]
    return Result(
        rows,
        limit,
        pictures=pictures,
        notes=notes,
        tables={REPORTED: reported(module)},
        counted=f"{min(size, SIZE.small):,} groups in {CHECKED_BLOCKS} blocks",
    )


def in_words(case: str) -> str:
    """Return the name of a case for the plots."""
    return {"random": "lanes differ", "same": "lanes agree"}[case]


def accesses(row: Row) -> dict[str, Value]:
    """Return the columns of a row that are the same in both cases."""
    return {column: value for column, value in row.values.items() if column != "sectors/local"}


def make_variants(device: cuda.Device, module: cuda.Module, block: Values, groups: int) -> list[Variant]:
    """Return the variants that count; `block` is repeated until there are `groups` groups."""
    values = repeated(block, 4 * groups)
    checked, threads = min(groups, SIZE.small), CHECKED_BLOCKS * BLOCK
    expected = reference(block[: 4 * checked], threads)

    def variant(name: str, kernel: cuda.Kernel) -> Variant:
        # One wave of blocks, but no more than the groups require.
        grid = min(device.sm_count * kernel.occupancy(BLOCK).blocks, blocks_for(groups, BLOCK))
        counts = cuda.empty((COUNTERS, grid * BLOCK), np.uint32)
        few = cuda.empty((COUNTERS, threads), np.uint32)
        return Variant(
            name=name,
            launch=kernel[CHECKED_BLOCKS, BLOCK].bind(values, few, checked),
            output=few,
            expected=expected,
            timed=kernel[grid, BLOCK].bind(values, counts, groups),
            amount=values.nbytes,
        )

    return [variant(name, module[kernel]) for name, kernel in KERNELS.items()]


def reported(module: cuda.Module) -> list[Row]:
    """Return the compiler's report on each kernel; spills are the bytes that its spill instructions move."""
    rows = []
    for name, kernel in ((name, module[kernel]) for name, kernel in KERNELS.items()):
        attributes = kernel.attributes
        columns = {"registers": attributes.registers, "local bytes": attributes.local_bytes}
        if attributes.spill_store_bytes is not None and attributes.spill_load_bytes is not None:
            columns |= {"spill stores": attributes.spill_store_bytes, "spill loads": attributes.spill_load_bytes}
        rows.append(Row(name, columns))
    return rows
