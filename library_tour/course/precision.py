"""Rounding errors: fused multiply-adds, compiler flags, float and double, one step and many.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run precision
    precision: Rounding: fused multiply-adds, flags, float and double
    size 16,389: elements that each function is applied to
                             ulp   bound  same as NumPy  PTX              check
    ───────────────────────────────────────────────────────────────────────────
    a b + c                  0.50  0.50   80 %           fma.rn           right
    a b + c, --fmad=false    1.00  1.00   100 %          mul.rn, add.rn   right
    a b + c, intrinsics      1.00  1.00   100 %          mul.rn, add.rn   right
    a b + c, double          0.50  0.50   81 %           fma.rn           right
    c = -a b                 0.00  0.00   0 %            fma.rn           right
    c = -a b, --fmad=false   2^24  2^24   100 %          mul.rn, add.rn   right
    tiny a b                 0.50  0.50   100 %          mul              right
    tiny a b, --ftz=true     2^23  2^23   62 %           mul.ftz          right
    a / b                    0.50  0.50   100 %          div.rn           right
    a / b, --prec-div=false  0.50  2.50   100 %          div.full         right
    a / b, the four flags    0.50  2.50   100 %          div.full.ftz     right
    a / b, fast math         0.50  2.50   100 %          div.approx.ftz   right
    a / b, double            0.50  0.50   100 %          div.rn           right
    sqrt                     0.50  0.50   100 %          sqrt.rn          right
    sqrt, --prec-sqrt=false  0.50  2.00   100 %          sqrt.approx      right
    sqrt, fast math          0.50  2.00   100 %          sqrt.approx.ftz  right
    sqrt, double             0.50  0.50   100 %          sqrt.rn          right
    sin                      1.03  2.50   94 %           mul.rn, fma.rn   right
    sin, fast math           0.50  11.31  95 %           sin.approx.ftz   right
    Steps of x = x x + c, c = -1.9: the largest difference from NumPy
                            2 steps  10 steps  50 steps  check
    ───────────────────────────────────────────────────────────
    float                   6.0e-07   1.0e-04      3.60  right
    float, --fmad=false        0.00      0.00      0.00  right
    float, NumPy in double  3.4e-07   1.2e-04      3.60  right
    double                  2.2e-16   1.1e-13   0.00585  right
    float, c = -0.5         3.0e-08   6.0e-08   3.0e-08  right
    float, wrong c           0.0281      3.63      3.62  caught
    An ulp is the distance from a number to the next one of its type. The 'ulp'
    column shows the largest error. An error of at most 0.5 means correct rounding,
    and the same bits on every machine. A fused multiply-add rounds once. If c
    cancels the rounded product, the result is the product's rounding error. With
    two roundings, the result has no correct digit. On the simulator, the results of
    approximate functions are rounded only once. On a GPU, their errors are larger,
    but within the bound.
    The 'bound' column shows the largest allowed error in ulp, 'same as NumPy' the
    share of results whose bits agree with NumPy's, and 'PTX' the instructions.
    --use_fast_math sets --ftz=true, --prec-div=false, --prec-sqrt=false and
    --fmad=true. It also selects a shorter division than these four flags do, and
    approximate versions of sin, cos, exp, log and pow.
    Results drift further apart with each step, between CPU and GPU as well as
    between float and double. With c = -1.9, a difference doubles every one or two
    steps until no digit agrees. With c = -0.5, it never exceeds a few ulp. Without
    fused multiply-adds, the CPU and the GPU compute the same bits. To tell a bug
    from rounding, compare a kernel with a validated one after a few steps. Rounding
    errors are then still a few ulp, and the effect of a mistake (c = -1.91) is far
    larger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..checks import poisoned
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import issue_limit
from ..stop import Check, Curve, Limit, Points, Result, Row, Size, Value

TITLE = "Rounding: fused multiply-adds, flags, float and double"
SIZE = Size("elements that each function is applied to", full=2**20, small=2**14 + 5)
UNIT = "Gops/s"
BLOCK = 256
PER_THREAD = 4  # elements
CHECKED = 2**14 + 5
ROUNDS = 4096  # per timed launch
# The flags that --use_fast_math stands for, according to the documentation of NVRTC.
FOUR_FLAGS = ("--ftz=true", "--prec-div=false", "--prec-sqrt=false", "--fmad=true")

Array = NDArray[Any]
# Returns the exact result for arguments of a longer type, or NumPy's result in the type of the arguments.
Function = Callable[[Array, Array, Array], Array]


class Kind(NamedTuple):
    """A function as NumPy computes it, and the choice of a, b and c from random numbers in [1, 2)."""

    function: Function
    choose: Callable[[Array, Array, Array], tuple[Array, Array, Array]] = lambda a, b, c: (a, b, c)


class Way(NamedTuple):
    """A kind of operation with its kernel, flags, PTX instructions and largest allowed error in ulp.

    The bounds of approximate functions are those of the PTX manual and, for sin, of the CUDA programming guide. If
    these are relative to the correctly rounded result, half an ulp is added, because the errors here are relative to
    the exact result.
    """

    kind: str
    function: str
    flags: tuple[str, ...]
    ptx: str
    bound: float
    dtype: Any = np.float32


KINDS = {
    "a b + c": Kind(lambda a, b, c: a * b + c),
    # The fused instruction finds what the product loses when it is rounded.
    "c = -a b": Kind(lambda a, b, c: a * b + c, lambda a, b, c: (a, b, -(a * b))),
    # About half of the products are below 2^-126, the smallest normal number.
    "tiny a b": Kind(
        lambda a, b, c: a * b, lambda a, b, c: (a * a.dtype.type(2.0**-64), b * b.dtype.type(2.0**-63), c)
    ),
    "a / b": Kind(lambda a, b, c: a / b),
    "sqrt": Kind(lambda a, b, c: np.sqrt(b)),
    "sin": Kind(lambda a, b, c: np.sin(b)),
}
FAST = ("--use_fast_math",)
WAYS = {
    "a b + c": Way("a b + c", "MultiplyAdd<float>", (), "fma.rn", 0.5),
    "a b + c, --fmad=false": Way("a b + c", "MultiplyAdd<float>", ("--fmad=false",), "mul.rn, add.rn", 1),
    "a b + c, intrinsics": Way("a b + c", "SeparateRounding", (), "mul.rn, add.rn", 1),
    "a b + c, double": Way("a b + c", "MultiplyAdd<double>", (), "fma.rn", 0.5, np.float64),
    "c = -a b": Way("c = -a b", "MultiplyAdd<float>", (), "fma.rn", 0),
    "c = -a b, --fmad=false": Way("c = -a b", "MultiplyAdd<float>", ("--fmad=false",), "mul.rn, add.rn", 2.0**24),
    "tiny a b": Way("tiny a b", "Multiply", (), "mul", 0.5),
    "tiny a b, --ftz=true": Way("tiny a b", "Multiply", ("--ftz=true",), "mul.ftz", 2.0**23),
    "a / b": Way("a / b", "Divide<float>", (), "div.rn", 0.5),
    "a / b, --prec-div=false": Way("a / b", "Divide<float>", ("--prec-div=false",), "div.full", 2.5),
    "a / b, the four flags": Way("a / b", "Divide<float>", FOUR_FLAGS, "div.full.ftz", 2.5),
    "a / b, fast math": Way("a / b", "Divide<float>", FAST, "div.approx.ftz", 2.5),
    "a / b, double": Way("a / b", "Divide<double>", (), "div.rn", 0.5, np.float64),
    "sqrt": Way("sqrt", "SquareRoot<float>", (), "sqrt.rn", 0.5),
    "sqrt, --prec-sqrt=false": Way("sqrt", "SquareRoot<float>", ("--prec-sqrt=false",), "sqrt.approx", 2),
    "sqrt, fast math": Way("sqrt", "SquareRoot<float>", FAST, "sqrt.approx.ftz", 2),
    "sqrt, double": Way("sqrt", "SquareRoot<double>", (), "sqrt.rn", 0.5, np.float64),
    "sin": Way("sin", "Sine", (), "mul.rn, fma.rn", 2.5),
    "sin, fast math": Way("sin", "Sine", FAST, "sin.approx.ftz", 2.0 ** (24 - 20.5)),
}


class Recurrence(NamedTuple):
    """Steps of x = x x + c: the type and flags of the kernel, and the type that NumPy uses.

    For `steps` steps the difference must be at most `bound`. With a `wrong_term` instead of c it must be larger.
    """

    bound: float
    steps: int
    flags: tuple[str, ...] = ()
    dtype: Any = np.float32
    beside: Any = np.float32
    term: float = -1.9
    wrong_term: float | None = None


# A few rounding errors of numbers below 2, which each step makes at most four times as large.
FEW_FLOAT, FEW_DOUBLE = 16 * 2.0**-23, 16 * 2.0**-52
STARTS, STEPS, FEW = 1003, 60, 2
SHOWN_STEPS = (FEW, 10, 50)
RECURRENCES = {
    "float": Recurrence(FEW_FLOAT, FEW),
    "float, --fmad=false": Recurrence(0, STEPS, flags=("--fmad=false",)),
    "float, NumPy in double": Recurrence(FEW_FLOAT, FEW, beside=np.float64),
    "double": Recurrence(FEW_DOUBLE, FEW, dtype=np.float64, beside=np.float64),
    "float, c = -0.5": Recurrence(FEW_FLOAT, STEPS, term=-0.5),
    "float, wrong c": Recurrence(FEW_FLOAT, FEW, wrong_term=-1.91),
}


def steps_of(start: Array, term: float, steps: int) -> Array:
    """Return the values after each step, in the type of `start`: shape (steps, start.size)."""
    added = start.dtype.type(term)
    rows, x = [], start
    for _ in range(steps):
        x = x * x + added
        rows.append(x)
    return np.array(rows)


def kernel_of(way: Way | Recurrence) -> str:
    """Return the name of the kernel of a way."""
    if isinstance(way, Way):
        return f"apply<{way.function}>"
    return f"drift<{'double' if way.dtype == np.float64 else 'float'}>"


def run(device: cuda.Device, size: int) -> Result:
    """Measure the error and the time of every function, then how differences grow over steps."""
    modules = load_all()
    # A function that is a single instruction reaches this limit.
    limit = issue_limit(device, 1, UNIT)
    rows = [function_row(name, way, modules[way.flags], size, limit) for name, way in WAYS.items()]
    differences = {name: difference(way, modules[way.flags]) for name, way in RECURRENCES.items()}
    drifts = [drift_row(name, RECURRENCES[name], by_step) for name, by_step in differences.items()]
    notes = [
        "An ulp is the distance from a number to the next one of its type. The 'ulp' column shows the largest error. "
        "An error of at most 0.5 means correct rounding, and the same bits on every machine. A fused multiply-add "
        "rounds once. If c cancels the rounded product, the result is the product's rounding error. With two "
        "roundings, the result has no correct digit. On the simulator, the results of approximate functions are "
        "rounded only once. On a GPU, their errors are larger, but within the bound.",
        "--use_fast_math sets --ftz=true, --prec-div=false, --prec-sqrt=false and --fmad=true. It also selects a "
        "shorter division than these four flags do, and approximate versions of sin, cos, exp, log and pow.",
        "Results drift further apart with each step, between CPU and GPU as well as between float and double. With c = "
        "-1.9, a difference doubles every one or two steps until no digit agrees. With c = -0.5, it never exceeds a "
        "few ulp. Without fused multiply-adds, the CPU and the GPU compute the same bits. To tell a bug from rounding, "
        "compare a kernel with a validated one after a few steps. Rounding errors are then still a few ulp, and the "
        "effect of a mistake (c = -1.91) is far larger.",
    ]
    if not timing.available():
        notes.insert(
            1,
            "The 'bound' column shows the largest allowed error in ulp, 'same as NumPy' the share of results whose "
            "bits agree with NumPy's, and 'PTX' the instructions.",
        )
    tables = {"Steps of x = x x + c, c = -1.9: the largest difference from NumPy": drifts}
    return Result(rows, limit, pictures=[growth(differences)], notes=notes, tables=tables)


def load_all() -> dict[tuple[str, ...], cuda.Module]:
    """Compile, for each set of flags, the kernels that are needed with it."""
    ways: list[Way | Recurrence] = [*WAYS.values(), *RECURRENCES.values()]
    return {
        flags: load("precision", names=sorted({kernel_of(way) for way in ways if way.flags == flags}), options=flags)
        for flags in dict.fromkeys(way.flags for way in ways)
    }


def function_row(name: str, way: Way, module: cuda.Module, size: int, limit: Limit) -> Row:
    """Apply a function once and measure its error, then time it, applied repeatedly."""
    kernel = module[kernel_of(way)]
    random = np.random.default_rng()
    kind = KINDS[way.kind]
    random_arguments = (1 + random.random(min(size, CHECKED), way.dtype) for _ in "abc")
    arguments = kind.choose(*random_arguments)
    out = poisoned(arguments[0].shape, way.dtype)
    a, b, c = (cuda.to_device(argument) for argument in arguments)
    metrics = counters.counted(kernel[blocks_for(out.size, PER_THREAD * BLOCK), BLOCK].bind(a, b, c, out, out.size, 1))
    results = out.to_host()

    longer = np.longdouble if way.dtype == np.float64 else np.float64
    exact = kind.function(*(argument.astype(longer) for argument in arguments))
    ulp = largest_error(results, exact)
    # The longer type rounds too.
    check = Check(f"{name}: within {way.bound:g} ulp", ulp <= way.bound + 2.0**-10, f"{ulp:.3g} ulp")
    values: dict[str, Value] = {"ulp": in_words(ulp)}
    if timing.available():
        values.update(timing.rates(repeated_ms(kernel, way.dtype, size), ROUNDS * size, limit))
    else:
        same = float(np.mean(results == kind.function(*arguments)))
        values.update({"bound": in_words(way.bound), "same as NumPy": f"{100 * same:.0f} %", "PTX": way.ptx})
    return Row(name, values, check, metrics=metrics)


def largest_error(results: Array, exact: Array) -> float:
    """Return the largest error, in units in the last place of the type of the results."""
    ulp = np.abs(np.spacing(exact.astype(results.dtype)))
    return float((np.abs(results - exact) / ulp).max())


def in_words(ulp: float) -> str:
    """Return an error as text that is short even for large errors."""
    return f"{ulp:.2f}" if ulp < 1000 else f"2^{np.log2(ulp):.0f}"


def repeated_ms(kernel: cuda.Kernel, dtype: Any, size: int) -> float:
    """Return the time in ms of `ROUNDS` applications to each element, whose values stay away from 0 and infinity."""
    random = np.random.default_rng()
    b, c = (repeated(1 + random.random(min(size, INPUT_BLOCK), dtype), size) for _ in "bc")
    a = repeated((1 - 2.0**-12 * random.random(min(size, INPUT_BLOCK))).astype(dtype), size)
    out = cuda.empty(size, dtype)
    return timing.median_ms(kernel[blocks_for(size, PER_THREAD * BLOCK), BLOCK].bind(a, b, c, out, size, ROUNDS))


def difference(way: Recurrence, module: cuda.Module) -> Array:
    """Return the largest difference between the values of the device and of NumPy, after each step."""
    start = np.random.default_rng().uniform(-0.5, 0.5, STARTS).astype(np.float32)
    out = poisoned((STEPS, STARTS), way.dtype)
    kernel = module[kernel_of(way)][blocks_for(STARTS, BLOCK), BLOCK]
    kernel(cuda.to_device(start.astype(way.dtype)), out, way.wrong_term or way.term, STARTS, STEPS)
    result: Array = np.abs(out.to_host() - steps_of(start.astype(way.beside), way.term, STEPS)).max(axis=1)
    return result


def drift_row(name: str, way: Recurrence, by_step: Array) -> Row:
    """Return a row with the differences after a few steps and after many."""
    values: dict[str, Value] = {f"{step} steps": float(by_step[step - 1]) for step in SHOWN_STEPS}
    most = float(by_step[: way.steps].max())
    small = most <= way.bound
    if way.wrong_term:
        return Row(name, values, Check(f"{name}: the mistake shows", not small, f"{most:.1e}", word="caught"))
    return Row(name, values, Check(f"{name}: at most {way.bound:.1e} for {way.steps} steps", small, f"{most:.1e}"))


def growth(differences: dict[str, Array]) -> Curve:
    """Return a curve of the differences against the steps; its logarithmic axis leaves out differences of 0."""
    lines: dict[str, Points] = {
        name: [(float(step), float(largest)) for step, largest in enumerate(by_step, 1) if largest]
        for name, by_step in differences.items()
        if by_step.any()
    }
    return Curve("drift", "steps", "largest difference from NumPy", lines, logarithmic="y")
