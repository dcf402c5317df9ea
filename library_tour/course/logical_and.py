"""Tell whether all numbers of an array are true: the tree of a sum, votes, and an early exit.

On the simulator, which checks, counts and does not time:

    $ library-tour run logical_and
    logical_and: Logical and of an array: shuffles, votes and early exit
    size 262,147: numbers to join
                             loads  atomics  instructions  check
    ─────────────────────────────────────────────────────────────
    an atomic a thread       9,732    9,732       175,456  right
    tree, an atomic a block  9,732    1,220       473,192  right
    a block's vote           9,732        3       224,318  right
    fixed grid, by four      2,439        3        54,607  right
    four loads in flight     2,439        3        34,415  right
    early exit               2,844        6        35,202  right
    shuffle behind &&                                      caught
    shuffle behind &&: the result is true, although lane 5 has a zero.
    kernel and_skips_shuffle at kernels/logical_and.cu:122: uninitialised value
    reaches a branch: a shuffle at kernels/logical_and.cu:122 read it from lane 5 of
    the warp, which takes no part; block (0, 0, 0), thread (1, 0, 0), instruction
    '@%p7 bra $L__BB3_6'
        122 | value = value && __shfl_down_sync(0xffffffff, value, step);
        the same at 1 more instruction of this line (unrolled loops have several)
    Where the only zero is, as a part of the array's length
              loads, to the end  loads, early exit  check
    ─────────────────────────────────────────────────────
    at 0                  2,049                721  right
    at 0.125              2,049                721  right
    at 0.25               2,049              1,081  right
    at 0.5                2,049              1,801  right
    at 0.75               2,049              2,521  right
    at 1                  2,049              2,561  right
    The tree of a sum serves every operation that is associative and commutative,
    and a logical and is one: log2 N steps one after another. For truth values the
    hardware has votes as well. __syncthreads_and() gives every thread of a block
    the and of all at the barrier itself, in half the tree's instructions, and no
    thread writes where there is no zero. As in the stop nan_check, only several
    loads of 16 bytes a thread reach the limit.
    A number is compared with zero before it is joined: 1 & 2 is 0, and both are
    true.
    `value = value && __shfl_down_sync(...)` leaves out the shuffle where value is
    false, since && evaluates its right side only where the left one is true. Other
    lanes then read from a lane that does not take part. What they get is undefined,
    and a zero may go unseen. The shuffle belongs in a statement of its own, or
    behind & in place of &&.
    With early exit every thread reads the result so far once a round, beside its
    loads, and ends where it is false. An array without zeros is read to its end all
    the same. The reads of the result are a quarter more loads, but of one address,
    which the cache answers. Threads that have begun a round finish it.
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
SIZE = Size("numbers to join", full=2**30 + 3, small=2**18 + 3)
CHECKED = 2**14 + 5  # numbers of the arrays that have zeros
BLOCK, LOADS, WARP = 256, 4, 32
# Of a fixed grid, so that an early exit leaves something out also where the array is small.
ROUNDS = 8
EARLY = "early exit"
EVERY = "an atomic a thread"
ATOMICS = 2**24  # numbers of the way above at most, of which each takes a nanosecond or more
# Each kernel, and the numbers that a thread of a fixed grid loads at once: none where a thread has one number.
KERNELS = {
    EVERY: ("and_atomic", 0),
    "tree, an atomic a block": ("and_tree", 0),
    "a block's vote": ("and_vote", 0),
    "fixed grid, by four": ("and_grid<1>", 4),
    "four loads in flight": (f"and_grid<{LOADS}>", 4 * LOADS),
    EARLY: (f"and_early<{LOADS}>", 4 * LOADS),
}
# Where the only zero is, as a part of the array's length.
PLACES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
EARLY_TABLE = "Where the only zero is, as a part of the array's length"
EXPLAINED_BY = ("loads", "atomics", "instructions")
NOTES = (
    "The tree of a sum serves every operation that is associative and commutative, and a logical and is one: log2 N "
    "steps one after another. For truth values the hardware has votes as well. __syncthreads_and() gives every thread "
    "of a block the and of all at the barrier itself, in half the tree's instructions, and no thread writes where "
    "there is no zero. As in the stop nan_check, only several loads of 16 bytes a thread reach the limit.",
    "A number is compared with zero before it is joined: 1 & 2 is 0, and both are true.",
    "`value = value && __shfl_down_sync(...)` leaves out the shuffle where value is false, since && evaluates its "
    "right side only where the left one is true. Other lanes then read from a lane that does not take part. What they "
    "get is undefined, and a zero may go unseen. The shuffle belongs in a statement of its own, or behind & in place "
    "of &&.",
    "With early exit every thread reads the result so far once a round, beside its loads, and ends where it is false. "
    "An array without zeros is read to its end all the same. The reads of the result are a quarter more loads, but of "
    "one address, which the cache answers. Threads that have begun a round finish it.",
)

Numbers = NDArray[np.int32]


def reference(x: Numbers) -> int:
    """Return 1 if all numbers are true, else 0."""
    return int(np.all(x != 0))


def run(device: cuda.Device, size: int) -> Result:
    """Check every way on arrays with and without zeros; time it on a large one without, which is read to its end."""
    random = np.random.default_rng()
    block = true_numbers(random, min(size, INPUT_BLOCK))
    x = repeated(block, size)
    few = min(size, CHECKED)
    places = [0, int(random.integers(few)), few - 1]
    arrays = [x, *(cuda.to_device(with_zero(block[:few], place)) for place in places)]
    expected = np.array([reference(block), *(reference(with_zero(block[:few], place)) for place in places)], np.int32)
    limit = read_limit(device)
    rows = measure(make_variants(device, arrays, expected), limit, EXPLAINED_BY)
    wrong = shown_wrong("shuffle behind &&", skipped)
    tables, pictures = {}, []
    if timing.available() or counters.available():
        column = "ms" if timing.available() else "loads"
        found = by_place(device, x, column)
        tables[EARLY_TABLE] = [Row(f"at {place:g}", found[place][0], found[place][1]) for place in PLACES]
        # What is wrong is not timed.
        names = dict.fromkeys(name for values, _ in found.values() for name in values)
        lines = {
            name: [(place, values[name]) for place, (values, _) in found.items() if name in values] for name in names
        }
        pictures = [Curve("early", "where the only zero is, as a part of the array", column, lines)]
    part = [f"The row '{EVERY}' is timed with {ATOMICS:,} numbers."] if size > ATOMICS else []
    return Result([*rows, wrong], limit, notes=[*NOTES, *part], tables=tables, pictures=pictures)


def true_numbers(random: np.random.Generator, size: int) -> Numbers:
    """Return random numbers with one bit set each, so that the bitwise and of most pairs is zero."""
    bits: Numbers = np.left_shift(1, random.integers(0, 32, size, np.uint32), dtype=np.uint32).view(np.int32)
    return bits


def with_zero(x: Numbers, place: int) -> Numbers:
    """Return the numbers with one zero."""
    numbers = x.copy()
    numbers[place] = 0
    return numbers


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("logical_and", names=[kernel for kernel, _ in KERNELS.values() if "<" in kernel])


def joining(device: cuda.Device, name: str, x: cuda.DeviceArray, result: cuda.DeviceArray) -> Callable[[], object]:
    """Return a launch that joins the numbers of `x`; setting the result to 1 is part of it."""
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


def make_variants(device: cuda.Device, arrays: list[cuda.DeviceArray], expected: Numbers) -> list[Variant]:
    """Return the ways, checked on all arrays and timed on the first one, which has no zero."""
    results = cuda.empty(len(arrays), np.int32)

    def variant(name: str) -> Variant:
        taken = [arrays[0][:ATOMICS] if name == EVERY else arrays[0], *arrays[1:]]
        launches = [joining(device, name, x, results[place : place + 1]) for place, x in enumerate(taken)]
        return Variant(
            name=name,
            launch=lambda: [launch() for launch in launches],
            output=results,
            expected=expected,
            timed=launches[0],
            amount=taken[0].nbytes,
        )

    return [variant(name) for name in KERNELS]


def by_place(device: cuda.Device, x: cuda.DeviceArray, column: str) -> dict[float, tuple[dict[str, float], Check]]:
    """Return the time or the loads with and without early exit, for each place of the only zero, and a check."""
    found = {}
    result = cuda.empty(1, np.int32)
    for place in PLACES:
        index = max(0, min(int(place * x.size), x.size // 4 * 4 - 1))  # the last one in a group of four
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
        found[place] = ({row.name: float(row.values[column]) for row in rows if column in row.values}, failed)
    return found


def skipped() -> str:
    """Join the truths of a warp with a zero, by a shuffle that is skipped; return what is wrong with the result."""
    x, result = np.ones(WARP, np.int32), cuda.empty(1, np.int32)
    x[5] = 0
    load_all()["and_skips_shuffle"][1, WARP](cuda.to_device(x), result)
    if on_host(result)[0] == reference(x):
        return ""
    return "the result is true, although lane 5 has a zero."
