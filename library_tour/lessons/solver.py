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
    """Fit polynomials to values of known ones, so that the coefficients' error can be told."""
    for rows, degree, most in ((60, 3, 1e-13), (101, 15, 1e-10)):
        points = np.linspace(-1, 1, rows)
        matrix = np.vander(points, degree + 1, increasing=True)
        exact = np.random.default_rng(5).integers(1, 9, degree + 1).astype(np.float64)
        found = answer.coefficients(cuda.to_device(matrix), cuda.to_device(matrix @ exact)).to_host()
        yield compare(f"{degree + 1} coefficients, to some digits", found, exact, 1e-3)
        error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
        yield at_most(f"degree {degree}: the relative error is at most {most:.0e}", error, most)


LESSON = Lesson(
    learn=[
        "Which factorization suits which matrix: Cholesky, LU, QR, singular values and eigenvalues.",
        "What a residual says about a solution, and what it does not say.",
        "How the condition number decides how many digits of a solution are right.",
        "How singular and indefinite matrices are reported.",
    ],
    steps=[
        Step(
            name="LU float64",
            shows=["make_system", "on_device_by"],
            text="One system for each factorization. `solve` uses LU, with `positive=True` Cholesky, which does half "
            "the operations; a triangular matrix needs no factorization. `qr`, `svd` and `eigh` return factors.",
        ),
        Step(
            name="residuals",
            shows=["residuals", "residual"],
            text="The result is put back into its equation. The residual is divided by the norms, the size and the "
            "rounding unit, as LAPACK's own tests do: then a good solver stays below 30 for every size and precision.",
        ),
        Step(
            name="least squares, degree 15",
            shows=["vandermonde", "fit_row"],
            text="A polynomial is fitted by QR. Its matrix of powers has a condition number of 2e5, and so many "
            "roundings are the error of the coefficients, though the residual is small.",
        ),
        Step(
            name="Hilbert's matrix, n = 12",
            shows=["hilbert", "hilbert_row"],
            text="Hilbert's matrix has a condition number of 1e16: no digit of the solution is sure in double "
            "precision, and the residual is small all the same.",
        ),
        Step(
            name="refusals",
            shows=["refusals"],
            text="A singular matrix and an indefinite one are errors that name the pivot or the minor.",
        ),
    ],
    look_at=[
        "The column 'error' holds scaled residuals. Compare them with those of LAPACK in the second table: they are "
        "of the same size for each factorization and precision.",
        "The notes below the table: for Hilbert's matrix the residual is fine, but no digit of the solution is right.",
        "The picture: the error of the solution follows the condition number times the rounding unit, and the residual "
        "does not.",
        "On an H200 at 2,048 rows, a decomposition into singular values takes more than a hundred times as long as a "
        "Cholesky factorization.",
    ],
    exercise=Exercise(
        task="`coefficients(a, b)` returns the x for which |a x - b| is least, by the normal equations: a^T a x = a^T "
        "b. For a polynomial of degree 15 the error of the coefficients is above 1e-10, where double precision "
        "can do better. Find a way that reaches it.",
        hints=[
            "The condition number of a^T a is the square of that of a. Which factorization works on a itself?",
        ],
        answer="QR does not square the condition number: a = q r, and r x = q^T b is solved by a triangular solve, "
        "which `lstsq` does. With the condition number 2e5, the error is some 1e-12 instead of 1e-8.",
        check=check,
    ),
    course="The courses show these libraries without figures for them.",
)
