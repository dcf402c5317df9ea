"""Coefficients that all threads share, and a table from which each lane reads a different word, in several memories.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run constant_memory
    constant_memory: Coefficients and tables in constant memory
    size 8,197: elements at which the polynomial is evaluated
    counters: measured over 8,197 elements per polynomial, and 3 blocks per table
                               loads  constants  wavefronts  instructions  check
    ────────────────────────────────────────────────────────────────────────────
    global memory             66,049          0           0       136,544  right
    shared memory                521          0      66,056       139,191  right
    constant memory              257          0           0       136,023  right
    argument by value            257          0           0       136,287  right
    8 elements per thread     10,497          0           0        97,754  right
    4 terms, global memory     1,285          0           0         7,016  right
    4 terms, constant memory     257          0           0         6,495  right
    constant table, 1 word         0        960           0         5,736  right
    constant table, 32 words       0     30,720           0         5,736  right
    shared table, 32 words        24          0         984         3,432  right
    global table, 32 words       960          0           0         5,760  right
    The rates count the coefficients, or the table words, that the threads read. A
    polynomial has 256 terms. Each takes one multiply-add and one coefficient, which
    is the same for all threads. A coefficient in constant memory is an operand of
    the multiply-add, directly or from a register that the whole warp shares. A
    coefficient in global or shared memory must first be loaded into a register in
    each lane. Kernel arguments are also in constant memory, so a few coefficients
    need no `__constant__` variable.
    A thread that computes 8 elements loads each coefficient once for all of them,
    so the loads hardly matter. Nor do they matter for a polynomial of 4 terms,
    where reading and writing the elements is the limit.
    If the lanes of a warp read different words of constant memory, the constant
    cache serves the words one after another: 32 words take 32 times as long as one.
    Here, even a single word takes a load, since its index is known only at run
    time. A table in which each lane reads a different word belongs in shared
    memory, or in global memory, where the L1 cache holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import issue_limit
from ..stop import Curve, Limit, Result, Size
from ..variants import Variant, measure, points

TITLE = "Coefficients and tables in constant memory"
SIZE = Size("elements at which the polynomial is evaluated", full=2**27 + 3, small=2**13 + 5)
BLOCK, PER_THREAD = 256, 8
TERMS, FEW_TERMS = 256, 4
SEVERAL = f"polynomial_registers<{TERMS}, {PER_THREAD}>"
NAMES = [
    *(f"polynomial_{memory}<{TERMS}>" for memory in ("global", "shared", "constant", "argument")),
    *(f"polynomial_{memory}<{FEW_TERMS}>" for memory in ("global", "constant")),
    SEVERAL,
]
LANES, ROWS = 32, 8  # words per row and rows of the table
WORDS = (1, 2, 4, 8, 16, 32)  # the numbers of different words that a warp reads at once
LOOK_UPS = 32
CHECKED_BLOCKS, CHECKED_ROUNDS = 3, 5
# For sums of TERMS products in [-1, 1], each rounded to single precision.
TOLERANCE = 5e-4
UNIT = "Greads/s"
EXPLAINED_BY = ("loads", "constants", "wavefronts", "instructions")

Floats = NDArray[np.float32]
Words = NDArray[np.uint32]
Launch = Callable[[], object]


def polynomial(x: Floats, coefficients: Floats) -> Floats:
    """Return the polynomial at each x, computed in double precision; the first coefficient has the highest power."""
    return np.polyval(coefficients.astype(np.float64), x.astype(np.float64)).astype(np.float32)


def looked_up(table: Words, words: int, rounds: int) -> Words:
    """Return each thread's sum, modulo 2^32, of the words that a block reads from the table of ROWS x LANES."""
    indices = (np.arange(BLOCK) % words)[:, None] + np.arange(rounds)
    return np.asarray(table.sum(axis=0, dtype=np.uint32)[indices % LANES].sum(axis=1, dtype=np.uint32))


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a few elements; time the polynomials on all of them and the tables on a full device."""
    limit = issue_limit(device, 1, UNIT)
    module = load("constant_memory", names=NAMES)
    tables = Tables(device, module, size)
    variants = [
        *polynomials(module, size),
        tables.variant("constant", 1),
        *(tables.variant(memory, LANES) for memory in Tables.MEMORIES),
    ]
    rows = measure(variants, limit, EXPLAINED_BY)
    notes = [
        f"The rates count the coefficients, or the table words, that the threads read. A polynomial has {TERMS} terms. "
        "Each takes one multiply-add and one coefficient, which is the same for all threads. A coefficient in constant "
        "memory is an operand of the multiply-add, directly or from a register that the whole warp shares. A "
        "coefficient in global or shared memory must first be loaded into a register in each lane. Kernel arguments "
        "are also in constant memory, so a few coefficients need no `__constant__` variable.",
        f"A thread that computes {PER_THREAD} elements loads each coefficient once for all of them, so the loads "
        f"hardly matter. Nor do they matter for a polynomial of {FEW_TERMS} terms, where reading and writing the "
        "elements is the limit.",
        "If the lanes of a warp read different words of constant memory, the constant cache serves the words one after "
        "another: 32 words take 32 times as long as one. Here, even a single word takes a load, since its index is "
        "known only at run time. A table in which each lane reads a different word belongs in shared memory, or in "
        "global memory, where the L1 cache holds it.",
    ]
    pictures = [tables.curve(limit)] if timing.available() else []
    return Result(
        rows,
        limit,
        pictures=pictures,
        notes=notes,
        counted=f"{min(size, SIZE.small):,} elements per polynomial, and {CHECKED_BLOCKS} blocks per table",
    )


def polynomials(module: cuda.Module, size: int) -> list[Variant]:
    """Return the variants that compute a polynomial, with the coefficients in different memories."""
    random = np.random.default_rng()
    block = random.uniform(-1, 1, min(size, INPUT_BLOCK)).astype(np.float32)
    coefficients = random.uniform(-1, 1, TERMS).astype(np.float32)
    checked = min(size, SIZE.small)
    x, y = repeated(block, size), cuda.empty(size, np.float32)
    in_global = cuda.to_device(coefficients)
    in_constant = module.symbol("constant_coefficients")
    in_constant.copy_from(coefficients)
    by_value = np.zeros((), [("of", np.float32, TERMS)])[()]
    by_value["of"] = coefficients

    def variant(name: str, kernel_name: str, *arguments: Any, terms: int = TERMS, per_thread: int = 1) -> Variant:
        kernel = module[kernel_name]

        def launch(count: int) -> Launch:
            return kernel[blocks_for(count, BLOCK * per_thread), BLOCK].bind(x, *arguments, y, count)

        return Variant(
            name=name,
            launch=launch(checked),
            output=y[:checked],
            expected=polynomial(block[:checked], coefficients[:terms]),
            tolerance=TOLERANCE,
            timed=launch(size),
            amount=terms * size,
        )

    return [
        variant("global memory", f"polynomial_global<{TERMS}>", in_global),
        variant("shared memory", f"polynomial_shared<{TERMS}>", in_global),
        variant("constant memory", f"polynomial_constant<{TERMS}>"),
        variant("argument by value", f"polynomial_argument<{TERMS}>", by_value),
        variant(f"{PER_THREAD} elements per thread", SEVERAL, in_global, per_thread=PER_THREAD),
        variant(f"{FEW_TERMS} terms, global memory", f"polynomial_global<{FEW_TERMS}>", in_global, terms=FEW_TERMS),
        variant(f"{FEW_TERMS} terms, constant memory", f"polynomial_constant<{FEW_TERMS}>", terms=FEW_TERMS),
    ]


class Tables:
    """Look-ups of a table in each kind of memory, LOOK_UPS per element of the polynomials."""

    MEMORIES = ("constant", "shared", "global")

    def __init__(self, device: cuda.Device, module: cuda.Module, size: int) -> None:
        self._table = np.random.default_rng().integers(0, 2**32, (ROWS, LANES), np.uint32)
        module.symbol("constant_table").copy_from(self._table.ravel())
        in_global = cuda.to_device(self._table.ravel())
        self._kernels = {memory: module[f"look_up_{memory}"] for memory in self.MEMORIES}
        self._arguments: Mapping[str, tuple[cuda.DeviceArray, ...]] = {
            "constant": (), "shared": (in_global,), "global": (in_global,)
        }  # fmt: skip  # one row of a table
        # One wave of blocks, but no more than the size requires.
        most = device.sm_count * (device.properties.max_threads_per_sm // BLOCK)
        self._blocks = min(most, max(CHECKED_BLOCKS, blocks_for(size, BLOCK)))
        self._sums = cuda.empty(self._blocks * BLOCK, np.uint32)
        self._rounds = blocks_for(size * LOOK_UPS, self._sums.size * ROWS)

    def variant(self, memory: str, words: int) -> Variant:
        """Return the look-ups in one memory, in which a warp reads `words` different words at once."""

        def launch(blocks: int, rounds: int) -> Launch:
            return self._kernels[memory][blocks, BLOCK].bind(*self._arguments[memory], self._sums, words, rounds)

        return Variant(
            name=f"{memory} table, {words} {'word' if words == 1 else 'words'}",
            launch=launch(CHECKED_BLOCKS, CHECKED_ROUNDS),
            output=self._sums[: CHECKED_BLOCKS * BLOCK],
            expected=np.tile(looked_up(self._table, words, CHECKED_ROUNDS), CHECKED_BLOCKS),
            timed=launch(self._blocks, self._rounds),
            amount=self._sums.size * ROWS * self._rounds,
        )

    def curve(self, limit: Limit) -> Curve:
        """Return the rate of each memory against the number of different words that a warp reads at once."""
        lines = {}
        for memory in self.MEMORIES:
            rows = measure([self.variant(memory, words) for words in WORDS], limit, quick=True)
            lines[f"{memory} memory"] = points(WORDS, rows, UNIT)
        return Curve("words", "different words that a warp reads at once", UNIT, lines, logarithmic="xy", line=limit)
