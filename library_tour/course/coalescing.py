"""Which lane reads which number: a warp's load moves as many 32-byte sectors as its lanes touch.

On the simulator, which checks, counts and does not time:

    $ library-tour run coalescing
    coalescing: Coalescing: the sectors that the lanes of a warp touch
    size 262,147: numbers to read
                                 sectors/load  load efficiency  store efficiency  check
    ───────────────────────────────────────────────────────────────────────────────
    neighbours                           4.00        100.0 %         100.0 %  right
    neighbours in any order              4.00        100.0 %         100.0 %  right
    2 lanes read a number                2.00        100.0 %         100.0 %  right
    32 lanes read a number               1.00         12.5 %         100.0 %  right
    8 a thread, contiguous               31.9         12.5 %          12.5 %  right
    8 a thread, block-strided            4.00        100.0 %         100.0 %  right
    8 a thread, 16 bytes a load          15.9        100.0 %         100.0 %  right
    Sums of the columns or rows of a matrix stored by rows
                              sectors/load  load efficiency  store efficiency  check
    ────────────────────────────────────────────────────────────────────────────
    a thread for each column          4.00         99.6 %          99.6 %  right
    a thread for each row             31.9         12.5 %          99.6 %  right
    a warp for each row               3.67         97.3 %          12.5 %  right
    A warp's 32 numbers of 4 bytes lie in 4 sectors of 32 bytes when they are
    neighbours, in whichever order the lanes take them. Lanes that read the same
    number share its sector. Lanes that are 8 numbers or more apart touch 32
    sectors, and use 4 bytes of each.
    So neighbouring numbers should belong to neighbouring lanes of a warp, and not
    to one thread. A thread that reads neighbouring numbers one after the other
    finds the rest of each sector in the cache, if it is still there; every load of
    its warp touches 32 sectors all the same. A load of 16 bytes touches 16 sectors
    and uses all of each.
    GB/s count each number that is read, once, and each that is written. With one
    number a thread, one load of 4 bytes a thread is in flight, too few to reach the
    limit of a large GPU. With 8 a thread, 8 loads are in flight.
    A thread for each row of a matrix stored by rows makes the lanes a row apart. A
    warp for each row makes them neighbours.
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

TITLE = "Coalescing: the sectors that the lanes of a warp touch"
SIZE = Size("numbers to read", full=2**28 + 3, small=2**18 + 3)
CHECKED = 2**16 + 5  # numbers of them
BLOCK = 256
WARP = 32
EACH = 8  # numbers a thread
CURVE = (1, 2, 4, 8, 16, 32)
KINDS = {"contiguous": "copy_contiguous<{}>", "block-strided": "copy_block_strided<{}>"}
GROUPS = f"copy_groups<{EACH}>"
LENGTH = 1021  # of a column or a row that a thread sums, at most
WALKS = "Sums of the columns or rows of a matrix stored by rows"
EXPLAINED_BY = ("sectors/load", "load efficiency", "store efficiency")
NOTES = (
    "A warp's 32 numbers of 4 bytes lie in 4 sectors of 32 bytes when they are neighbours, in whichever order the "
    "lanes take them. Lanes that read the same number share its sector. Lanes that are 8 numbers or more apart touch "
    "32 sectors, and use 4 bytes of each.",
    "So neighbouring numbers should belong to neighbouring lanes of a warp, and not to one thread. A thread that reads "
    "neighbouring numbers one after the other finds the rest of each sector in the cache, if it is still there; every "
    "load of its warp touches 32 sectors all the same. A load of 16 bytes touches 16 sectors and uses all of each.",
    "GB/s count each number that is read, once, and each that is written. With one number a thread, one load of 4 "
    "bytes a thread is in flight, too few to reach the limit of a large GPU. With 8 a thread, 8 loads are in flight.",
    "A thread for each row of a matrix stored by rows makes the lanes a row apart. A warp for each row makes them "
    "neighbours.",
)

Numbers = NDArray[np.uint32]
Axis = Literal["columns", "rows"]


def copied(x: Numbers, n: int) -> dict[str, Numbers]:
    """Return what each kernel with one number a thread makes of the first numbers."""
    i = np.arange(n)
    lane = i % WARP
    return {
        "copy_neighbours": x[:n],
        "copy_any_order": x[i - lane + (5 * lane + 3) % WARP],
        "copy_pairs": x[i // 2],
        "copy_broadcast": x[i // WARP],
    }


def sums(x: Numbers, rows: int, columns: int, axis: Axis) -> Numbers:
    """Return the sums, modulo 2^32, of the columns or the rows of a matrix whose rows are `pitch_for` apart."""
    pitch = pitch_for(columns)
    matrix = x[: rows * pitch].reshape(rows, pitch)[:, :columns]
    summed: Numbers = matrix.sum(0 if axis == "columns" else 1, np.uint32)
    return summed


def pitch_for(columns: int) -> int:
    """Return how many numbers apart rows are that begin where a warp's numbers do."""
    return blocks_for(columns, WARP) * WARP


