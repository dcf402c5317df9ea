"""The lesson of `constant_memory`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK = 128
TAPS, LEVELS = 5, 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Write weights and levels to the answer's variables, filter a signal, and count the memory reads."""
    rng = np.random.default_rng(5)
    for size in (1024, 500):
        # Small integers, whose products and sums are exact.
        weights, levels = (rng.integers(-9, 10, count).astype(np.float32) for count in (TAPS, LEVELS))
        codes = rng.integers(0, LEVELS, size + TAPS - 1, np.uint8)
        answer.symbol("weights").copy_from(weights)
        answer.symbol("levels").copy_from(levels)
        out = poisoned(size, np.float32)
        blocks = blocks_for(size, BLOCK)
        launch = answer["decode_and_filter"][blocks, BLOCK].bind(cuda.to_device(codes), out, size)
        counted = counters.count(launch, ["loads", "constants"])
        expected = np.convolve(levels[codes], weights[::-1], "valid").astype(np.float32)
        yield compare(f"{size:,} elements are decoded and filtered", out.to_host(), expected)
        warps = blocks * BLOCK // 32
        fact = f"{size:,} elements: a warp reads constant memory at most {TAPS} times, at one address each"
        yield at_most(fact, counted["constants"], TAPS * warps)
        fact = f"{size:,} elements: a warp loads codes from global memory {TAPS} times, and at most {TAPS} other words"
        yield at_most(fact, counted["loads"], 2 * TAPS * warps)


LESSON = Lesson(
    why="Filters, polynomials and stencils use a few coefficients that are the same for all threads. The speed of a "
    "kernel depends on where they are stored. On an H200, a polynomial with 256 terms takes 4.24 ms with its "
    "coefficients in global memory, and 1.67 ms with its coefficients in constant memory.\n\n"
    "Used for the wrong data, constant memory is a trap. When each thread looks up a different word of a table, the "
    "look-ups take 33 ms in constant memory and 0.6 ms in shared memory.",
    learn=[
        "say which data belongs in constant memory, and which does not.",
        "put coefficients into a `__constant__` variable or pass them as an argument by value.",
        "choose the right memory for a table whose index depends on the data.",
    ],
    idea="Threads run in groups of 32, called **warps**, and the threads of a warp are its **lanes**. A warp executes "
    "one instruction at a time, for all of its lanes.\n\n"
    "**Constant memory** holds up to 64 KiB of data that kernels can only read. The host writes it before the launch. "
    "Its cache broadcasts one word at a time to all lanes of a warp. An instruction can even take such a word as "
    "an operand, so a coefficient costs no load at all. But if the lanes need different words, the cache delivers them "
    "one after another, and a load may take 32 times as long. Kernel arguments are in constant memory too.\n\n"
    "The rule of thumb: use constant memory when all lanes read the same word at the same time. When each lane reads a "
    "different word, use shared memory, or global memory through the L1 cache.",
    steps=[
        Step(
            name="global memory",
            shows=["horner", "polynomial_global"],
            text="Each thread evaluates the polynomial for one element. Each term takes one multiply-add and one "
            "coefficient. Each lane must first load the coefficient into a register, so there is one load per term.",
        ),
        Step(
            name="shared memory",
            shows=["horner", "polynomial_shared"],
            text="Each block copies the coefficients to shared memory once. The data is closer, but there is still one "
            "load per term.",
        ),
        Step(
            name="constant memory",
            shows=["constant_coefficients", "horner", "polynomial_constant"],
            text="The coefficients are in a `__constant__` variable, which the host writes through `module.symbol`. "
            "The kernel no longer takes a pointer to them. Since all lanes need the same word, the multiply-add takes "
            "it as an operand, and the loop has no loads left.",
            compared_with="global memory",
        ),
        Step(
            name="argument by value",
            shows=["Coefficients", "horner", "polynomial_argument"],
            text="The coefficients are passed to the kernel by value. Arguments are in constant memory too, so the "
            "loop is the same. Each launch can have its own coefficients.",
        ),
        Step(
            name="8 elements per thread",
            shows=["polynomial_registers"],
            text="This version does without constant memory. Each thread computes eight elements. It loads each "
            "coefficient from global memory into a register once, and uses it eight times.",
            compared_with="global memory",
        ),
        Step(
            name="constant table, 32 words",
            shows=["constant_table", "sum_of_places", "look_up_constant"],
            text="Now each lane reads a different word of a table. The constant cache delivers one word at a time, so "
            "a warp that needs 32 words waits for 32 reads.",
        ),
        Step(
            name="shared table, 32 words",
            shows=["sum_of_places", "look_up_shared"],
            text="The same table is now in shared memory, which delivers all 32 words in one wavefront.",
        ),
    ],
    look_at=[
        "Look at the 'loads' column. With constant memory, a warp loads only its input elements. With global memory, "
        "it performs 256 more loads, one per term.",
        "The 'constants' column shows the number of reads of constant memory at addresses that are known only at run "
        "time. The number is 32 times as large when a warp reads 32 different words of the table as when it reads one.",
        "On the H200, looking up 32 different words takes 33 ms in constant memory, 0.6 ms in shared memory, and 0.9 "
        "ms in global memory, where the L1 cache holds the table.",
        "With 4 terms, it makes no difference on the H200 where the coefficients are stored: the kernel takes 0.401 ms "
        "with global memory and 0.398 ms with constant memory. Reading and writing the elements takes longer than "
        "computing the terms.",
    ],
    exercise=Exercise(
        task="A signal is stored as one-byte codes. The kernel looks up the level of each code in a table of 32 "
        "levels, and computes weighted sums of 5 adjacent levels. The host writes the variables `weights` and `levels` "
        "before the launch. Both are in the wrong memory. Put each variable where it belongs, but keep both names.",
        hints=[
            "Which of the two do all lanes of a warp read at the same index? Which one do they read at an index that "
            "depends on the data?",
            "Make `weights` a `__constant__` variable. Then `levels` has to move out of constant memory.",
            "Make `levels` a `__device__` variable. Let each block copy it to shared memory first, with a barrier "
            "before any thread reads it.",
        ],
        answer="All lanes use the same weight at the same time, so the weights belong in constant memory, where the "
        "unrolled loop takes them as operands. Each lane looks up a different level, so the levels are in a "
        "`__device__` variable, and each block copies them to shared memory. Reading them from global memory through "
        "the L1 cache would pass the check too.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
