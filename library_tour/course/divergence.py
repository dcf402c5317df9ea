"""Branches on which the threads of a warp disagree: the warp executes both sides, one after the other.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run divergence
    divergence: Divergence: warps whose threads take different branches
    size 8,197: threads, one element each
    counters: measured over 8,197 threads
                          course ms  instructions  active lanes  check
    ──────────────────────────────────────────────────────────────────
    one function              4,610       152,242          31.9  right
    8 functions, by warp                  154,842          31.9  right
    8 functions, by lane      8,610     1,179,559          4.18  right
    Two sides of an if, by its condition on threadIdx
                    instructions  active lanes  check
    ─────────────────────────────────────────────────
    all then             152,242          31.9  right
    all else             152,242          31.9  right
    x % 2                300,274          16.3  right
    x < 128              152,885          31.9  right
    x < 100              171,093          28.5  right
    16 x 16: x % 2       300,274          16.3  right
    16 x 16: x < 8       298,677          16.3  right
    16 x 16: y % 2       299,704          16.4  right
    16 x 16: y < 8       152,885          31.9  right
    32 x 8: y % 2        153,912          31.9  right
    An if with one multiply-add on each side
                     instructions  active lanes  check
    ──────────────────────────────────────────────────
    x % 2, in loops        14,233          24.4  right
    x % 2, selected         6,259          32.0  right
    A warp executes one instruction at a time. When its threads disagree on a
    condition, the warp executes both sides of the branch, each with the threads
    that take it, and the time is T(condition) + T(then) + T(else). When all 32
    threads agree, it executes only one side. Different warps do not wait for each
    other's branches.
    So all threads of a warp should agree on a condition. In a one-dimensional
    block, they do if it depends only on threadIdx.x / 32, or if it is threadIdx.x <
    s and s is a multiple of 32. With any other s, one warp of the block diverges.
    In a two-dimensional block, threads are numbered along x first. Here, a warp is
    either one row of 32 threads or two rows of 16. With rows of 16, every warp
    diverges on x < 8. The two rows of a warp disagree on y % 2 but agree on y < 8.
    Eight functions take eight times as long as one only if nothing else takes time.
    If they are short, most of the time goes into memory accesses, which all threads
    of a warp perform together. The 'course ms' column shows the lectures' times for
    256 launches on a T1000: they took 8.61 s with eight functions picked by
    threadIdx.x % 8, and 4.61 s with one function, a factor of 1.87.
    The compiler replaces a short branch with a selection, or it predicates the
    instructions of both sides. With predication, every thread executes both sides,
    but the side that it did not take has no effect. Either way, no warp diverges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import arithmetic_limit, copy_limit
from ..stop import Curve, Result, Row, Size
from ..variants import Variant, measure, points

TITLE = "Divergence: warps whose threads take different branches"
SIZE = Size("threads, one element each", full=2**27 + 5, small=2**13 + 5)
CHECKED = 2**13 + 5  # elements that are checked
BLOCK, FUNCTIONS, PASSES = 256, 8, 512
CURVE = (1, 4, 32, 128, PASSES)  # passes; the unrolled loop runs 32 at a time
# For values up to 400, after 512 rounded steps. A different function, or one pass more or less, changes them by more.
TOLERANCE = 0.02
COURSE_MS = {"one function": 4610.0, "8 functions, by lane": 8610.0}
EXPLAINED_BY = ("instructions", "active lanes")
SIDES, ONE_EACH = "Two sides of an if, by its condition on threadIdx", "An if with one multiply-add on each side"
IN_LOOPS, SELECTED = "x % 2, in loops", "x % 2, selected"
NOTES = (
    "A warp executes one instruction at a time. When its threads disagree on a condition, the warp executes both sides "
    "of the branch, each with the threads that take it, and the time is T(condition) + T(then) + T(else). When all 32 "
    "threads agree, it executes only one side. Different warps do not wait for each other's branches.",
    "So all threads of a warp should agree on a condition. In a one-dimensional block, they do if it depends only on "
    "threadIdx.x / 32, or if it is threadIdx.x < s and s is a multiple of 32. With any other s, one warp of the block "
    "diverges. In a two-dimensional block, threads are numbered along x first. Here, a warp is either one row of 32 "
    "threads or two rows of 16. With rows of 16, every warp diverges on x < 8. The two rows of a warp disagree on y % "
    "2 but agree on y < 8.",
    "Eight functions take eight times as long as one only if nothing else takes time. If they are short, most of the "
    "time goes into memory accesses, which all threads of a warp perform together. The 'course ms' column shows the "
    "lectures' times for 256 launches on a T1000: they took 8.61 s with eight functions picked by threadIdx.x % 8, and "
    "4.61 s with one function, a factor of 1.87.",
    "The compiler replaces a short branch with a selection, or it predicates the instructions of both sides. With "
    "predication, every thread executes both sides, but the side that it did not take has no effect. Either way, no "
    "warp diverges.",
)

Floats = NDArray[np.float32]
Shape = int | tuple[int, int]


class Way(NamedTuple):
    """A kernel, the index of the function that each thread of a block applies, and the shape of the block."""

    kernel: str
    functions: NDArray[np.int64]
    block: Shape = BLOCK


LINE = np.arange(BLOCK)
ROW, COLUMN = np.divmod(LINE, 16)  # of a block of 16 x 16
CHOICES = {
    "one function": Way("choose<One>", 0 * LINE),
    "8 functions, by warp": Way("choose<ByWarp>", LINE // 32 % FUNCTIONS),
    "8 functions, by lane": Way("choose<ByLane>", LINE % FUNCTIONS),
}
CONDITIONS = {
    "all then": Way("sides<Then>", 0 * LINE),
    "all else": Way("sides<Else>", 0 * LINE + 1),
    "x % 2": Way("sides<Even>", LINE % 2),
    "x < 128": Way("sides<First<128>>", (LINE >= 128).astype(int)),
    "x < 100": Way("sides<First<100>>", (LINE >= 100).astype(int)),
    "16 x 16: x % 2": Way("sides<Even>", COLUMN % 2, (16, 16)),
    "16 x 16: x < 8": Way("sides<First<8>>", (COLUMN >= 8).astype(int), (16, 16)),
    "16 x 16: y % 2": Way("sides<EvenRow>", ROW % 2, (16, 16)),
    "16 x 16: y < 8": Way("sides<FirstRow<8>>", (ROW >= 8).astype(int), (16, 16)),
    "32 x 8: y % 2": Way("sides<EvenRow>", LINE // 32 % 2, (32, 8)),
}
SHORT = {IN_LOOPS: Way("sides<Even>", LINE % 2), SELECTED: Way("select<Even>", LINE % 2)}
WAYS = CHOICES | CONDITIONS | SHORT


def reference(x: Floats, functions: NDArray[np.int64], passes: int) -> Floats:
    """Return x after `passes` multiply-adds with each thread's function, computed in double precision."""
    factor = 1 - (np.resize(functions, x.size) + 1) / 1024
    y = x.astype(np.float64)
    for _ in range(passes):
        y = y * factor + 1
    return y.astype(np.float32)


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on some elements, and time it on all."""
    limit = arithmetic_limit(device)
    block = np.random.default_rng().random(min(size, INPUT_BLOCK), np.float32)
    x = repeated(block, size)
    out = cuda.empty_like(x)
    module = load("divergence", names=list(dict.fromkeys(way.kernel for way in WAYS.values())))

    def variant(name: str, passes: int, amount: float) -> Variant:
        way = WAYS[name]
        few = min(size, CHECKED)
        # The kernel with one multiply-add per side has no loop, so it takes no number of passes.
        arguments = () if name == SELECTED else (passes,)
        check, timed = (
            module[way.kernel][blocks_for(n, BLOCK), way.block].bind(x, out, n, *arguments) for n in (few, size)
        )
        return Variant(
            name=name, launch=check, output=out[:few], expected=reference(block[:few], way.functions, passes),
            tolerance=TOLERANCE, timed=timed, amount=amount,
            columns={"course ms": COURSE_MS[name]} if name in COURSE_MS else {},
        )  # fmt: skip  # grouped by meaning

    def computing(name: str, passes: int = PASSES) -> Variant:
        return variant(name, passes, 2 * passes * size)

    rows = measure([computing(name) for name in CHOICES], limit, EXPLAINED_BY)
    sides = measure([computing(name) for name in CONDITIONS], limit, EXPLAINED_BY)
    short = [variant(name, 1, 2 * x.nbytes) for name in SHORT]
    copying = copy_limit(device)
    tables = {SIDES: sides, copying.heading(ONE_EACH): measure(short, copying, EXPLAINED_BY)}
    pictures = []
    if timing.available() or counters.available():
        column = "ms" if timing.available() else "instructions"
        measured = {
            passes: measure([computing(name, passes) for name in CHOICES], None, EXPLAINED_BY, quick=True)
            for passes in CURVE
        }
        pictures = [curve(measured, column)]
    return Result(rows, limit, notes=NOTES, pictures=pictures, tables=tables, counted=f"{min(size, CHECKED):,} threads")


def curve(measured: Mapping[int, Sequence[Row]], column: str) -> Curve:
    """Return a curve of the time or the instructions of each choice of functions against the passes per function."""
    by_choice = zip(CHOICES, zip(*measured.values(), strict=True), strict=True)
    lines = {name: points(measured, rows, column) for name, rows in by_choice}
    return Curve("length", "multiply-adds per function", column, lines, logarithmic="xy")
