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
    equations: Any = zip(*(map(Fraction, values.tolist()) for values in (a, b, c)), strict=True)
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
        results, expected = out.to_host(), exact(*equation)
        yield compare(f"{name}: the sign is right", np.sign(results), np.sign(expected))
        if expected.all():
            ulps = np.abs(results - expected) / np.spacing(np.abs(expected))
            yield at_most(f"{name}: the largest error is at most {ULPS} ulp", float(ulps.max()), ULPS)


LESSON = Lesson(
    why="On an H200, the `--use_fast_math` flag makes a sine 3.4 times as fast: 1.07 ms instead of 3.64 ms. Its "
    "largest error grows from 0.98 to 3.57 units in the last place. Whether that matters depends on your program, so "
    "you need to know how to measure it.\n\n"
    "It also helps to know why a GPU and a CPU give different results for the same code without either being wrong. "
    "After 50 steps of a simple recurrence they may have no digit in common. This lesson shows how to tell rounding "
    "errors from a bug.",
    learn=[
        "measure an error in ulp, units in the last place.",
        "explain why a fused multiply-add gives different bits from a separate multiplication and addition.",
        "say what each of the flags implied by `--use_fast_math` gives up, and what it saves.",
        "tell a bug from rounding errors by comparing results after a few steps.",
    ],
    idea="A float has 24 significant bits, so almost every result is rounded. An **ulp** is the distance from a number "
    "to the next number of the same type. A correctly rounded result has an error of at most half an ulp. The basic "
    "operations of IEEE 754 (addition, multiplication, division and square root) are correctly rounded on CPUs and "
    "GPUs alike.\n\n"
    "A GPU has one instruction for `a * b + c`, the **fused multiply-add**, which rounds only once. The compiler uses "
    "it wherever it can. The result is more accurate than with two roundings, but it is different. Compiler flags "
    "allow faster, less accurate instruction sequences for division, square roots and mathematical functions.\n\n"
    "The rule of thumb: bits differ, so compare with a tolerance in ulp. Compare after one or a few steps, before the "
    "errors have grown. Use fast-math flags only where you have measured the errors that they cause.",
    steps=[
        Step(
            name="a b + c",
            shows=["MultiplyAdd", "apply"],
            text="The compiler turns the multiplication and the addition into one instruction, `fma.rn`. It adds `c` "
            "to the exact product and rounds only the sum, so its error is at most half an ulp. Each thread of `apply` "
            "processes four elements, so that four independent instructions are in flight.",
        ),
        Step(
            name="a b + c, intrinsics",
            shows=["SeparateRounding"],
            text="These two intrinsics are never fused: the product is rounded, then the sum. The `--fmad=false` flag, "
            'as in `cuda.compile(source, options=["--fmad=false"])`, has the same effect on a whole program. The '
            "operands are random numbers in [1, 2), so the second rounding adds an error of up to half an ulp. NumPy "
            "also rounds twice, so the results match NumPy's bit for bit.",
            compared_with="a b + c",
        ),
        Step(
            name="c = -a b",
            shows=["KINDS", "largest_error"],
            text="The kernel is the same as in the first step, but `c` is now the negative of the *rounded* product. "
            "The exact result is therefore the error of that rounding, and the fused instruction computes it without "
            "any error. With two roundings, the result is zero, and none of its digits is right. `KINDS` specifies how "
            "the operands are chosen, and `largest_error` measures errors in ulp.",
        ),
        Step(
            name="tiny a b, --ftz=true",
            shows=["Multiply"],
            text="With this flag, results below `2^-126`, the smallest normal float, are **flushed to zero**. Without "
            "it they keep some of their digits, as **subnormal** numbers.",
        ),
        Step(
            name="a / b",
            shows=["Divide"],
            text="There is no single instruction for a division. The PTX instruction `div.rn` is compiled to a "
            "sequence of instructions that rounds its result correctly. With `--prec-div=false` the sequence is "
            "shorter, and its result may differ from the correctly rounded one by up to 2 ulp. The bound in the table "
            "is 2.50, because the 'ulp' column shows errors relative to the exact quotient: rounding adds half an ulp.",
        ),
        Step(
            name="sqrt",
            shows=["SquareRoot"],
            text="The square root is also a sequence of instructions. With `--prec-sqrt=false` it is an approximation.",
        ),
        Step(
            name="sin, fast math",
            shows=["Sine", "FOUR_FLAGS"],
            text="`sinf` takes many instructions. With `--use_fast_math` it becomes a single PTX instruction for the "
            "special-function unit. `FOUR_FLAGS` lists the flags that, according to NVIDIA's documentation, "
            "`--use_fast_math` implies. None of these four flags has this effect.",
        ),
        Step(
            name="float",
            shows=["drift", "steps_of"],
            text="The device and NumPy compute many steps of `x = x x + c` from the same starting values. Each step "
            "inherits the rounding errors of all the steps before it. For `c = -1.9`, a step usually magnifies any "
            "difference.",
        ),
    ],
    look_at=[
        "In the 'ulp' column, an error of at most 0.50 means correct rounding, and therefore the same bits on every "
        "machine that follows IEEE 754. The approximate functions are an exception. The simulator rounds their results "
        "once, while a GPU has larger errors, within the bounds given in the PTX manual.",
        "On an H200, the division takes 2.37 ms, or 1.07 ms with fast math. Its largest error grows from 0.50 to 1.73 "
        "ulp.",
        "The limit of 33,454 Gops/s is for operations that take one instruction in single precision. Two instructions "
        "per operation, as with `--fmad=false`, can reach at most half of it. So can operations in double precision, "
        "whose instructions an H200 executes at half the rate. The rows reach 43.2 % and 31.8 %.",
        "In the second table, the 'float, wrong c' row is for a kernel that uses -1.91 instead of -1.9. After 2 steps, "
        "its results differ from NumPy's far more than those of the correct kernel. After 50 steps, the two kernels "
        "look equally wrong.",
        "The 'float, --fmad=false' row shows no difference at all. Without fused multiply-adds, the device and the CPU "
        "round identically.",
        "In the 'float, NumPy in double' row, the device computes in float and NumPy in double. The other rows of the "
        "second table use the same type on both sides.",
    ],
    exercise=Exercise(
        task="The sign of `b b - 4 a c` tells you whether a quadratic equation has two real roots, one or none. If `b "
        "b` and `4 a c` are nearly equal, the kernel's result may not have a single correct digit, or even the right "
        "sign. Change the kernel so that every result is accurate to 2 ulp. The elements are doubles, so a wider type "
        "is not available. No product overflows.",
        hints=[
            "The large error comes from rounding the product `4 a c` before it is subtracted. Can you compute how much "
            "that rounding has lost?",
            "`fma(x, y, z)` rounds once. If `product` is the rounded value of `x * y`, what is `fma(-x, y, product)`?",
            "Compute `fma(b, b, -product)` and add what was lost. Use `__dmul_rn` for the product, so that it is not "
            "fused with anything.",
        ],
        answer="A fused multiply-add computes what the rounding of `4 a c` has lost, which a double can represent "
        "exactly. Another one subtracts the rounded product from the exact `b b`. The sum of the two results is the "
        "discriminant. Multiplying by 4 loses nothing, since only the exponent changes. This method for a difference "
        "of two products is due to Kahan. The `__dmul_rn` intrinsic ensures that the product is rounded before it is "
        "used again.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
