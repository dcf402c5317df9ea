"""Copy every stride-th number, or all of them from an offset on: what a warp does not use of a piece is lost.

On the software driver, which checks, counts and does not time:

    $ library-tour run stride_and_offset
    stride_and_offset: Memory comes in pieces of 32 bytes, used or not
    size 8,197: numbers to copy
    limit: copy bandwidth
                sectors/load  sectors/store  check
    ──────────────────────────────────────────────
    stride 1            3.99           3.99  right
    stride 2            7.98           7.98  right
    stride 4            15.9           15.9  right
    stride 8            31.9           31.9  right
    stride 16           31.9           31.9  right
    stride 32           31.9           31.9  right
    stride 64           31.9           31.9  right
    stride 128          31.9           31.9  right
    stride 256          31.9           31.9  right
    offset 0            3.99           3.99  right
    offset 1            4.98           4.98  right
    offset 2            4.98           4.98  right
    offset 4            4.99           4.99  right
    offset 8            3.99           3.99  right
    offset 16           3.99           3.99  right
    offset 24           3.99           3.99  right
    offset 32           3.99           3.99  right
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Curve, Limit, Result, Row, Size
from ..variants import Variant, measure

TITLE = "Memory comes in pieces of 32 bytes, used or not"
# Beside the caches at stride 1, and still two arrays in memory at stride 256.
SIZE = Size("numbers to copy", full=2**24 + 5, small=2**13 + 5)
CHECKED = 2**13 + 5
BLOCK = 256
EXPLAINED_BY = ("sectors/load", "sectors/store")
STRIDES, OFFSETS = (1, 2, 4, 8, 16, 32, 64, 128, 256), (0, 1, 2, 4, 8, 16, 24, 32)
BETWEEN = range(1, 33)  # what the curve has besides

Floats = NDArray[np.float32]


def reference(source: Floats, places: slice) -> NDArray[np.uint32]:
    """Return the bits of what a poisoned target becomes."""
    bits = np.full(source.size, 0xFFFFFFFF, np.uint32)
    bits[places] = source[places].view(np.uint32)
    return bits


def run(device: cuda.Device, size: int) -> Result:
    """Check every stride and offset on a few numbers, whose neighbours must stay; time them on all."""
    module = load("stride_and_offset")
    length = size * max(STRIDES) + max(OFFSETS)
    source, target = cuda.zeros(length, np.float32), cuda.empty(length, np.float32)
    checked = min(size, CHECKED)

    def variant(kind: str, step: int) -> Variant:
        kernel = module[f"copy_{kind}"]
        touched = slice(0, checked * step, step) if kind == "stride" else slice(step, checked + step)
        host = np.random.default_rng().random(max(checked * step, checked + step), np.float32)

        def prepare() -> None:
            source[: host.size].copy_from(host)
            cuda.memset(target[: host.size].view(np.uint8), 0xFF)

        return Variant(
            name=f"{kind} {step}",
            prepare=prepare,
            launch=kernel[blocks_for(checked, BLOCK), BLOCK].bind(source, target, checked, step),
            # As bits, since a NaN does not equal itself.
            output=target[: host.size].view(np.uint32),
            expected=reference(host, touched),
            timed=kernel[blocks_for(size, BLOCK), BLOCK].bind(source, target, size, step),
            amount=2 * 4 * size,
        )

    limit = copy_limit(device)
    variants = [variant("stride", step) for step in STRIDES] + [variant("offset", step) for step in OFFSETS]
    rows = measure(variants, limit, EXPLAINED_BY)
    pictures = []
    if timing.available() or counters.available():
        between = [variant("stride", step) for step in BETWEEN] + [variant("offset", step) for step in BETWEEN]
        found = {row.name: row for row in [*measure(between, limit, EXPLAINED_BY), *rows]}
        pictures = [curve("stride", found, limit), curve("offset", found, limit)]
    note = "GB/s count what is copied; the memory moves whole pieces, up to eight times as much."
    return Result(rows, limit, pictures=pictures, notes=[note] if timing.available() else [])


def curve(kind: str, rows: dict[str, Row], limit: Limit) -> Curve:
    """Draw the rate, or where there is none what explains it, against the stride or the offset."""
    column = limit.unit if timing.available() else "sectors/load"
    steps = sorted(int(name.split()[1]) for name in rows if name.startswith(kind))
    points = [(step, float(rows[f"{kind} {step}"].values[column])) for step in steps]
    lines = {f"copied with this {kind}": points}
    if timing.available() and limit.rate:
        lines[limit.name] = [(step, limit.rate) for step in steps]
    return Curve(kind, f"{kind}, in numbers of 4 bytes", column, lines, logarithmic="x" if kind == "stride" else "")
