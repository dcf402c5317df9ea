"""The lesson of `precision`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

THREADS, SIZE = 128, 500
ULPS = 2

Doubles = NDArray[np.float64]


def exact(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """Return the discriminants, computed with fractions and rounded once."""
    equations: Any = zip(*(map(Fraction, numbers.tolist()) for numbers in (a, b, c)), strict=True)
    return np.array([float(b * b - 4 * a * c) for a, b, c in equations])


def check(answer: cuda.Module) -> Iterator[Check]:
    """Try equations with two distant roots, with two nearly equal ones, and with one root."""
    a, c = np.random.default_rng(5).uniform(1, 2, (2, SIZE))
    cases = {
        "distant roots": (a, 5 + a, c),
        "nearly equal roots": (a, 2 * np.sqrt(a * c), c),
        "one root": (a, 2 * a, a),
    }
    for name, equation in cases.items():
        out = poisoned(SIZE, np.float64)
        answer["discriminant"][blocks_for(SIZE, THREADS), THREADS](*map(cuda.to_device, equation), out, SIZE)
        got, expected = out.to_host(), exact(*equation)
        yield compare(f"{name}: the sign is right", np.sign(got), np.sign(expected))
        if expected.all():
            ulps = np.abs(got - expected) / np.spacing(np.abs(expected))
            yield at_most(f"{name}: the largest error is {ULPS} ulp at most", float(ulps.max()), ULPS)


LESSON = Lesson(
    learn=[
        "What an *ulp* is, the distance from a number to the next one of its type, and how errors are measured in it.",
        "Why a fused multiply-add, which rounds once, gives other bits than a multiplication and an addition.",
        "What each flag behind `--use_fast_math` gives up, and what it saves.",
        "How to tell a mistake from rounding errors: compare after few steps, before the errors have grown.",
    ],
    steps=[
        Step(
            name="a b + c",
            shows=["MultiplyAdd", "apply"],
            text="The compiler makes one instruction, `fma.rn`, of the multiplication and the addition. It computes "
            "with the exact product and rounds the sum, so its error is half an ulp at most. A thread of `apply` has "
            "four numbers, so that four instructions that do not wait for one another are in flight.",
        ),
        Step(
            name="a b + c, intrinsics",
            shows=["SeparateRounding"],
            text="These two functions are never fused: the product is rounded, then the sum. The flag `--fmad=false` "
            "has the same effect on a whole program. Here random numbers in [1, 2) are added, so the second rounding "
            "costs up to half an ulp more. NumPy rounds twice as well, hence all bits are the same as NumPy's.",
            compared_with="a b + c",
        ),
        Step(
            name="c = -a b",
            shows=["KINDS", "largest_error"],
            text="The kernel is that of the first step again, but `c` is now minus the *rounded* product. What is left "
            "is exactly what rounding the product has lost. The fused instruction finds it without an error. Rounded "
            "apart, the result is zero: none of its digits is right. `KINDS` says how the numbers are chosen, and "
            "`largest_error` measures errors in ulp.",
        ),
        Step(
            name="tiny a b, --ftz=true",
            shows=["Multiply"],
            text="With this flag, results below the smallest normal number of a float, `2^-126`, become zero. Without "
            "it they keep some of their digits, as numbers that are called subnormal.",
        ),
        Step(
            name="a / b",
            shows=["Divide"],
            text="A division has no single instruction: `div.rn` of PTX becomes a sequence of them that ends in a "
            "correct rounding. With `--prec-div=false` the sequence is shorter and may be off by 2 ulp.",
        ),
        Step(
            name="sqrt",
            shows=["SquareRoot"],
            text="The square root is a sequence as well. With `--prec-sqrt=false` it is an approximation.",
        ),
        Step(
            name="sin, fast math",
            shows=["Sine", "FOUR_FLAGS"],
            text="`sinf` is a function of many instructions. With `--use_fast_math` it is one instruction of PTX, for "
            "the special-function unit, which none of the four flags alone would choose. `FOUR_FLAGS` are those that "
            "it is said to stand for.",
        ),
        Step(
            name="float",
            shows=["drift", "steps_of"],
            text="Steps of `x = x x + c` on the device and in NumPy, from the same start. Each step begins with the "
            "rounding errors of all steps before it. For `c = -1.9` a step makes a difference larger in most cases.",
        ),
    ],
    look_at=[
        "An error of at most 0.50 in the column 'ulp' is a correct rounding, the same bits on every machine that "
        "follows IEEE 754. The approximate functions are an exception: the simulator rounds them once, and a GPU's "
        "errors are larger, within the bounds of the PTX manual.",
        "On an H200 the division took 2.37 ms, and 1.07 ms with fast math; the sine took 3.65 ms and 1.07 ms. The "
        "largest error of the sine was 3.57 ulp with fast math, and 0.98 ulp without.",
        "In the second table, 'float, c mistaken' computes with -1.91 in place of -1.9. After 2 steps its difference "
        "is far above that of the right kernel, after 50 steps the two look the same.",
        "The row 'float, --fmad=false' has no difference at all: without fused multiply-adds the device and the CPU "
        "make the same roundings.",
    ],
    exercise=Exercise(
        task="The sign of `b b - 4 a c` tells whether a quadratic equation has two real roots, one or none. Where "
        "`b b` and `4 a c` are nearly equal, the kernel's result may have no right digit, and not even the right sign. "
        "Change it so that every result is right to 2 ulp. The numbers are doubles, so there is no longer type to go "
        "to. No product overflows.",
        hints=[
            "`fma(x, y, z)` rounds once. If `product` is the rounded value of `x * y`, what does "
            "`fma(-x, y, product)` compute? The functions `__dmul_rn` and `__dadd_rn` are never fused.",
        ],
        answer="A fused multiply-add finds what the rounding of `4 a c` has lost, which is itself a number of the "
        "type. Another one subtracts the rounded product from the exact `b b`. The two results are added. Multiplying "
        "by 4 loses nothing, since only the exponent changes. This way to compute a difference of two products is "
        "Kahan's. The function `__dmul_rn` makes sure that the product is rounded before it is used again.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
