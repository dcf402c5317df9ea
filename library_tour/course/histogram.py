"""Count values into bins: from a race to a counter for every bin, lane and block.

On the software driver, which checks, counts and does not time:

    $ library-tour run histogram
    histogram: Many threads, few counters: who waits for whom
    size 65,539: values to count
    limit: read bandwidth
                             10  10 equal     256  256 equal  check
    ────────────────────────────────────────────────────────────────
    no atomics                                                caught
    global atomics        4,095     2,049  41,750      2,049  right
    block's own           4,843     2,306  50,040      2,306  right
    block's own, scoped   4,843     2,306  50,040      2,306  right
    shared memory        13,232    65,796  15,464     65,796  right
    CUB's block sort        129        65   2,057         65  right
    one for each lane     2,081     2,065   2,567      2,065  right
    no atomics: counts 10 of 4,096 values.
    kernel _Z14histogram_racyILi10EEvPKfPjS2_i at
    kernels/histogram.cu:46: race: it writes 4 bytes of global memory at
    0x7f… (32 bytes into the 44-byte allocation at 0x7f…,
    allocated at library_tour/course/histogram.py:137), which block (15,
    0, 0), thread (229, 0, 0) read at kernels/histogram.cu:46, and
    nothing puts one before the other; block (0, 0, 0), thread (0, 0, 0),
    instruction 'st.global.u32 [%rd15], %r33'
    The columns are atomic steps for so many bins, of values spread evenly over [0,
    1) or all 0.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..checks import on_host
from ..device_code import blocks_for, load
from ..limits import read_limit
from ..stop import Bars, Limit, Result, Row, Size
from ..variants import Variant, measure, side_by_side
from ..wrong import shown_wrong

TITLE = "Many threads, few counters: who waits for whom"
SIZE = Size("values to count", full=2**28, small=2**16 + 3)
BLOCK = 256
BINS = (10, 256)
# The last variant's copies of every counter and its loads in flight.
COLUMNS = {10: "histogram_columns<{}, 32, 4>", 256: "histogram_columns<{}, 32, 4>"}
KERNELS = {
    "global atomics": "histogram_atomic<{}>",
    "block's own": "histogram_private<{}>",
    "block's own, scoped": "histogram_scoped<{}>",
    "shared memory": "histogram_shared<{}>",
    "CUB's block sort": "histogram_cub<{}>",
    "one for each lane": "",
}
RACE = "histogram_racy<10>"
EXPLAINED_BY = ("atomic steps",)

Floats = NDArray[np.float32]
Counts = NDArray[np.uint32]


def reference(values: Floats, bins: int) -> Counts:
    """Return how many values fall into each bin of [0, 1), and behind the last bin how many are outside."""
    inside = values[(values >= 0) & (values < 1)]
    counts = np.bincount((inside * np.float32(bins)).astype(np.uint16), minlength=bins + 1)
    counts[bins] = values.size - inside.size
    return counts.astype(np.uint32)


def run(device: cuda.Device, size: int) -> Result:
    """Check and time every variant in four cases: few and many bins, values all over and all the same."""
    uniform = np.random.default_rng().random(size, np.float32)
    uniform[:: max(1, size // 5)] = 1.5  # some are outside
    limit = read_limit(device)
    cases: dict[str, list[Row]] = {}
    for kind, values in {"": uniform, " equal": np.full(size, 0.5, np.float32)}.items():
        on_device = cuda.to_device(values)
        for bins in BINS:
            variants = make_variants(device, on_device, bins, reference(values, bins))
            cases[f"{bins}{kind}"] = measure(variants, limit, EXPLAINED_BY)
    column = limit.unit if timing.available() else EXPLAINED_BY[0] if counters.available() else ""
    rows = side_by_side(dict(sorted(cases.items())), column)
    pictures = []
    if timing.available():
        rows = [slowest(row, limit) for row in rows]
        bars = {row.name: {case: float(row.values[case]) for case in cases} for row in rows if len(row.values) > 1}
        pictures = [Bars("cases", limit.unit, bars, limit)]
    notes = [f"The columns are {column} for so many bins, of values spread evenly over [0, 1) or all 0.5."]
    return Result([shown_wrong("no atomics", race), *rows], limit, pictures=pictures, notes=notes if column else [])


def kernels_for(bins: int) -> dict[str, str]:
    """Return each variant's kernel."""
    return {name: (kernel or COLUMNS[bins]).format(bins) for name, kernel in KERNELS.items()}


def load_all() -> cuda.Module:
    """Compile every kernel that is used here, at once: CUB's headers take a while."""
    return load("histogram", names=[RACE, *(kernel for bins in BINS for kernel in kernels_for(bins).values())])


def make_variants(device: cuda.Device, values: cuda.DeviceArray, bins: int, expected: Counts) -> list[Variant]:
    """Return the ways to count `values`; setting the counters to zero is part of each."""
    kernels, module = kernels_for(bins), load_all()
    most = device.sm_count * device.properties.max_threads_per_sm // BLOCK
    counts, work = cuda.empty(bins + 1, np.uint32), cuda.empty(most * (bins + 1), np.uint32)

    def counting(name: str) -> Callable[[], object]:
        kernel = module[name]
        # As many blocks as the device holds at once, and no more than there is work for.
        grid = min(device.sm_count * kernel.occupancy(BLOCK).blocks, blocks_for(values.size, BLOCK))
        launch = kernel[grid, BLOCK].bind(values, counts, work, values.size)

        def count() -> None:
            cuda.memset(counts, 0)
            launch()

        return count

    return [
        Variant(name=name, launch=counting(kernel), output=counts, expected=expected, amount=values.nbytes)
        for name, kernel in kernels.items()
    ]


def slowest(row: Row, limit: Limit) -> Row:
    """Add the fraction of the limit that the slowest case reaches."""
    rates = [float(value) for value in row.values.values()]
    if not rates or not limit.rate:
        return row
    return replace(row, values={**row.values, "of limit": min(rates) / limit.rate})


def race() -> str:
    """Count without atomics, and say how much is lost."""
    values = np.random.default_rng(0).random(2**12, np.float32)
    counts = cuda.zeros(11, np.uint32)
    load_all()[RACE][16, BLOCK](cuda.to_device(values), counts, None, values.size)
    total = int(on_host(counts).sum())
    return f"counts {total:,} of {values.size:,} values." if total != values.size else ""
