"""Count values into bins: from a data race to counters in shared memory.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run histogram
    histogram: Counting values into bins: atomics and shared memory
    size 16,387: values to count
                          loads  atomic sectors  instructions  check
    ─────────────────────────────────────────────────────────────────
    no atomics                                                 caught
    no barriers                                                caught
    global atomics          513          11,406        15,460  right
    private counters      1,098          13,547        47,693  right
    system scope          1,098          13,547        48,206  right
    device scope          1,098          13,547        48,206  right
    block scope           1,098          13,547        48,206  right
    CUB's BlockHistogram    513             520       257,760  right
    shared memory           513           2,055        44,060  right
    four loads in flight    129             517        47,765  right
    fetch_sub, removal                                         right
    fetch_and, flags                                           right
    no atomics: counts 10 of 4,096 values.
    kernel histogram_racy<10> at kernels/histogram.cu:53: race: it writes 4
    bytes of global memory at 0x7f… (32 bytes into the 44-byte allocation at
    0x7f…, allocated at library_tour/course/histogram.py:196), which block (15,
    0, 0), thread (229, 0, 0) read at kernels/histogram.cu:53, and nothing
    orders the two accesses, which are in different blocks: use atomics,
    grid.sync() or separate launches; block (0, 0, 0), thread (0, 0, 0),
    instruction 'st.global.u32 [%rd15], %r33'
        53 | counts[bin_of<bins>(values[i])]++;
    no barriers: kernel histogram_unordered<10> at kernels/histogram.cu:89:
    race: it updates 4 bytes of global memory at 0x7f… (32 bytes into the
    704-byte allocation at 0x7f…, allocated at
    library_tour/course/histogram.py:204), which block (0, 0, 0), thread (8, 0,
    0) wrote at kernels/histogram.cu:87, and nothing orders the two accesses:
    put a barrier such as __syncthreads() between them; block (0, 0, 0), thread
    (0, 0, 0), instruction 'atom.global.add.u32 %r40, [%rd37], 1'
        89 | atomicAdd(&mine[bin_of<bins>(values[i])], 1);
    The columns show the simulator's counters for 256 bins and values spread evenly
    over [0, 1).
    A scope states which threads may use a counter at the same time. Private
    counters are used by one block only, so all three scopes give the right counts.
    A wider scope guarantees more and may cost more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, over_all, repeated
from ..limits import read_limit
from ..stop import Bars, Result, Row, Size
from ..variants import Variant, measure, of_slowest, side_by_side
from ..wrong import all_shown_wrong

TITLE = "Counting values into bins: atomics and shared memory"
SIZE = Size("values to count", full=2**28, small=2**14 + 3)
BLOCK = 256
BINS = (10, 256)
KERNELS = {
    "global atomics": "histogram_atomic<{}>",
    "private counters": "histogram_private<{}>",
    "system scope": "histogram_scoped<{}, cuda::thread_scope_system>",
    "device scope": "histogram_scoped<{}, cuda::thread_scope_device>",
    "block scope": "histogram_scoped<{}, cuda::thread_scope_block>",
    "CUB's BlockHistogram": "histogram_cub<{}>",
    "shared memory": "histogram_shared<{}>",
    "four loads in flight": "histogram_vector<{}, 4>",
}
RACE, UNORDERED = "histogram_racy<10>", "histogram_unordered<10>"
REMOVE, EMPTY = f"histogram_remove<{BINS[-1]}>", f"empty_bins<{BINS[-1]}>"
FEW = 400  # values, so few that some bins stay empty
EXPLAINED_BY = ("loads", "atomic sectors", "instructions")

Floats = NDArray[np.float32]
Counts = NDArray[np.uint32]


def reference(values: Floats, bins: int) -> Counts:
    """Return how many values fall into each bin of [0, 1), and, as the last element, how many are outside."""
    inside = values[(values >= 0) & (values < 1)]
    counts = np.bincount((inside * np.float32(bins)).astype(np.uint16), minlength=bins + 1)
    counts[bins] = values.size - inside.size
    return counts.astype(np.uint32)


def run(device: cuda.Device, size: int) -> Result:
    """Check and time every variant in four cases: few and many bins, values spread evenly and all equal."""
    uniform = np.random.default_rng().random(min(size, INPUT_BLOCK), np.float32)
    uniform[:: max(1, uniform.size // 5)] = 1.5  # some are outside
    limit = read_limit(device)
    cases: dict[str, list[Row]] = {}
    for kind, block in {"": uniform, " equal": np.full_like(uniform, 0.5)}.items():
        values = repeated(block, size)
        for bins in BINS:
            expected = over_all(partial(reference, bins=bins), block, size)
            cases[f"{bins}{kind}"] = measure(make_variants(device, values, bins, expected), limit, EXPLAINED_BY)
    rows = side_by_side(dict(sorted(cases.items())), limit.unit)
    if timing.available():
        note = (
            f"The columns show {limit.unit} for {BINS[0]} and {BINS[1]} bins. The values are spread evenly over [0, "
            "1), except in the 'equal' columns, where they are all 0.5."
        )
        rows = [of_slowest(row, limit) for row in rows]
        bars = {
            row.name: {in_words(case): float(row.values[case]) for case in sorted(cases) if case in row.values}
            for row in rows
        }
        pictures = [Bars("cases", limit.unit, bars, limit)]
    else:
        note = f"The columns show the simulator's counters for {BINS[-1]} bins and values spread evenly over [0, 1)."
        rows = [replace(row, values=counted.values) for row, counted in zip(rows, cases[str(BINS[-1])], strict=True)]
        pictures = []
    wrong = all_shown_wrong({"no atomics": race, "no barriers": unordered})
    notes = [
        note,
        "A scope states which threads may use a counter at the same time. Private counters are used by one block only, "
        "so all three scopes give the right counts. A wider scope guarantees more and may cost more.",
    ]
    return Result([*wrong, *rows, *other_operations(uniform)], limit, pictures=pictures, notes=notes)


def other_operations(values: Floats) -> list[Row]:
    """Remove values from the counts with fetch_sub, and find the empty bins with fetch_and."""
    bins, module = BINS[-1], load_all()
    values = values[:FEW]
    out = values[: values.size // 2]
    counts, mask = cuda.to_device(reference(values, bins)), cuda.full(bins // 32 + 1, 2**32 - 1, np.uint32)
    device_values = cuda.to_device(values)
    module[REMOVE][1, BLOCK](device_values, counts, out.size)
    module[EMPTY][1, BLOCK](device_values, mask, values.size)
    removed = compare(
        "fetch_sub: the counts of the remaining values", counts.to_host(), reference(values[out.size :], bins)
    )
    empty = np.unpackbits(mask.to_host().view(np.uint8), bitorder="little")[: bins + 1]
    cleared = compare("fetch_and: the empty bins", empty == 1, reference(values, bins) == 0)
    return [Row("fetch_sub, removal", check=removed), Row("fetch_and, flags", check=cleared)]


def in_words(case: str) -> str:
    """Return the name of a case for the plots."""
    bins, _, equal = case.partition(" ")
    return f"{bins} bins" + (", all in one" if equal else "")


def kernels_for(bins: int) -> dict[str, str]:
    """Return each variant's kernel."""
    return {name: kernel.format(bins) for name, kernel in KERNELS.items()}


