"""The lesson of `map`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK, WARP = 64, 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Evaluate polynomials whose values are whole numbers, exact in single precision; count loads and stores."""
    for size, count in ((4 * BLOCK, 6), (333, 4), (5, 1)):
        x = np.random.default_rng(5).integers(-5, 6, size).astype(np.float32)
        coefficients = np.random.default_rng(7).integers(-9, 10, count).astype(np.float32)
        values = poisoned(size, np.float32)
        launch = answer["evaluate"][blocks_for(size, BLOCK), BLOCK].bind(
            cuda.to_device(x), cuda.to_device(coefficients), count, values, size
        )
        counted = counters.count(launch, ["loads", "stores"])
        expected = np.polynomial.polynomial.polyval(x, coefficients).astype(np.float32)
        yield compare(
            f"{size} numbers: the values of a polynomial, with coefficients up to x^{count - 1}",
            values.to_host(),
            expected,
        )
        warps = blocks_for(size, WARP)
        fact = f"{size} numbers: a warp loads its numbers once, and each coefficient once"
        yield at_most(fact, counted["loads"], warps * (1 + count))
        yield at_most(f"{size} numbers: a warp stores its values once", counted["stores"], warps)


LESSON = Lesson(
    learn=[
        "Why 256 passes over an array belong into one launch, with a loop inside the kernel.",
        "How values stay in registers during a loop, and why a line such as `a[i] = f(a[i], b[i])` does not keep them "
        "there.",
        "How to tell which limit a kernel has reached: the memory's, or the arithmetic units'.",
        "What `--use_fast_math` replaces, how much time that saves, and where its results are wrong.",
    ],
    steps=[
        Step(
            name="256 launches",
            shows=["Pow", "f", "map_once<Pow>"],
            text="A thread applies `f` to one element. Each of the 256 launches reads both arrays from memory and "
            "writes one of them, though the next launch needs the same numbers again.",
        ),
        Step(
            name="loop in registers",
            shows=["Pow", "f", "map_loop<Pow>"],
            text="One launch. A thread reads its two numbers into variables before the loop, and writes the result "
            "after it. The variables are registers, so the arrays pass through memory once and not 256 times.",
        ),
        Step(
            name="c * c for pow(c, 2)",
            shows=["Product", "f", "map_loop<Product>"],
            text="A product takes the place of the general power, which needs many instructions for any exponent. With "
            "the memory out of the way, fewer instructions mean less time.",
        ),
        Step(
            name="in memory, fast math",
            shows=["f", "map_memory<Product>"],
            text="The loop as one writes it at first, compiled with `--use_fast_math`, so that `sinf`, `cosf` and "
            "`sqrtf` become instructions of the special-function units. The compiler has to store `a[i]` and to load "
            "`b[i]` in every pass, since both pointers might point to the same memory.",
        ),
        Step(
            name="in registers, fast math",
            shows=["f", "map_loop<Product>"],
            text="The same with variables: no store and no load is left inside the loop.",
        ),
    ],
    look_at=[
        "The columns 'loads' and 'stores', which are counted where there is no GPU: 256 launches load two numbers and "
        "store one in each pass, the loop in memory loads one and stores one, and the loop in registers does so once.",
        "On an H200 the loop in registers took about 415 ms, and 256 launches took about 500 ms: with precise "
        "functions, arithmetic is most of the work. With fast math the difference is larger, 86 ms and 325 ms.",
        "'in memory' and 'in registers' took the same time on an H200 with fast math, about 86 ms: both reach 96 % of "
        "what the special-function units can do, and the stores of the one are hidden behind that.",
        "The row 'pow, fast math' is wrong on purpose. Fast math computes a power by the logarithm of its base, which "
        "a negative number does not have.",
        "The table of whole programs: once the work is fast, the copies over the link take much of the time. A program "
        "in pieces copies and computes at the same time.",
    ],
    exercise=Exercise(
        task="The kernel evaluates a polynomial for each of `n` numbers, from the highest coefficient down "
        "(Horner's rule). Make every warp load its numbers once and store its values once, whatever the number of "
        "coefficients is. A coefficient may be loaded in each pass.",
        hints=[
            "Why does the compiler not keep `values[i]` and `x[i]` in registers by itself? Which of the arrays might "
            "overlap, as far as it knows?",
        ],
        answer="The number is read into a variable before the loop, and the value lives in another until it is stored. "
        "A variable's address is known to nobody, so no store through a pointer can change it, and it stays in a "
        "register. All lanes read the same coefficient, which is a single sector.",
        check=check,
    ),
    course="The times in the column 'course ms' are from lectures on GPU programming: of a T1000, then of a V100, with "
    "fast math. Those of the row 'NumPy, scaled' are of host processors with 6 and with 20 cores. The same cards are "
    "named in the table of whole programs.",
)
