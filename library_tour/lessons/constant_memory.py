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
    """Write the host's weights and levels into the answer's variables; filter, and count where a warp reads them."""
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
        yield compare(f"{size:,} numbers are decoded and filtered", out.to_host(), expected)
        warps = blocks * BLOCK // 32
        fact = f"{size:,} numbers: a warp reads constant memory at one address at a time, {TAPS} times at most"
        yield at_most(fact, counted["constants"], TAPS * warps)
        fact = f"{size:,} numbers: a warp makes {TAPS} loads of codes from global memory, and {TAPS} others at most"
        yield at_most(fact, counted["loads"], 2 * TAPS * warps)


LESSON = Lesson(
    learn=[
        "What constant memory is good for: words that all threads read and that the host writes before the launch.",
        "Why a coefficient in constant memory costs no load, and why an argument by value is as good.",
        "Why constant memory is the wrong place for a table if each lane reads another word of it.",
    ],
    steps=[
        Step(
            name="global memory",
            shows=["horner", "polynomial_global"],
            text="A thread computes a polynomial of one number. Each term takes one multiply-add and one coefficient, "
            "which is loaded into a register of each lane before it is used: there is a load for each term.",
        ),
        Step(
            name="shared memory",
            shows=["horner", "polynomial_shared"],
            text="Each block copies the coefficients to shared memory once. The loads are nearer, but there is still "
            "one for each term.",
        ),
        Step(
            name="constant memory",
            shows=["constant_coefficients", "horner", "polynomial_constant"],
            text="The pointer to the coefficients is gone from the parameters: they are a `__constant__` variable, "
            "which the host writes through `module.symbol`. The same word goes to all lanes, so an instruction takes "
            "it as an operand, and the loop has no loads left.",
            compared_with="global memory",
        ),
        Step(
            name="argument by value",
            shows=["Coefficients", "horner", "polynomial_argument"],
            text="The coefficients are an argument. Arguments lie in constant memory too, so the instructions are "
            "those of the step before, and each launch can have coefficients of its own.",
        ),
        Step(
            name="registers, 8 numbers each",
            shows=["polynomial_registers"],
            text="Another way with no constant memory: a thread computes 8 numbers, and each coefficient that it "
            "loads from global memory is used 8 times.",
            compared_with="global memory",
        ),
        Step(
            name="constant table, 32 words",
            shows=["constant_table", "sum_of_places", "look_up_constant"],
            text="Now each lane reads another word of a table. The constant cache gives one word at a time, so a warp "
            "that asks for 32 words waits for 32 reads.",
        ),
        Step(
            name="shared table, 32 words",
            shows=["sum_of_places", "look_up_shared"],
            text="The same table in shared memory: 32 words in 32 banks come at once.",
        ),
    ],
    look_at=[
        "The column 'loads': with constant memory a warp loads nothing but its numbers. With global memory it makes "
        "256 loads more, one for each term.",
        "The column 'constants' counts reads of constant memory at an address that is known only at run time. It is "
        "32 times as large for a table of which a warp reads 32 words as for one of which it reads one.",
        "On an H200 the table of 32 words takes 33 ms in constant memory, 0.6 ms in shared memory and 0.9 ms in "
        "global memory, where the L1 cache holds it.",
        "On an H200 the polynomial of 256 terms takes 4.2 ms with coefficients in global memory and 1.7 ms with "
        "those in constant memory. With 4 terms there is next to no difference, since reading and writing the numbers "
        "takes longer than the terms.",
    ],
    exercise=Exercise(
        task="A signal is stored as codes of one byte. The kernel looks up the level of each code in a table of 32 "
        "levels, and computes from 5 neighbouring levels their sum with 5 weights. The host writes the variables "
        "`weights` and `levels` before the launch. Both are in the wrong memory: put each where it belongs, and keep "
        "both names.",
        hints=[
            "Which of the two do all lanes of a warp read at the same index, and which one at an index that depends "
            "on the lane's data?",
        ],
        answer="All lanes use the same weight at the same time, so the weights belong in constant memory, where the "
        "unrolled loop takes them as operands. Each lane looks up a level of its own, so the levels lie in a "
        "`__device__` variable, and each block copies them to shared memory. To read them from global memory through "
        "the L1 cache would pass the check, too.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
