"""Read shared memory with several strides: lanes that read different words from one bank are served one after another.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run bank_conflicts
    bank_conflicts: Bank conflicts in shared memory
    size 64: reads per thread
    counters: measured over 264 blocks of 32 warps with 64 reads and one store per
    thread
               ways  wavefronts   conflicts  check
    ──────────────────────────────────────────────
    stride 1      1     549,120           0  right
    stride 2      2   1,089,792     540,672  right
    stride 3      1     549,120           0  right
    stride 32    32  17,309,952  16,760,832  right
    same word     1     549,120           0  right
    Shared memory has 32 banks, and each serves one word at a time. The number of
    wavefronts of a read is the number of different words that its busiest bank must
    serve. A read whose stride has no common factor with 32 needs one wavefront, and
    so does a read of the same word by all lanes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..device_code import load
from ..limits import shared_limit
from ..stop import Result, Row, Size
from ..variants import Variant, measure

TITLE = "Bank conflicts in shared memory"
SIZE = Size("reads per thread", full=2**14, small=2**6)
STRIDES = {"stride 1": 1, "stride 2": 2, "stride 3": 3, "stride 32": 32, "same word": 0}
BANKS, LANES, WORDS = 32, 32, 1024
EXPLAINED_BY = ("wavefronts", "conflicts")

Words = NDArray[np.uint32]


def reference(stride: int, repeats: int) -> Words:
    """Return each thread's sum of the words that it reads; the value of a word is its index."""
    indices = (np.arange(WORDS) % LANES * stride)[:, None] + BANKS * np.arange(repeats)
    return np.asarray((indices % WORDS).sum(axis=1, dtype=np.uint32))


def ways(stride: int) -> int:
    """Return the largest number of different words that a warp reads from one bank: the wavefronts of the read."""
    words = np.unique(np.arange(LANES) * stride)
    return int(np.bincount(words % BANKS).max())


def run(device: cuda.Device, size: int) -> Result:
    """Check the sums of every stride and time it, with two full blocks on every multiprocessor."""
    blocks = 2 * device.sm_count
    kernel = load("bank_conflicts")["read_stride"]
    sums = cuda.empty(blocks * WORDS, np.uint32)
    variants = [
        Variant(
            name=name,
            launch=kernel[blocks, WORDS].bind(sums, stride, size),
            output=sums,
            expected=np.tile(reference(stride, size), blocks),
            amount=4 * sums.size * size,
            columns={"ways": ways(stride)},
        )
        for name, stride in STRIDES.items()
    ]
    limit = shared_limit(device)
    rows = measure(variants, limit, EXPLAINED_BY)
    note = (
        f"Shared memory has {BANKS} banks, and each serves one word at a time. The number of wavefronts of a read is "
        f"the number of different words that its busiest bank must serve. A read whose stride has no common factor "
        f"with {BANKS} needs one wavefront, and so does a read of the same word by all lanes."
    )
    counted = f"{blocks} blocks of {WORDS // LANES} warps with {size:,} reads and one store per thread"
    return Result([with_slowdown(row, rows[0]) for row in rows], limit, notes=[note], counted=counted)


def with_slowdown(row: Row, first: Row) -> Row:
    """Return the row with its time as a multiple of the first row's time, to compare with its ways."""
    if "ms" not in row.values or "ms" not in first.values:  # a wrong variant is not timed
        return row
    return Row(row.name, {**row.values, "slowdown": float(row.values["ms"]) / float(first.values["ms"])}, row.check)