def load_all() -> cuda.Module:
    """Compile all kernels of this stop in one module, since CUB's headers take long to compile."""
    return load(
        "histogram",
        names=[RACE, UNORDERED, REMOVE, EMPTY, *(kernel for bins in BINS for kernel in kernels_for(bins).values())],
    )


def make_variants(device: cuda.Device, values: cuda.DeviceArray, bins: int, expected: Counts) -> list[Variant]:
    """Return the variants that count `values`. Setting the counters to zero is part of the timed work."""
    kernels, module = kernels_for(bins), load_all()
    most = device.sm_count * device.properties.max_threads_per_sm // BLOCK
    counts, work = cuda.empty(bins + 1, np.uint32), cuda.empty(most * (bins + 1), np.uint32)

    def counting(name: str) -> Callable[[], object]:
        kernel = module[name]
        # One wave of blocks, but no more than the values require.
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


def race() -> str:
    """Count without atomics and return a sentence about how many values were lost."""
    values = np.random.default_rng(0).random(2**12, np.float32)
    counts = cuda.zeros(11, np.uint32)
    load_all()[RACE][16, BLOCK](cuda.to_device(values), counts, None, values.size)
    return lost(counts, values)


def unordered() -> str:
    """Count in private counters without barriers and return a sentence about the values that were lost."""
    values = np.random.default_rng(0).random(2**12, np.float32)
    counts, work = cuda.zeros(11, np.uint32), cuda.zeros(16 * 11, np.uint32)
    load_all()[UNORDERED][16, BLOCK](cuda.to_device(values), counts, work, values.size)
    return lost(counts, values)


def lost(counts: cuda.DeviceArray, values: Floats) -> str:
    """Return a sentence about the values that were not counted, or an empty string if all were."""
    total = int(on_host(counts).sum())
    return f"counts {total:,} of {values.size:,} values." if total != values.size else ""
