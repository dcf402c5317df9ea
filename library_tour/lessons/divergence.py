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
    """Return x after all passes. Each maps x to x / 2 + 1 at even indices, and to x - 1 at odd ones."""
    even = np.arange(x.size) % 2 == 0
    for _ in range(PASSES):
        x = np.where(even, x * np.float32(0.5) + np.float32(1), x - np.float32(1))
    return x


def check(answer: cuda.Module) -> Iterator[Check]:
    """Compute all elements; count the lanes that are active per instruction."""
    x = np.random.default_rng(5).integers(-999, 1000, BLOCKS * BLOCK).astype(np.float32)
    out = poisoned(x.size, np.float32)
    launch = answer["two_ways"][BLOCKS, BLOCK].bind(cuda.to_device(x), out, PASSES)
    counted = counters.count(launch, ["active lanes"])
    yield compare(f"{x.size:,} elements, each by its own rule", out.to_host(), reference(x), 1e-3)
    idle = 32 - float(counted["active lanes"])
    yield at_most("fewer than one lane of 32 is idle, on average over all instructions", idle, 0.99)


LESSON = Lesson(
    why="A kernel in which each thread applies one of eight functions takes 2.58 ms on an H200 when all threads of a "
    "warp choose the same function. It takes 19.6 ms when adjacent threads choose different functions. The work per "
    "thread is the same in both cases.\n\n"
    "Branches are not slow in themselves. What matters is which threads take the same branch, and you can often "
    "control that by the way you assign indices to threads.",
    learn=[
        "tell whether a condition on `threadIdx` splits warps, in one-dimensional and in two-dimensional blocks.",
        "assign work to threads so that all lanes of a warp take the same branch.",
        "say when the compiler removes a branch, so that no warp diverges.",
    ],
    idea="A warp executes one instruction at a time, for all of its 32 lanes. When the lanes disagree on a condition, "
    "the warp executes both sides of the branch, one after the other. While it executes one side, the lanes that took "
    "the other side are idle. This is **divergence**, and the time is T(condition) + T(then) + T(else). When all 32 "
    "lanes agree, the warp executes only one side. Different warps do not wait for each other's branches.\n\n"
    "Threads are numbered along x first, and each group of 32 consecutive threads forms a warp. In a block of 16 x 16 "
    "threads, a warp consists of two rows of 16.\n\n"
    "The rule of thumb: let conditions depend on `threadIdx.x / 32` or on data that is the same for a whole warp, not "
    "on `threadIdx.x % n`.",
    steps=[
        Step(
            name="8 functions, by lane",
            shows=["element", "apply", "ByLane", "choose<ByLane>"],
            text="Each thread applies one of eight functions, picked by `threadIdx.x % 8`. `element()` returns the "
            "thread's index in the grid. Each function is picked by four lanes of every warp, so the warp executes all "
            "eight, with four lanes active at a time.",
        ),
        Step(
            name="8 functions, by warp",
            shows=["ByWarp", "choose<ByWarp>"],
            text="The same eight functions, picked by the index of the warp. All lanes of a warp agree, so the warp "
            "executes only one function.",
        ),
        Step(
            name="conditions of an if",
            shows=["Even", "First", "EvenRow", "FirstRow", "sides"],
            text="`threadIdx.x % 2` splits every warp. In a one-dimensional block, `threadIdx.x < s` splits at most "
            "one warp, and none if `s` is a multiple of 32. In a block of 16 x 16 threads, `threadIdx.y % 2` also "
            "splits every warp, since each warp consists of two rows. In a block of 32 x 8 threads, it splits none.",
            compared_with="8 functions, by lane",
        ),
        Step(
            name="x % 2, selected",
            shows=["select"],
            text="Each side is a single multiply-add. The compiler lets each thread select its factor instead of "
            "branching, so no warp diverges.",
        ),
    ],
    look_at=[
        "The 'active lanes' column shows how many lanes take part in an instruction on average; the ideal is 32. When "
        "eight functions are picked by lane, it is about 4.2, and the warps execute about eight times as many "
        "instructions.",
        "In the second table, about 32 lanes are active in every row whose condition splits no warp.",
        "In the last table, all lanes are active in the 'x % 2, selected' row, although the lanes of every warp "
        "disagree on its condition. In the 'x % 2, in loops' row, 24.4 lanes are active on average, because about half "
        "of the instructions are outside the branch.",
        "On the page with pictures, a plot shows when divergence matters. On an H200, with one multiply-add per "
        "function, eight functions take only twice as long as one, because most of the time goes into memory accesses, "
        "which do not diverge. With 512 multiply-adds, they take 7.7 times as long.",
        "A row such as '16 x 16: x < 8' names the block size and then the condition. Where there is no block size, a "
        "block has 256 threads in one dimension.",
    ],
    exercise=Exercise(
        task="Elements with an even index follow one rule, and elements with an odd index follow another. Thread `i` "
        "computes element `i`, so every warp executes both rules. Change the kernel so that no warp diverges, for "
        "example by assigning the elements to threads differently. A block has 256 threads and computes 256 elements.",
        hints=[
            "You may choose the element that a thread computes, as long as each element is computed once.",
            "Let the first half of the warps of a block take the even elements, and the second half the odd ones.",
            "The `k`-th thread of each half takes element `2 * k` or `2 * k + 1` of the block.",
        ],
        answer="The first 128 threads take the elements with an even index, and the other threads take the elements "
        "with an odd index. All lanes of a warp now agree on the condition. The price is a stride of two in memory: "
        "each load uses only half of the bytes that it fetches. When the rules take as long as they do here, that "
        "costs less than divergence.",
        check=check,
    ),
    course="The lectures on which the tour is based report 4.61 s for one function, and 8.61 s for eight functions "
    "picked by `threadIdx.x % 8`. Each time is for 256 launches over 2^28 elements on a T1000.",
)
