"""Copies and sums that assign elements to lanes differently, and so touch different numbers of 32-byte sectors.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run coalescing
    coalescing: Coalescing: which lane reads which element
    size 262,147: elements to read
    counters: measured over 65,541 elements, and matrices of 257 x 255 and 255 x 257
                              sectors/load  load efficiency  store efficiency  check
    ────────────────────────────────────────────────────────────────────────────────
    neighbours                        4.00          100.0 %           100.0 %  right
    neighbours, any order             4.00          100.0 %           100.0 %  right
    2 lanes per element               2.00          100.0 %           100.0 %  right
    32 lanes per element              1.00           12.5 %           100.0 %  right
    8 elements, contiguous            31.9           12.5 %            12.5 %  right
    8 elements, block stride          4.00          100.0 %           100.0 %  right
    8 elements, vector loads          15.9          100.0 %           100.0 %  right
    Sums of the columns or rows of a row-major matrix
                           sectors/load  load efficiency  store efficiency  check
    ─────────────────────────────────────────────────────────────────────────────
    one thread per column          4.00           99.6 %            99.6 %  right
    one thread per row             31.9           12.5 %            99.6 %  right
    one warp per row               3.67           97.3 %            12.5 %  right
    When the lanes of a warp read 32 adjacent 4-byte elements, they touch four
    32-byte sectors. The order of the lanes does not matter, and lanes that read the
    same element share its sector. Lanes that are 8 or more elements apart touch 32
    sectors and use 4 bytes of each.
    So give adjacent elements to adjacent lanes, not to one thread. A thread that
    reads adjacent elements one after another may find the rest of each sector in
    the cache, but every load of its warp still touches 32 sectors. When each lane
    loads 16 adjacent bytes, a warp touches 16 sectors and uses all of their bytes.
    The GB/s rates count each element read once, however many lanes read it, and
    each element written. With one element per thread, each thread has one 4-byte
    load in flight. That is not enough to saturate the memory of a large GPU. With 8
    elements per thread, 8 loads are in flight.
    In a row-major matrix, one thread per row puts adjacent lanes one row apart.
    With one warp per row, adjacent lanes read adjacent elements.
"""

from __future__ import annotations

from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import copy_limit, read_limit
from ..stop import Curve, Limit, Result, Row, Size
from ..variants import Variant, measure, points

TITLE = "Coalescing: which lane reads which element"
SIZE = Size("elements to read", full=2**28 + 3, small=2**18 + 3)
CHECKED = 2**16 + 5  # the elements that are checked
BLOCK = 256
WARP = 32
EACH = 8  # elements per thread
CURVE = (1, 2, 4, 8, 16, 32)
KINDS = {"contiguous": "copy_contiguous<{}>", "block stride": "copy_block_strided<{}>"}
GROUPS = f"copy_groups<{EACH}>"
LENGTH = 1021  # the longest column or row that one thread sums
WALKS = "Sums of the columns or rows of a row-major matrix"
EXPLAINED_BY = ("sectors/load", "load efficiency", "store efficiency")
NOTES = (
    "When the lanes of a warp read 32 adjacent 4-byte elements, they touch four 32-byte sectors. The order of the "
    "lanes does not matter, and lanes that read the same element share its sector. Lanes that are 8 or more elements "
    "apart touch 32 sectors and use 4 bytes of each.",
    "So give adjacent elements to adjacent lanes, not to one thread. A thread that reads adjacent elements one after "
    "another may find the rest of each sector in the cache, but every load of its warp still touches 32 sectors. When "
    "each lane loads 16 adjacent bytes, a warp touches 16 sectors and uses all of their bytes.",
    "The GB/s rates count each element read once, however many lanes read it, and each element written. With one "
    "element per thread, each thread has one 4-byte load in flight. That is not enough to saturate the memory of a "
    "large GPU. With 8 elements per thread, 8 loads are in flight.",
    "In a row-major matrix, one thread per row puts adjacent lanes one row apart. With one warp per row, adjacent "
    "lanes read adjacent elements.",
)

Words = NDArray[np.uint32]
Axis = Literal["columns", "rows"]


