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
    """Evaluate polynomials with integer values, which floats represent exactly; count loads and stores."""
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
            f"{size} elements: the values of a polynomial, with coefficients up to x^{count - 1}",
            values.to_host(),
            expected,
        )
        warps = blocks_for(size, WARP)
        fact = f"{size} elements: a warp loads its elements once, and each coefficient once"
        yield at_most(fact, counted["loads"], warps * (1 + count))
        yield at_most(f"{size} elements: a warp stores its values once", counted["stores"], warps)


LESSON = Lesson(
    why="Suppose you apply a function to every element of an array 256 times. The obvious program launches a kernel "
    "256 times, and on an H200 it takes 325 ms. Move the loop into the kernel and it takes 86 ms, for the same "
    "arithmetic.\n\n"
    "The difference is memory traffic. Each of the 256 launches reads the arrays and writes one of them back, only for "
    "the next launch to read it again. This stop removes that traffic, and then asks what limits the kernel once it is "
    "gone.",
    learn=[
        "say why many passes over an array belong in one launch (kernel fusion).",
        "keep a value in a register during a loop, and explain why the compiler cannot do so for `a[i] = f(a[i], "
        "b[i])`.",
        "tell whether memory or the arithmetic units limit a kernel.",
        "say what `--use_fast_math` replaces, how much time it saves, and where its results are wrong.",
    ],
    idea="A **register** belongs to one thread, and instructions can use it without waiting. Device memory is hundreds "
    "of cycles away, and all threads share its bandwidth. A value that is needed again should stay in a register, but "
    "registers last only as long as their thread. So the loop must be inside the kernel.\n\n"
    "The compiler keeps local variables in registers. It cannot do that for `a[i]` inside a loop that also reads "
    "`b[i]`: both pointers might point to the same array (they may **alias**), so a store through one may change what "
    "the other reads.\n\n"
    "With memory out of the way, arithmetic is the limit. `sinf`, `cosf` and `powf` are sequences of ordinary "
    "instructions. Under `--use_fast_math`, sine, cosine and square root become single instructions of the "
    "**special-function units**, which are fast and less accurate.\n\n"
    "The rule of thumb: load once, compute as much as you can in local variables, store once.",
    steps=[
        Step(
            name="256 launches",
            shows=["Pow", "f", "map_once<Pow>"],
            text="Each thread applies `f` to one element. Every launch reads both arrays and writes one, although the "
            "next launch needs the same values again.",
        ),
        Step(
            name="loop in registers",
            shows=["Pow", "f", "map_loop<Pow>"],
            text="One launch. Each thread reads its two elements into variables before the loop and writes the result "
            "after it. The arrays pass through memory once instead of 256 times.",
        ),
        Step(
            name="c * c for pow(c, 2)",
            shows=["Product", "f", "map_loop<Product>"],
            text="`powf` handles any exponent and needs many instructions. `c * c` needs only one. Now that memory is "
            "out of the way, fewer instructions mean less time.",
        ),
        Step(
            name="in memory, fast math",
            shows=["f", "map_memory<Product>"],
            text="The obvious way to write the loop, compiled with `--use_fast_math`. The compiler has to store `a[i]` "
            "and reload `b[i]` in every pass, since the two arrays might be the same.",
        ),
        Step(
            name="in registers, fast math",
            shows=["f", "map_loop<Product>"],
            text="The same loop on local variables. No loads or stores are left inside it.",
        ),
    ],
    look_at=[
        "Without a GPU, the table shows the loads and stores per warp. In each pass, the variant with 256 launches "
        "loads two elements and stores one, and the loop in memory loads one and stores one. The loop in registers "
        "loads two elements and stores one in total.",
        "With precise functions, an H200 takes 499 ms for 256 launches and 414 ms for the loop, so most of the time "
        "goes to arithmetic. With fast math, the times are 325 ms and 86 ms. Now most of the time of the 256 launches "
        "goes to memory traffic.",
        "`in memory, fast math` and `in registers, fast math` take the same time on an H200. Both reach 96 % of the "
        "peak rate of the special-function units, because the loads and stores of the former overlap with the work of "
        "these units.",
        "`pow, fast math` is wrong on purpose. Fast math computes a power from the logarithm of its base, and a "
        "negative number has no logarithm.",
        "In the table of whole programs, the 'in phases' program allocates, copies in, computes and copies out, one "
        "phase after another. On an H200, copies and allocation take 59 of its 145 ms. The 'in pieces' program copies "
        "and computes at the same time, and takes 90 ms.",
    ],
    exercise=Exercise(
        task="The kernel evaluates a polynomial for each of `n` elements, from the highest coefficient down (Horner's "
        "rule). Change it so that every warp loads its elements once and stores its values once, for any number of "
        "coefficients. It may load one coefficient per pass.",
        hints=[
            "Why does the compiler not keep `values[i]` and `x[i]` in registers? Which of the arrays might overlap, as "
            "far as it knows?",
            "A store through a pointer cannot change a local variable whose address is never taken.",
            "Read `x[i]` into one variable before the loop, let another hold the value, and store it after the loop.",
        ],
        answer="The element is read into a variable before the loop, and the value lives in a second variable until "
        "it is stored. No pointer points to these variables, so no store can change them, and they stay in registers. "
        "All lanes read the same coefficient, so that load fetches a single sector.",
        check=check,
    ),
    course="The times in the 'course ms' column are from lectures on GPU programming. They were measured on a T1000 "
    "and on a V100, with fast math. The times in the 'NumPy, scaled' row were measured on CPUs with 6 and 20 cores. In "
    "the table of whole programs, the rows that begin with 'course' were measured on the same cards.",
)
