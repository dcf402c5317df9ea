"""Test whether all elements of an array are true: with a reduction tree, with votes, and with an early exit.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run logical_and
    logical_and: Logical and of an array: shuffles, votes and early exit
    size 262,147: elements to combine
    counters: measured over 262,147 elements, and three arrays of 16,389
                                loads  atomics  instructions  check
    ────────────────────────────────────────────────────────────────
    one atomic per thread       9,732    9,732       175,456  right
    tree, one atomic per block  9,732    1,220       473,192  right
    one vote per block          9,732        3       224,318  right
    fixed grid, vector loads    2,439        3        54,607  right
    four loads in flight        2,439        3        34,415  right
    early exit                  2,844        6        35,202  right
    shuffle after &&                                          caught
    shuffle after &&: the result is true, although lane 5 has a zero.
    kernel and_skips_shuffle at kernels/logical_and.cu:123: uninitialised value
    reaches a branch: a shuffle at kernels/logical_and.cu:123 read it from lane 5 of
    the warp, which does not take part; block (0, 0, 0), thread (1, 0, 0),
    instruction '@%p7 bra $L__BB3_6'
        123 | value = value && __shfl_down_sync(0xffffffff, value, step);
        also at 1 more instruction of this line, for example because a loop was
    unrolled
    Position of the only zero, as a fraction of the array
              loads, to the end  loads, early exit  check
    ─────────────────────────────────────────────────────
    at 0                  2,049                721  right
    at 0.125              2,049                721  right
    at 0.25               2,049              1,081  right
    at 0.5                2,049              1,801  right
    at 0.75               2,049              2,521  right
    at 1                  2,049              2,561  right
    A reduction tree works for any associative and commutative operation, in log2 N
    steps. Logical AND is one of them. For Boolean values, the hardware also
    provides votes: __syncthreads_and() is a barrier that tells every thread of a
    block whether the values of all its threads are true. It takes half as many
    instructions as the tree, and blocks without a zero write nothing. As in the
    lesson nan_check, it takes several 16-byte loads per thread to reach the limit.
    Compare an element with zero before you combine it: 1 & 2 is 0, although both
    are true.
    `value = value && __shfl_down_sync(...)` skips the shuffle if value is false,
    since && evaluates its right operand only if the left one is true. Other lanes
    then read from a lane that does not take part in the shuffle. The result is
    undefined, and a zero may go unnoticed. Put the shuffle in a separate statement,
    or use & instead of &&.
    In the variant with the early exit, every thread also reads the current result
    in each round, and returns once it is false. An array without zeros is still
    read to the end. Reading the result increases the number of loads by a quarter,
    but all of these loads go to one address, whose value is in the cache. Threads
    that have begun a round finish it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..checks import on_host
from ..device_code import WAVES, blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import read_limit
from ..stop import Check, Curve, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Logical and of an array: shuffles, votes and early exit"
SIZE = Size("elements to combine", full=2**30 + 3, small=2**18 + 3)
CHECKED = 2**14 + 5  # elements of the arrays that have zeros
BLOCK, LOADS, WARP = 256, 4, 32
# The rounds of a fixed grid, so that an early exit saves something even if the array is small.
ROUNDS = 8
EARLY = "early exit"
EVERY = "one atomic per thread"
ATOMICS = 2**24  # the most elements of that variant, since each takes a nanosecond or more
# Each kernel, and the elements that a thread of a fixed grid loads per round: 0 without a fixed grid.
KERNELS = {
    EVERY: ("and_atomic", 0),
    "tree, one atomic per block": ("and_tree", 0),
    "one vote per block": ("and_vote", 0),
    "fixed grid, vector loads": ("and_grid<1>", 4),
    "four loads in flight": (f"and_grid<{LOADS}>", 4 * LOADS),
    EARLY: (f"and_early<{LOADS}>", 4 * LOADS),
}
# Positions of the only zero, as fractions of the length of the array.
POSITIONS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
EARLY_TABLE = "Position of the only zero, as a fraction of the array"
EXPLAINED_BY = ("loads", "atomics", "instructions")
NOTES = (
    "A reduction tree works for any associative and commutative operation, in log2 N steps. Logical AND is one of "
    "them. For Boolean values, the hardware also provides votes: __syncthreads_and() is a barrier that tells every "
    "thread of a block whether the values of all its threads are true. It takes half as many instructions as the tree, "
    "and blocks without a zero write nothing. As in the lesson nan_check, it takes several 16-byte loads per thread to "
    "reach the limit.",
    "Compare an element with zero before you combine it: 1 & 2 is 0, although both are true.",
    "`value = value && __shfl_down_sync(...)` skips the shuffle if value is false, since && evaluates its right "
    "operand only if the left one is true. Other lanes then read from a lane that does not take part in the shuffle. "
    "The result is undefined, and a zero may go unnoticed. Put the shuffle in a separate statement, or use & instead "
    "of &&.",
    "In the variant with the early exit, every thread also reads the current result in each round, and returns once "
    "it is false. An array without zeros is still read to the end. Reading the result increases the number of loads "
    "by a quarter, but all of these loads go to one address, whose value is in the cache. Threads that have begun a "
    "round finish it.",
)

Integers = NDArray[np.int32]


def reference(x: Integers) -> int:
    """Return 1 if all elements are true, else 0."""
    return int(np.all(x != 0))


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on arrays with and without zeros; time it on a large one without zeros."""
    random = np.random.default_rng()
    block = true_elements(random, min(size, INPUT_BLOCK))
    x = repeated(block, size)
    few = min(size, CHECKED)
    zeros = [0, int(random.integers(few)), few - 1]
    arrays = [x, *(cuda.to_device(with_zero(block[:few], index)) for index in zeros)]
    expected = np.array([reference(block), *(reference(with_zero(block[:few], index)) for index in zeros)], np.int32)
    limit = read_limit(device)
    rows = measure(make_variants(device, arrays, expected), limit, EXPLAINED_BY)
    wrong = shown_wrong("shuffle after &&", skipped)
    tables, pictures = {}, []
    if timing.available() or counters.available():
        column = "ms" if timing.available() else "loads"
        measured = by_position(device, x, column)
        tables[EARLY_TABLE] = [Row(f"at {position:g}", *measured[position]) for position in POSITIONS]
        # A wrong variant is not timed.
        names = dict.fromkeys(name for values, _ in measured.values() for name in values)
        lines = {
            name: [(position, values[name]) for position, (values, _) in measured.items() if name in values]
            for name in names
        }
        pictures = [Curve("early", "position of the only zero, as a fraction of the array", column, lines)]
    part = [f"The '{EVERY}' variant is timed with {ATOMICS:,} elements."] if size > ATOMICS else []
    return Result(
        [*rows, wrong],
        limit,
        notes=[*NOTES, *part],
        tables=tables,
        pictures=pictures,
        counted=f"{size:,} elements, and three arrays of {few:,}",
    )