def copied(x: Words, n: int) -> dict[str, Words]:
    """Return the output of each kernel with one element per thread, for the first n elements."""
    i = np.arange(n)
    lane = i % WARP
    return {
        "copy_neighbours": x[:n],
        "copy_any_order": x[i - lane + (5 * lane + 3) % WARP],
        "copy_pairs": x[i // 2],
        "copy_broadcast": x[i // WARP],
    }


def sums(x: Words, rows: int, columns: int, axis: Axis) -> Words:
    """Return the sums, modulo 2^32, of the columns or the rows of a matrix whose rows are `stride_for` apart."""
    stride = stride_for(columns)
    matrix = x[: rows * stride].reshape(rows, stride)[:, :columns]
    summed: Words = matrix.sum(0 if axis == "columns" else 1, np.uint32)
    return summed


def stride_for(columns: int) -> int:
    """Return the stride of rows, in elements, that makes each row begin at a multiple of 32 elements."""
    return blocks_for(columns, WARP) * WARP


def shape_for(elements: int, axis: Axis) -> tuple[int, int]:
    """Return the shape of a matrix of at most `elements` elements, whose summed axis is at most LENGTH long."""
    length = min(LENGTH, isqrt(elements) | 1)
    count = max(1, elements // length)
    return (length, count) if axis == "columns" else (count, length)


def run(device: cuda.Device, size: int) -> Result:
    """Check each pattern on a few elements and count its sectors there; time it on all elements."""
    names = [kernel.format(each) for kernel in KINDS.values() for each in CURVE]
    module = load("coalescing", names=[*names, GROUPS])
    data = np.random.default_rng().integers(0, 2**32, INPUT_BLOCK, np.uint32)
    shapes = [shape_for(size, axis) for axis in ("columns", "rows")]
    x = repeated(data, max(size + WARP, *(rows * stride_for(columns) for rows, columns in shapes)))
    y = cuda.empty(size, np.uint32)
    few = min(size, CHECKED)
    expected = copied(data, few)

    def copying(name: str, kernel: str, each: int = 1, readers: int = 1) -> Variant:
        """Return the variant of a kernel whose threads copy `each` elements; `readers` threads read the same one."""
        check, timed = (
            module[kernel][blocks_for(count, each * BLOCK), BLOCK].bind(x, y, count) for count in (few, size)
        )
        return Variant(
            name=name, launch=check, output=y[:few], expected=expected.get(kernel, data[:few]),
            timed=timed, amount=4 * (size + size / readers),
        )  # fmt: skip  # grouped by meaning

    limit = copy_limit(device)
    rows = measure(
        [
            copying("neighbours", "copy_neighbours"),
            copying("neighbours, any order", "copy_any_order"),
            copying("2 lanes per element", "copy_pairs", readers=2),
            copying("32 lanes per element", "copy_broadcast", readers=WARP),
            *(copying(f"{EACH} elements, {kind}", kernel.format(EACH), EACH) for kind, kernel in KINDS.items()),
            copying(f"{EACH} elements, vector loads", GROUPS, EACH),
        ],
        limit,
        EXPLAINED_BY,
    )
    pictures = []
    if timing.available() or counters.available():
        variants = {
            kind: [copying(str(each), kernel.format(each), each) for each in CURVE] for kind, kernel in KINDS.items()
        }
        measured = {kind: measure(some, limit, EXPLAINED_BY, quick=True) for kind, some in variants.items()}
        pictures = [curve(measured, limit)]
    reading = read_limit(device)
    walks = measure(walking(module, data, x, size), reading, EXPLAINED_BY)
    checked = [shape_for(few, axis) for axis in ("columns", "rows")]
    return Result(
        rows,
        limit,
        pictures=pictures,
        notes=NOTES,
        tables={reading.heading(WALKS): walks},
        counted=f"{few:,} elements, and matrices of {' and '.join(f'{rows} x {columns}' for rows, columns in checked)}",
    )


def walking(module: cuda.Module, data: Words, x: cuda.DeviceArray, size: int) -> list[Variant]:
    """Return the variants that sum the columns or the rows of a row-major matrix."""
    results = cuda.empty(size, np.uint32)
    few = min(size, CHECKED)

    def variant(name: str, kernel: str, axis: Axis, threads: int = 1) -> Variant:
        def launch(elements: int) -> cuda.BoundLaunch:
            rows, columns = shape_for(elements, axis)
            grid = blocks_for(threads * (rows if axis == "rows" else columns), BLOCK)
            return module[kernel][grid, BLOCK].bind(x, results, rows, columns, stride_for(columns))

        expected = sums(data, *shape_for(few, axis), axis)
        rows, columns = shape_for(size, axis)
        return Variant(
            name=name, launch=launch(few), output=results[: expected.size], expected=expected,
            timed=launch(size), amount=4 * rows * columns,
        )  # fmt: skip  # grouped by meaning

    return [
        variant("one thread per column", "sum_columns", "columns"),
        variant("one thread per row", "sum_rows", "rows"),
        variant("one warp per row", "sum_rows_by_warps", "rows", WARP),
    ]


def curve(measured: dict[str, list[Row]], limit: Limit) -> Curve:
    """Return a curve of the rate against the elements per thread, or of the sectors if nothing is timed."""
    column = limit.unit if timing.available() else "sectors/load"
    lines = {name: points(CURVE, rows, column) for name, rows in measured.items()}
    return Curve("each", "elements per thread", column, lines, logarithmic="x", line=limit)
