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
    """Solve rings as a step of the heat equation gives them, and rings whose rows all differ; count instructions."""
    random = np.random.default_rng(5)
    shape = (SYSTEMS, UNKNOWNS)
    for name, vary in (("a step of heat", 0.0), ("rows that differ", 1.0)):
        down, up = -5 - vary * random.random((2, *shape))
        middle = 1 - down - up + vary * random.random(shape)
        right = random.random(shape)
        before, behind = (np.roll(np.eye(UNKNOWNS), by, axis=1) for by in (-1, 1))
        matrices = down[..., None] * before + middle[..., None] * np.eye(UNKNOWNS) + up[..., None] * behind
        expected = np.linalg.solve(matrices, right[..., None])[..., 0].astype(np.float32)
        x = poisoned(shape, np.float32)
        arrays = [cuda.to_device(array.astype(np.float32)) for array in (down, middle, up, right)]
        counted = counters.count(answer["solve_ring"][SYSTEMS, 32].bind(*arrays, x), ["instructions"])
        yield compare(f"{name}: the unknowns of {SYSTEMS} rings", x.to_host(), expected, 1e-4)
        fact = f"{name}: a warp solves a ring in {MOST_INSTRUCTIONS} instructions"
        yield at_most(fact, counted["instructions"], MOST_INSTRUCTIONS * SYSTEMS)


LESSON = Lesson(
    learn=[
        "Why elimination row after row is a chain that the many threads of a GPU cannot shorten.",
        "How cyclic reduction solves a tridiagonal system of n rows in about log2(n) levels, and what the levels cost.",
        "Why a warp that keeps its rows in registers is faster than a block with a barrier after each level.",
        "What a matrix that stays the same saves: the multiples of its rows are computed once.",
    ],
    steps=[
        Step(
            name="a thread a system",
            shows=["Matrix", "thomas"],
            text="Gaussian elimination, which is called Thomas' algorithm for three diagonals. Each row needs the row "
            "before it, and in the back substitution the unknown of the row after it. The operations are as few as "
            "they can be, but they wait for one another, and 64 systems occupy no more than 64 threads.",
        ),
        Step(
            name="cyclic reduction",
            shows=["Rows", "steps_of_block", "cyclic_reduction"],
            text="A block has one system, and a thread one row. At each level every second of the remaining rows "
            "eliminates the unknowns of both neighbours from its equation, so that half of the rows remain. In the "
            "back substitution each of the other rows has one unknown. The remaining rows lie at strides of 2, 4, 8 "
            "and so on, which cause bank conflicts in shared memory.",
        ),
        Step(
            name="parallel reduction",
            shows=["reduce", "parallel_reduction"],
            text="Now *every* row eliminates its neighbours' unknowns at each level. After log2(n) levels each row "
            "contains only its own unknown, so there is no back substitution. That is more work, n log2(n) row "
            "operations, but half as many levels, and neighbouring threads use neighbouring rows.",
        ),
        Step(
            name="parallel, permuted",
            shows=["reduce", "permuted_reduction"],
            text="The same operations. After each level the even rows move to the first half and the odd rows to the "
            "second one, so that the neighbours of a row are always next to it. The moves themselves have bank "
            "conflicts.",
        ),
        Step(
            name="a warp, eliminating",
            shows=["LaneRows", "eliminate", "solve", "steps_of_warp", "warp_eliminating"],
            text="A warp has one system, and a lane eight of its rows, in registers. It eliminates seven of its "
            "unknowns without any other lane. The 32 rows that are left, one for each lane, are solved by parallel "
            "reduction in five levels of shuffles. No barrier of a block is needed.",
        ),
        Step(
            name="a warp, factored",
            shows=["Factors", "solve", "steps_of_warp", "warp_factored"],
            text="The matrix is the same in every time step. What depends on the matrix alone is computed before the "
            "first step and stays in registers. A step applies these multiples to the right side only, and has no "
            "reciprocal in its chain.",
        ),
    ],
    look_at=[
        "Without a GPU, the columns count what all systems take for a few steps: parallel reduction has more "
        "instructions than cyclic reduction and no bank conflicts, and a warp has the fewest instructions of all.",
        "On an H200, 10,000 steps of 64 systems with 256 cells take 225 ms by a thread a system, 20 ms by cyclic "
        "reduction, 13 ms by parallel reduction, 3.1 ms by a warp that eliminates anew in each step, and 1.7 ms by a "
        "warp that keeps its factors.",
        "cuSPARSE takes 82 ms on the same H200. It solves one step a call, so that the unknowns go through memory in "
        "each step, and it does not know that a matrix has the same three numbers in each row.",
        "The picture of convergence: with exact boundary values, the error in double precision falls with the square "
        "of the number of cells. With the course's boundary values it stays where it is, whatever the grid.",
    ],
    exercise=Exercise(
        task="Solve tridiagonal systems whose ends are joined, such as those of heat in a ring: the neighbours of row "
        "0 are the rows 31 and 1. A warp has a system of 32 unknowns, and a lane has one row. Solve it exactly but for "
        f"rounding, in at most {MOST_INSTRUCTIONS} instructions of the warp.",
        hints=[
            "At the first level a row takes out the unknowns of the rows one lane away, and then depends on those two "
            "lanes away, then four. Lanes are counted modulo 32. On which unknowns does a row depend after five "
            "levels?",
        ],
        answer="Parallel reduction needs no special case in a ring: every row has two neighbours at each level, which "
        "`__shfl_sync` reads from the lanes before and behind it, modulo 32. After five levels they are the rows 32 "
        "lanes away, which is the row itself. So all three coefficients belong to its own unknown, and their sum "
        "divides the right side. Repeating a simple pass instead would take hundreds of passes, because a value "
        "travels one lane in each.",
        check=check,
    ),
    course="The courses give no times for this topic. The option, the scheme and the boundary values are the course's.",
)