def true_elements(random: np.random.Generator, size: int) -> Integers:
    """Return random elements with one bit set each, so that the bitwise and of most pairs is zero."""
    bits: Integers = np.left_shift(1, random.integers(0, 32, size, np.uint32), dtype=np.uint32).view(np.int32)
    return bits


def with_zero(x: Integers, index: int) -> Integers:
    """Return a copy of x with one zero."""
    copy = x.copy()
    copy[index] = 0
    return copy


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("logical_and", names=[kernel for kernel, _ in KERNELS.values() if "<" in kernel])


def joining(device: cuda.Device, name: str, x: cuda.DeviceArray, result: cuda.DeviceArray) -> Callable[[], object]:
    """Return a launch that combines the elements of `x`; setting the result to 1 is part of it."""
    kernel_name, each = KERNELS[name]
    kernel = load_all()[kernel_name]
    grid = blocks_for(x.size, BLOCK)
    if each:
        most = WAVES * device.sm_count * kernel.occupancy(BLOCK).blocks
        grid = min(most, blocks_for(x.size, each * BLOCK * ROUNDS))
    launch = kernel[grid, BLOCK].bind(x, result, x.size)

    def join() -> None:
        cuda.memset(result, 1)
        launch()

    return join


def make_variants(device: cuda.Device, arrays: list[cuda.DeviceArray], expected: Integers) -> list[Variant]:
    """Return the variants, checked on all arrays and timed on the first one, which has no zero."""
    results = cuda.empty(len(arrays), np.int32)

    def variant(name: str) -> Variant:
        taken = [arrays[0][:ATOMICS] if name == EVERY else arrays[0], *arrays[1:]]
        launches = [joining(device, name, x, results[i : i + 1]) for i, x in enumerate(taken)]
        return Variant(
            name=name,
            launch=lambda: [launch() for launch in launches],
            output=results,
            expected=expected,
            timed=launches[0],
            amount=taken[0].nbytes,
        )

    return [variant(name) for name in KERNELS]


def by_position(device: cuda.Device, x: cuda.DeviceArray, column: str) -> dict[float, tuple[dict[str, float], Check]]:
    """Return the time or the loads with and without early exit, for each position of the only zero, and a check."""
    measured = {}
    result = cuda.empty(1, np.int32)
    for position in POSITIONS:
        index = max(0, min(int(position * x.size), x.size // 4 * 4 - 1))  # at most the last one in a group of four
        cell = x[index : index + 1]
        before = cell.to_host()
        cuda.memset(cell, 0)
        variants = [
            Variant(
                name=name,
                launch=joining(device, kernel, x, result),
                output=result,
                expected=np.zeros(1, np.int32),
                amount=x.nbytes,
            )
            for name, kernel in ((f"{column}, to the end", "four loads in flight"), (f"{column}, {EARLY}", EARLY))
        ]
        rows = measure(variants, None, [column] if column in counters.COLUMNS else [], quick=True)
        cell.copy_from(before)
        checks = [row.check for row in rows if row.check]
        failed = next((check for check in checks if not check.holds), checks[0])
        measured[position] = ({row.name: float(row.values[column]) for row in rows if column in row.values}, failed)
    return measured


def skipped() -> str:
    """Combine truth values, one of them zero, with shuffles that a lane skips; return a sentence on the result."""
    x, result = np.ones(WARP, np.int32), cuda.empty(1, np.int32)
    x[5] = 0
    load_all()["and_skips_shuffle"][1, WARP](cuda.to_device(x), result)
    if on_host(result)[0] == reference(x):
        return ""
    return "the result is true, although lane 5 has a zero."
