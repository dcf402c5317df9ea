"""The lesson of `solver`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Fit polynomials to the values of known ones, so that the error of the coefficients is known."""
    for rows, degree, most in ((60, 3, 1e-13), (101, 15, 1e-10)):
        points = np.linspace(-1, 1, rows)
        matrix = np.vander(points, degree + 1, increasing=True)
        exact = np.random.default_rng(5).integers(1, 9, degree + 1).astype(np.float64)
        result = answer.coefficients(cuda.to_device(matrix), cuda.to_device(matrix @ exact)).to_host()
        yield compare(f"{degree + 1} coefficients, to three digits", result, exact, 1e-3)
        error = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
        yield at_most(f"degree {degree}: the relative error is at most {most:.0e}", error, most)


LESSON = Lesson(
    why="Two questions decide how to solve a dense system: what does it cost, and how many digits of the result can "
    "you trust? On an H200, a Cholesky factorization of 2,048 rows in double precision takes 1.0 ms, and solving by LU "
    "takes 6.4 ms. A singular value decomposition takes 124 ms for a matrix with half as many rows.\n\n"
    "The second question matters more. This stop solves a system whose residual is as small as it can be and whose "
    "solution is wrong in the first digit.",
    learn=[
        "choose a factorization for a matrix: Cholesky, LU, QR, singular values or eigenvalues.",
        "say what a small residual tells you about a solution, and what it does not.",
        "estimate from the condition number how many digits of a solution are right.",
        "handle the errors for singular and indefinite matrices.",
    ],
    idea="A **factorization** writes a matrix as a product of matrices that are easy to solve with. Cholesky needs a "
    "symmetric positive definite matrix and half the operations of LU, which works for any square matrix. QR solves "
    "least squares problems. Singular values and eigenvalues tell the most and cost the most.\n\n"
    "The **residual** is what remains when you put the solution back into its equation. A good solver keeps it near "
    "the rounding error. The **condition number** says how much a change in the input can change the solution. With 16 "
    "digits and a condition number of 10^k, about 16 - k digits of the solution are right, however small the residual "
    "is.\n\n"
    "The rule of thumb: use the cheapest factorization that the matrix allows, check the residual to judge the solver, "
    "and look at the condition number to judge the answer.",
    steps=[
        Step(
            name="LU float64",
            shows=["make_system", "on_device_by"],
            text="One system for each factorization. `solve` uses LU, and with `positive=True` Cholesky, which "
            "needs half the operations. A triangular matrix needs no factorization. `qr`, `svd` and `eigh` return "
            "factors.",
        ),
        Step(
            name="residuals",
            shows=["residuals", "residual"],
            text="The result is put back into its equation. The residual is divided by the norms, the size and the "
            "rounding unit, as in LAPACK's own tests. A good solver then stays below 30 for every size and precision.",
        ),
        Step(
            name="least squares, degree 15",
            shows=["vandermonde", "fit_row"],
            text="A polynomial is fitted by QR. Its matrix of powers has a condition number of 2e5. The error of "
            "the coefficients is about that many rounding errors, although the residual is small.",
        ),
        Step(
            name="Hilbert's matrix, n = 12",
            shows=["hilbert", "hilbert_row"],
            text="Hilbert's matrix has a condition number of 1e16. In double precision no digit of the solution is "
            "certain, and the residual is small all the same.",
        ),
        Step(
            name="refusals",
            shows=["refusals"],
            text="A singular matrix and an indefinite one raise errors that name the pivot or the minor.",
        ),
    ],
    look_at=[
        "The column 'error' holds scaled residuals. Compare them with those of LAPACK in the second table: "
        "they have the same order of magnitude for each factorization and precision.",
        "The notes below the table give the errors of the solutions. For Hilbert's matrix the residual is "
        "fine, but the solution is wrong in its first digit.",
        "In the picture, the error of the solution follows the condition number times the rounding unit. The "
        "residual does not.",
        "On an H200 in double precision, the singular values of 1,024 rows take 124 ms, 128 times as long as a "
        "Cholesky factorization of 2,048 rows.",
    ],
    exercise=Exercise(
        task="`coefficients(a, b)` returns the x that minimizes |a x - b|, using the normal equations a^T a x = a^T "
        "b. For a polynomial of degree 15 the error of the coefficients is above 1e-10, although double precision can "
        "do better. Find a way that does.",
        hints=[
            "The condition number of a^T a is the square of that of a. Which factorization works on a itself?",
            "`cudart_py.libraries` has a function for least squares that uses QR.",
        ],
        answer="QR does not square the condition number. With a = q r, a triangular solve gives x from r x = q^T b, "
        "and `lstsq` does both. With a condition number of 2e5, the error is about 1e-12 instead of 1e-8.",
        check=check,
    ),
    course="The lectures show these libraries but give no figures for them.",
)
