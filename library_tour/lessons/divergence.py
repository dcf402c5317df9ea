"""The lesson of `divergence`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, BLOCK, PASSES = 4, 256, 64


def reference(x: np.ndarray[tuple[int], np.dtype[np.float32]]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Halve the numbers of even index and add one, again and again; subtract one from the others as often."""
    even = np.arange(x.size) % 2 == 0
    for _ in range(PASSES):
        x = np.where(even, x * np.float32(0.5) + np.float32(1), x - np.float32(1))
    return x


def check(answer: cuda.Module) -> Iterator[Check]:
    """Compute all numbers; count the lanes that are active in an instruction."""
    x = np.random.default_rng(5).integers(-999, 1000, BLOCKS * BLOCK).astype(np.float32)
    out = poisoned(x.size, np.float32)
    launch = answer["two_ways"][BLOCKS, BLOCK].bind(cuda.to_device(x), out, PASSES)
    counted = counters.count(launch, ["active lanes"])
    yield compare(f"{x.size:,} numbers, each by its own rule", out.to_host(), reference(x), 1e-3)
    idle = 32 - float(counted["active lanes"])
    yield at_most("fewer than one lane of 32 is idle, in the mean of all instructions", idle, 0.99)


LESSON = Lesson(
    learn=[
        "A warp executes one instruction at a time, so a branch that its lanes take differently costs both sides.",
        "Which conditions on `threadIdx` split warps, in blocks of one and of two dimensions.",
        "Why a short branch costs nothing of that kind: the compiler selects a value instead.",
    ],
    steps=[
        Step(
            name="8 functions, by lane",
            shows=["apply", "ByLane", "choose<ByLane>"],
            text="Each thread applies one of eight functions, which `threadIdx.x % 8` picks. Every warp has threads "
            "for each of them, and executes all eight, with four lanes at a time.",
        ),
        Step(
            name="8 functions, by warp",
            shows=["ByWarp", "choose<ByWarp>"],
            text="The same eight functions, which the number of the warp picks. All lanes of a warp agree, and it "
            "executes one function.",
        ),
        Step(
            name="two sides of an if",
            shows=["Even", "First", "EvenRow", "FirstRow", "sides"],
            text="Conditions on the index of a thread. `threadIdx.x % 2` splits every warp; `threadIdx.x < s` splits "
            "at most one, and none where `s` is a multiple of 32. Threads are numbered along x first, so a warp of a "
            "block of 16 x 16 has two rows.",
            compared_with="8 functions, by lane",
        ),
        Step(
            name="x % 2, selected",
            shows=["select"],
            text="The loop has only one pass. Both sides are one multiply-add, and the compiler lets each thread "
            "select its factor: no thread branches.",
        ),
    ],
    look_at=[
        "The column 'active lanes': with eight functions by lane, four lanes of 32 work at a time, and the warp "
        "executes about eight times the instructions.",
        "The rows of the second table that have all lanes active are those whose condition is the same for a whole "
        "warp.",
        "In the last table, the selected branch has all lanes active, though its condition splits every warp.",
    ],
    exercise=Exercise(
        task="Numbers of even index follow one rule, and those of odd index another. Thread `i` computes number `i`, "
        "so every warp executes both rules. Let each thread take another number, so that the lanes of a warp follow "
        "the same rule. A block has 256 threads and computes 256 numbers.",
        hints=[
            "Let the first half of the block's warps take the even numbers and the second half the odd ones. Which "
            "number does a thread of each half take?",
        ],
        answer="The first 128 threads take the numbers of even index, the others those of odd index, so the condition "
        "is the same within a warp. The price is a stride of two in memory: each load uses half of the bytes that it "
        "moves. Where the rules take long, as here, that is the smaller price.",
        check=check,
    ),
    course="4.61 s for one function and 8.61 s for eight, picked by `threadIdx.x % 8`, are of a course's 256 launches "
    "over 2^28 numbers, on a T1000.",
)
