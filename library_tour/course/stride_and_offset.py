"""Copy every n-th element, or all elements from an offset onwards, and count the 32-byte sectors that are touched.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run stride_and_offset
    stride_and_offset: Strided and misaligned access to global memory
    size 2,097,152: elements in each array
    counters: measured over 8,197 copied elements
                sectors/load  sectors/store  load efficiency  check
    ───────────────────────────────────────────────────────────────
    stride 1            3.99           3.99          100.0 %  right
    stride 2            7.98           7.98           50.0 %  right
    stride 4            15.9           15.9           25.0 %  right
    stride 8            31.9           31.9           12.5 %  right
    stride 16           31.9           31.9           12.5 %  right
    stride 32           31.9           31.9           12.5 %  right
    stride 64           31.9           31.9           12.5 %  right
    stride 128          31.9           31.9           12.5 %  right
    stride 256          32.0           32.0           12.5 %  right
    offset 0            3.99           3.99          100.0 %  right
    offset 1            4.98           4.98           80.0 %  right
    offset 2            4.98           4.98           80.0 %  right
    offset 4            4.99           4.99           79.9 %  right
    offset 8            3.99           3.99          100.0 %  right
    offset 16           3.99           3.99          100.0 %  right
    offset 24           3.99           3.99          100.0 %  right
    offset 32           3.99           3.99          100.0 %  right
    Global memory is read and written in 32-byte sectors. If the 32 floats of a warp
    are adjacent, they lie in 4 sectors, or in 5 if the first does not start at a
    sector boundary. With a stride of 8 or more, each float lies in a different
    sector, and memory moves eight times as many bytes as the kernel uses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import copy_limit
from ..stop import Curve, Limit, Result, Row, Size
from ..variants import Variant, measure, points

TITLE = "Strided and misaligned access to global memory"
SIZE = Size("elements in each array", full=2**30, small=2**21)
CHECKED = 2**13 + 5  # elements copied, whatever the stride
BLOCK = 256
EXPLAINED_BY = ("sectors/load", "sectors/store", "load efficiency")
STRIDES, OFFSETS = (1, 2, 4, 8, 16, 32, 64, 128, 256), (0, 1, 2, 4, 8, 16, 24, 32)
BETWEEN = range(1, 33)  # further points of the curves

Floats = NDArray[np.float32]


def reference(source: Floats, copied: slice) -> NDArray[np.uint32]:
    """Return the bits of the target after the copy; its other elements stay poisoned."""
    bits = np.full(source.size, 0xFFFFFFFF, np.uint32)
    bits[copied] = source[copied].view(np.uint32)
    return bits


def run(device: cuda.Device, size: int) -> Result:
    """Check every stride and offset on a few elements, and that the others stay unchanged; time them on all."""
    module = load("stride_and_offset")
    block = np.random.default_rng().random(INPUT_BLOCK, np.float32)
    source = repeated(block, size + max(STRIDES) + max(OFFSETS))
    target = cuda.empty_like(source)

    def variant(kind: str, step: int) -> Variant:
        kernel = module[f"copy_{kind}"]
        stride, offset = (step, 0) if kind == "stride" else (1, step)
        few, many = (blocks_for(length, stride) for length in (min(size, CHECKED * stride), size))
        copied = slice(offset, offset + few * stride, stride)
        return Variant(
            name=f"{kind} {step}",
            launch=kernel[blocks_for(few, BLOCK), BLOCK].bind(source, target, few, step),
            # As bits, since a NaN does not equal itself.
            output=target[: copied.stop].view(np.uint32),
            expected=reference(block[: copied.stop], copied),
            timed=kernel[blocks_for(many, BLOCK), BLOCK].bind(source, target, many, step),
            amount=2 * 4 * many,
        )

    limit = copy_limit(device)
    variants = [variant("stride", step) for step in STRIDES] + [variant("offset", step) for step in OFFSETS]
    rows = measure(variants, limit, EXPLAINED_BY)
    pictures = []
    if timing.available() or counters.available():
        between = [variant("stride", step) for step in BETWEEN] + [variant("offset", step) for step in BETWEEN]
        measured = {row.name: row for row in [*measure(between, limit, EXPLAINED_BY, quick=True), *rows]}
        pictures = [curve("stride", measured, limit), curve("offset", measured, limit)]
    note = (
        "Global memory is read and written in 32-byte sectors. If the 32 floats of a warp are adjacent, they lie in 4 "
        "sectors, or in 5 if the first does not start at a sector boundary. With a stride of 8 or more, each float "
        "lies in a different sector, and memory moves eight times as many bytes as the kernel uses."
    )
    counted = (
        ["The rates in GB/s are based on the bytes that are copied, not on the bytes that memory moves."]
        if timing.available()
        else []
    )
    return Result(rows, limit, pictures=pictures, notes=[note, *counted], counted=f"{CHECKED:,} copied elements")


def curve(kind: str, rows: dict[str, Row], limit: Limit) -> Curve:
    """Return a curve of the rate against the stride or the offset, or of the sectors if nothing is timed."""
    column = limit.unit if timing.available() else "sectors/load"
    steps = sorted(int(name.split()[1]) for name in rows if name.startswith(kind))
    lines = {f"copied with this {kind}": points(steps, [rows[f"{kind} {step}"] for step in steps], column)}
    x = f"{kind}, in elements of 4 bytes"
    return Curve(kind, x, column, lines, logarithmic="x" if kind == "stride" else "", line=limit)