def shape_for(numbers: int, axis: Axis) -> tuple[int, int]:
    """Return rows and columns of a matrix of so many numbers, whose columns or rows are short enough to sum."""
    length = min(LENGTH, isqrt(numbers) | 1)
    count = max(1, numbers // length)
    return (length, count) if axis == "columns" else (count, length)


def run(device: cuda.Device, size: int) -> Result:
    """Check each pattern on a few numbers and count its sectors there; time it on all numbers."""
    names = [kernel.format(each) for kernel in KINDS.values() for each in CURVE]
    module = load("coalescing", names=[*names, GROUPS])
    data = np.random.default_rng().integers(0, 2**32, INPUT_BLOCK, np.uint32)
    shapes = [shape_for(size, axis) for axis in ("columns", "rows")]
    x = repeated(data, max(size + WARP, *(rows * pitch_for(columns) for rows, columns in shapes)))
    y = cuda.empty(size, np.uint32)
    few = min(size, CHECKED)
    expected = copied(data, few)

    def copying(name: str, kernel: str, each: int = 1, readers: int = 1) -> Variant:
        """Return the variant of a kernel whose threads copy `each` numbers, and each number for so many threads."""
        check, timed = (
            module[kernel][blocks_for(numbers, each * BLOCK), BLOCK].bind(x, y, numbers) for numbers in (few, size)
        )
        return Variant(
            name=name, launch=check, output=y[:few], expected=expected.get(kernel, data[:few]),
            timed=timed, amount=4 * (size + size / readers),
        )  # fmt: skip  # grouped by meaning

    limit = copy_limit(device)
    rows = measure(
        [
            copying("neighbours", "copy_neighbours"),
            copying("neighbours in any order", "copy_any_order"),
            copying("2 lanes read a number", "copy_pairs", readers=2),
            copying("32 lanes read a number", "copy_broadcast", readers=WARP),
            *(copying(f"{EACH} a thread, {kind}", kernel.format(EACH), EACH) for kind, kernel in KINDS.items()),
            copying(f"{EACH} a thread, 16 bytes a load", GROUPS, EACH),
        ],
        limit,
        EXPLAINED_BY,
    )
    pictures = []
    if timing.available() or counters.available():
        variants = {
            kind: [copying(str(each), kernel.format(each), each) for each in CURVE] for kind, kernel in KINDS.items()
        }
        found = {kind: measure(some, limit, EXPLAINED_BY, quick=True) for kind, some in variants.items()}
        pictures = [curve(found, limit)]
    reading = read_limit(device)
    walks = measure(walking(module, data, x, size), reading, EXPLAINED_BY)
    return Result(rows, limit, pictures=pictures, notes=NOTES, tables={reading.heading(WALKS): walks})


def walking(module: cuda.Module, data: Numbers, x: cuda.DeviceArray, size: int) -> list[Variant]:
    """Return the variants that sum the columns or the rows of a matrix stored by rows, by so many threads each."""
    results = cuda.empty(size, np.uint32)
    few = min(size, CHECKED)

    def variant(name: str, kernel: str, axis: Axis, threads: int = 1) -> Variant:
        def launch(numbers: int) -> cuda.BoundLaunch:
            rows, columns = shape_for(numbers, axis)
            grid = blocks_for(threads * (rows if axis == "rows" else columns), BLOCK)
            return module[kernel][grid, BLOCK].bind(x, results, rows, columns, pitch_for(columns))

        expected = sums(data, *shape_for(few, axis), axis)
        rows, columns = shape_for(size, axis)
        return Variant(
            name=name, launch=launch(few), output=results[: expected.size], expected=expected,
            timed=launch(size), amount=4 * rows * columns,
        )  # fmt: skip  # grouped by meaning

    return [
        variant("a thread for each column", "sum_columns", "columns"),
        variant("a thread for each row", "sum_rows", "rows"),
        variant("a warp for each row", "sum_rows_by_warps", "rows", WARP),
    ]


def curve(found: dict[str, list[Row]], limit: Limit) -> Curve:
    """Return a curve of the rate against the numbers of a thread; of the sectors where nothing is timed."""
    column = limit.unit if timing.available() else "sectors/load"
    lines = {name: points(CURVE, rows, column) for name, rows in found.items()}
    return Curve("each", "numbers a thread", column, lines, logarithmic="x", line=limit)
