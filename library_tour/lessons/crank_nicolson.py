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
    """Solve rings of the heat equation, and rings whose rows all differ; count instructions."""
    random = np.random.default_rng(5)
    shape = (SYSTEMS, UNKNOWNS)
    for name, vary in (("a step of heat", 0.0), ("rows that differ", 1.0)):
        down, up = -5 - vary * random.random((2, *shape))
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
    why="Some algorithms are a chain: each operation needs the result of the one before. Elimination in a "
    "tridiagonal system is such a chain, and 10,000 time steps of 64 systems take an H200 225 ms with one thread "
    "per system, because almost the whole device waits. A different algorithm with *more* operations takes 13 ms, "
    "since its operations can run side by side. The same idea kept in the registers of one warp, without "
    "barriers, takes 1.7 ms: 135 times faster than the first version.\n\n"
    "The vendor's library, called once per time step, takes 82 ms here. It is general; this problem is not.",
    learn=[
        "explain why elimination row by row is a chain that more threads cannot shorten.",
        "solve a tridiagonal system of n rows in about log2(n) levels by cyclic reduction, and say what each "
        "level costs.",
        "say why a warp that keeps its rows in registers is faster than a block with a barrier after each level.",
        "move work that depends only on the matrix out of the time loop.",
    ],
    idea="Prices of options obey a diffusion equation. The Crank-Nicolson scheme turns each time step into a "
    "**tridiagonal system**: each row holds one unknown and its two neighbours. The steps follow one another, so "
    "within a step the question is not how many operations there are but how long the longest chain of dependent "
    "operations is. This is **latency**, and more threads help only if they shorten the chain.\n\n"
    "Reduction shortens it. If each row eliminates the unknowns of both neighbours, its new neighbours are two "
    "rows away, then four, then eight. After log2(n) levels nothing is left but its own unknown. Each level ends "
    "with an exchange between threads. In a block that is a barrier and shared memory; in a warp it is a "
    "**shuffle**, which is several times faster.\n\n"
    "The rule of thumb: when latency is the limit, count the levels and what separates them, not the operations. Then "
    "let each thread do as much as it can alone.",
    steps=[
        Step(
            name="one thread per system",
            shows=["Matrix", "thomas"],
            text="Gaussian elimination, called Thomas's algorithm for three diagonals. Each row needs the row "
            "before it and, in the back substitution, the unknown of the row after it. There are as few operations as "
            "possible, but each waits for the one before, and 64 systems occupy only 64 threads.",
        ),
        Step(
            name="cyclic reduction",
            shows=["Rows", "steps_of_block", "cyclic_reduction"],
            text="A block has one system, and a thread one row. At each level, every second of the remaining rows "
            "eliminates the unknowns of both neighbours from its equation, so half of the rows remain. In the back "
            "substitution each of the other rows has one unknown. The remaining rows lie at strides of 2, 4, 8 and so "
            "on, which cause bank conflicts in shared memory.",
        ),
        Step(
            name="parallel reduction",
            shows=["reduce", "parallel_reduction"],
            text="Now *every* row eliminates the unknowns of its neighbours at each level. After log2(n) levels "
            "each row contains only its own unknown, so there is no back substitution. That is more work, n log2(n) "
            "row operations, but half as many levels, and neighbouring threads use neighbouring rows.",
        ),
        Step(
            name="parallel, permuted",
            shows=["reduce", "permuted_reduction"],
            text="The same operations. After each level the even rows move to the first half and the odd rows to "
            "the second, so that the neighbours of a row are always next to it. The moves themselves have bank "
            "conflicts.",
        ),
        Step(
            name="one warp, eliminating",
            shows=["LaneRows", "eliminate", "solve", "steps_of_warp", "warp_eliminating"],
            text="A warp has one system, and each lane keeps eight of its rows in registers. A lane eliminates "
            "seven of its unknowns without any other lane. The remaining 32 rows, one per lane, are solved by "
            "parallel reduction in five levels of shuffles. No block-wide barrier is needed.",
        ),
        Step(
            name="one warp, factored",
            shows=["Factors", "solve", "steps_of_warp", "warp_factored"],
            text="The matrix is the same in every time step. Everything that depends on the matrix alone is "
            "computed before the first step and stays in registers. A step applies these multiples to the right-hand "
            "side only, and has no reciprocal in its chain.",
        ),
    ],
    look_at=[
        "On the simulator, the columns count what all systems take for a few steps. Parallel reduction has "
        "more instructions than cyclic reduction and no bank conflicts, and one warp per system has the fewest "
        "instructions of all.",
        "On an H200, 10,000 steps of 64 systems with 256 cells take 225 ms with one thread per system, 20 ms "
        "by cyclic reduction, 13 ms by parallel reduction, 3.1 ms with one warp that eliminates anew in each step, "
        "and 1.7 ms with one warp that keeps its factors.",
        "On the same H200 cuSPARSE takes 82 ms. It solves one step per call, so the unknowns go through memory "
        "in each step, and it does not know that all rows of a matrix have the same three coefficients.",
        "In the picture of convergence, the error in double precision with exact boundary values falls with the "
        "square of the number of cells. With the boundary values of the lectures it stays the same on any grid.",
    ],
    exercise=Exercise(
        task="Solve tridiagonal systems whose ends are joined, such as heat in a ring: the neighbours of row 0 are "
        "rows 31 and 1. A warp has one system of 32 unknowns, and a lane has one row. Solve it exactly except for "
        "rounding, in at most 400 instructions of the warp.",
        hints=[
            "At the first level a row eliminates the unknowns of the rows one lane away, and then depends on "
            "those two lanes away, then four. Count lanes modulo 32. On which unknowns does a row depend after five "
            "levels?",
            "`__shfl_sync(ALL, x, lane)` reads `x` from any lane. A ring needs no special case at its ends if "
            "you compute the lane modulo 32.",
            "For the row before, the multiple is `a` times the reciprocal of that row's `b`. Subtract that "
            "multiple of the row before, and the corresponding multiple of the row after, from your own row. After "
            "five levels all three coefficients belong to your own unknown.",
        ],
        answer="Parallel reduction needs no special case in a ring: every row has two neighbours at each level, and "
        "`__shfl_sync` reads them from the lanes before and after it, modulo 32. After five levels they are 32 lanes "
        "away, which is the row itself. All three coefficients then belong to its own unknown, and their sum divides "
        "the right-hand side. Repeating a simple pass instead would take hundreds of passes, because a value travels "
        "only one lane in each.",
        check=check,
    ),
    course="The lectures give no times for this topic. The option, the scheme and the boundary values are those of "
    "the lectures.",
)
