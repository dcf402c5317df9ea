"""The lesson of `crank_nicolson`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

SYSTEMS, UNKNOWNS = 5, 32
MOST_INSTRUCTIONS = 400


def check(answer: cuda.Module) -> Iterator[Check]:
    """Solve rings of the heat equation, and rings whose rows all differ; count instructions.

    In a long step, the matrix is barely diagonally dominant, so the terms that close the ring cannot be neglected.
    """
    random = np.random.default_rng(5)
    shape = (SYSTEMS, UNKNOWNS)
    cases = (("a heat-equation step", 5, 0.0), ("a long heat-equation step", 50, 0.0), ("rows that differ", 5, 1.0))
    for name, weight, vary in cases:
        down, up = -weight - vary * random.random((2, *shape))
        middle = 1 - down - up + vary * random.random(shape)
        right = random.random(shape)
        before, after = (np.roll(np.eye(UNKNOWNS), by, axis=1) for by in (-1, 1))
        matrices = down[..., None] * before + middle[..., None] * np.eye(UNKNOWNS) + up[..., None] * after
        expected = np.linalg.solve(matrices, right[..., None])[..., 0].astype(np.float32)
        x = poisoned(shape, np.float32)
        arrays = [cuda.to_device(array.astype(np.float32)) for array in (down, middle, up, right)]
        counted = counters.count(answer["solve_ring"][SYSTEMS, 32].bind(*arrays, x), ["instructions"])
        yield compare(f"{name}: the unknowns of {SYSTEMS} rings", x.to_host(), expected, 1e-4)
        fact = f"{name}: a warp solves a ring in at most {MOST_INSTRUCTIONS} instructions"
        yield at_most(fact, counted["instructions"], MOST_INSTRUCTIONS * SYSTEMS)


LESSON = Lesson(
    why="Some algorithms are a **dependency chain**: each operation needs the result of the one before. Elimination in "
    "a tridiagonal system is such a chain. With one thread per system, 10,000 time steps of 64 systems take 225 ms on "
    "an H200, because almost the whole device is idle. A different algorithm with *more* operations takes 13 ms, since "
    "its operations can run in parallel. Applied within the registers of one warp, without barriers, the same idea "
    "takes 1.7 ms. That is 135 times as fast as the first version.\n\n"
    "NVIDIA's cuSPARSE library, called once per time step, takes 82 ms. It solves tridiagonal systems in general; this "
    "problem is a special case. For your own systems, start with that function, `libraries.solve_tridiagonal`, which "
    "the stop calls for its last row. Write a kernel if many steps solve small systems with the same matrix, as here.",
    learn=[
        "explain why elimination row by row is a chain that more threads cannot shorten.",
        "solve a tridiagonal system of n rows in about log2(n) levels by cyclic reduction, and say what each "
        "level costs.",
        "say why a warp that keeps its rows in registers is faster than a block with a barrier after each level.",
        "move work that depends only on the matrix out of the time loop.",
    ],
    idea="Option prices obey a diffusion equation. Let F be the price of a put option at time t, and x = ln S the "
    "logarithm of the share price. The scaled price u = e^(r (T - t)) F satisfies the first equation below. It is "
    "computed backwards in time, starting at time T, when the option expires, with its payoff max(K - S, 0). The "
    "Crank-Nicolson scheme replaces the derivatives with respect to x by the mean of their values at the two ends of a "
    "step:\n\n"
    "```\n"
    "sigma^2 / 2 u_xx + mu u_x = -u_t,  mu = r - sigma^2 / 2\n"
    "A u_new = (2 - A) u_old, or: A v = u_old and u_new = 2 v - u_old\n"
    "row of A: m - s, 1 + 2 s, -m - s;  s = sigma^2 dt / (4 dx^2), m = mu dt / (4 dx)\n"
    "```\n\n"
    "So each time step solves a **tridiagonal system** A v = u_old, in which each row contains one unknown and its two "
    "neighbours. At the two ends of the grid, v is known. These boundary values are the `edges` in the code: one per "
    "step, or a single one for all steps. The lectures use the payoff there, and the Black-Scholes formula gives exact "
    "values.\n\n"
    "The steps must run one after another. So within a step, the number of operations matters less than the length of "
    "the longest chain of dependent operations. The limit is **latency**, and more threads help only if they shorten "
    "the chain.\n\n"
    "Reduction shortens it. If each row eliminates the unknowns of both neighbours, its new neighbours are two rows "
    "away, then four, then eight. After log2(n) levels, only its own unknown is left. Each level ends with an exchange "
    "between threads. In a block, the exchange takes shared memory and a barrier. In a warp, it takes a **shuffle**, "
    "which is several times faster.\n\n"
    "The rule of thumb: when latency is the limit, count the levels and the exchanges between them, not the "
    "operations. Then let each thread do as much as it can on its own.",
    steps=[
        Step(
            name="one thread per system",
            shows=["Matrix", "thomas"],
            text="This is Gaussian elimination, which is called the Thomas algorithm when there are three diagonals. "
            "Each row needs the row before it and, during back substitution, the unknown of the row after it. There "
            "are as few operations as possible, but each waits for the one before, and 64 systems keep only 64 threads "
            "busy. In single precision, `reciprocal` is the hardware's approximation of 1 / x.",
        ),
        Step(
            name="cyclic reduction",
            shows=["Rows", "steps_of_block", "cyclic_reduction"],
            text="Each block solves one system, with one thread per row. At each level, every other remaining row "
            "eliminates the unknowns of both neighbours from its equation, so half of the rows remain. Back "
            "substitution then solves the other rows, each of which has only one unknown left. The remaining rows are "
            "at strides of 2, 4, 8 and so on. These strides cause bank conflicts in shared memory.",
        ),
        Step(
            name="parallel reduction",
            shows=["reduce", "parallel_reduction"],
            text="Now *every* row eliminates the unknowns of its neighbours at each level. After log2(n) levels, each "
            "row contains only its own unknown, so there is no back substitution. That is more work, n log2(n) row "
            "operations, but half as many levels, and adjacent threads access adjacent rows.",
        ),
        Step(
            name="parallel, permuted",
            shows=["reduce", "permuted_reduction"],
            text="The operations are the same, but after each level the even rows move to the first half and the odd "
            "rows to the second. The neighbours of a row are then always next to it. The moves themselves cause bank "
            "conflicts.",
        ),
        Step(
            name="one warp, eliminating",
            shows=["LaneRows", "eliminate", "solve", "steps_of_warp", "warp_eliminating"],
            text="Each warp solves one system, and each lane keeps eight of the system's rows in registers. A lane "
            "eliminates seven of its unknowns without the help of other lanes. The remaining 32 rows, one per lane, "
            "are solved by parallel reduction in five levels of shuffles. No block-wide barrier is needed.",
        ),
        Step(
            name="one warp, factored",
            shows=["Factors", "solve", "steps_of_warp", "warp_factored"],
            text="The matrix is the same in every time step. So everything that depends on the matrix alone (the "
            "multiples of the rows) is computed before the first step and stays in registers. A step applies these "
            "multiples to the right-hand side only, and its chain contains no reciprocal.",
        ),
    ],
    look_at=[
        "On the simulator, the columns show totals over all systems for a few steps. Parallel reduction executes more "
        "instructions than cyclic reduction but has no bank conflicts. One warp per system executes the fewest "
        "instructions of all. The cuSPARSE row has no counters, because the simulator does not count library calls.",
        "On an H200, 10,000 steps of 64 systems with 256 cells each take 225 ms with one thread per system, 20 ms with "
        "cyclic reduction and 13 ms with parallel reduction. One warp per system takes 3.1 ms if it repeats the "
        "elimination in each step, and 1.7 ms if it keeps the factors.",
        "On the same H200, cuSPARSE takes 82 ms. It solves one step per call, so the unknowns go through memory in "
        "each step, and it does not know that all rows of a matrix have the same three coefficients.",
        "In single precision, the largest error in a price is 3.7e-03 with the 256 steps that this part of the lesson "
        "takes on the simulator. With the 10,000 steps that it takes on a GPU, the error is 1.5e-03, both on the "
        "simulator and on an H200.",
        "In the convergence plot, on the page with pictures, the double-precision error with exact boundary values "
        "falls with the square of the number of cells. With the boundary values from the lectures, the error is the "
        "same on every grid.",
    ],
    exercise=Exercise(
        task="Solve tridiagonal systems whose ends are joined, as for heat flow in a ring: the neighbours of row 0 are "
        "rows 31 and 1. Each warp solves one system of 32 unknowns, with one row per lane. The solution must be exact "
        "except for rounding, and a warp may execute at most 400 instructions.",
        hints=[
            "At the first level, a row eliminates the unknowns of the rows one lane away. It then depends on the "
            "unknowns two lanes away, then four, and so on. Count lanes modulo 32. On which unknowns does a row depend "
            "after five levels?",
            "`__shfl_sync(ALL, x, lane)` reads `x` from any lane. A ring needs no special case at its ends if "
            "you compute the lane modulo 32.",
            "For the row before, the multiple is `a` times the reciprocal of that row's `b`. Subtract that "
            "multiple of the row before, and the corresponding multiple of the row after, from your own row. After "
            "five levels all three coefficients belong to your own unknown.",
        ],
        answer="Parallel reduction needs no special case in a ring: every row has two neighbours at each level, and "
        "`__shfl_sync` reads them from the lanes before and after it, modulo 32. After five levels, the neighbours are "
        "32 lanes away and are thus the row itself. All three coefficients then belong to its own unknown, which is "
        "the right-hand side divided by their sum. The given kernel, which repeats a simple pass, would need hundreds "
        "of passes, because a value travels only one lane per pass.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic. The option, the scheme and the "
    "boundary values come from them.",
)
