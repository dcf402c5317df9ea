"""The lesson of `solver`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare, copies_to_host
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Fit polynomials to the values of known ones, so that the error of the coefficients is known."""
    for rows, degree, most in ((60, 3, 1e-13), (101, 15, 1e-10)):
        points = np.linspace(-1, 1, rows)
        matrix = np.vander(points, degree + 1, increasing=True)
        exact = np.random.default_rng(5).integers(1, 9, degree + 1).astype(np.float64)
        a, b = cuda.to_device(matrix), cuda.to_device(matrix @ exact)
        with copies_to_host() as copies:
            x = answer.coefficients(a, b)
        result = x.to_host()
        yield compare(f"{degree + 1} coefficients, to three digits", result, exact, 1e-3)
        error = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
        yield at_most(f"degree {degree}: the relative error is at most {most:.0e}", error, most)
        yield at_most(f"degree {degree}: no array is copied to the host", len(copies), 0)


LESSON = Lesson(
    why="Two questions determine how to solve a dense system: how much does it cost, and how many digits of the result "
    "can you trust? On an H200, a Cholesky factorization of a matrix with 2,048 rows takes 1.3 ms in double precision, "
    "and solving with LU takes 6.7 ms. A singular value decomposition takes 145 ms for a matrix with half as many "
    "rows.\n\n"
    "The second question matters more. This stop solves a system whose residual is as small as it can be, and whose "
    "solution is nevertheless wrong in the first digit.",
    learn=[
        "choose a factorization for a matrix: Cholesky, LU, QR, singular values or eigenvalues.",
        "say what a small residual tells you about a solution, and what it does not.",
        "estimate from the condition number how many digits of a solution are correct.",
        "handle the errors for singular and indefinite matrices.",
    ],
    idea="A **factorization** writes a matrix as a product of matrices for which systems are easy to solve. Cholesky "
    "requires a symmetric positive definite matrix, and takes half as many operations as LU, which works for any "
    "square matrix. QR solves least squares problems. Singular values and eigenvalues tell you the most and cost the "
    "most.\n\n"
    "The **residual** is what remains when you substitute the solution into its equation. A good solver keeps it near "
    "the rounding error. The **condition number** says how strongly a change in the input can affect the solution. "
    "With 16 digits and a condition number of 10^k, about 16 - k digits of the solution are correct, however small the "
    "residual is.\n\n"
    "The rule of thumb: use the cheapest factorization that the matrix allows, check the residual to judge the solver, "
    "and look at the condition number to judge the answer.",
    steps=[
        Step(
            name="LU float64",
            shows=["make_system", "on_device_by"],
            text="`make_system` creates a matrix for each factorization. `solve` uses LU. With `positive=True`, it "
            "uses Cholesky, which takes half as many operations. A triangular matrix needs no factorization: "
            "`solve_triangular` treats it as lower triangular by default, so pass `lower=False` for the R of a QR "
            "factorization. SciPy's default is the opposite. `qr`, `svd` and `eigh` return the factors.",
        ),
        Step(
            name="residuals",
            shows=["residuals", "residual"],
            text="Each result is substituted into its equation. The residual is divided by the norms, the matrix size "
            "and the machine epsilon, as in LAPACK's own tests. For a good solver, the quotient stays below 30 at "
            "every size and precision.",
        ),
        Step(
            name="a batch of 16",
            shows=["batch_rows[x:factors]", "refined_row[a:x]"],
            text="A small matrix cannot fill a GPU. `solve`, `cholesky` and the other functions take a "
            "three-dimensional array as a batch of matrices, and factor all of them in one call. A large "
            'double-precision matrix can be factored faster in single precision: with `precision="float32"`, iterative '
            "refinement brings the solution to the accuracy of double precision, and a warning says if that fails.",
        ),
        Step(
            name="sparse, in stages",
            shows=["staged_row[solver:second]"],
            text="A sparse direct solver first reorders the matrix and finds the sparsity pattern of the factors: the "
            "symbolic factorization, which takes most of the time. `SparseSolver` keeps its result, so `refactorize` "
            "only repeats the numerical factorization, with new values.",
        ),
        Step(
            name="least squares, degree 15",
            shows=["vandermonde", "fit_row[matrix:x]"],
            text="`lstsq` fits a polynomial with QR. The Vandermonde matrix, which contains the powers of the "
            "points, has a condition number of 2e5. The error of the coefficients can reach about 2e5 times the "
            "machine epsilon, although the residual is small. In this step and the next, `poison` fills a matrix with "
            "wrong values before a kernel computes it, `counted` launches a kernel and returns its counters, and "
            "`wide` converts to extended precision.",
        ),
        Step(
            name="Hilbert matrix, n = 12",
            shows=["hilbert", "hilbert[matrix:x]"],
            text="The Hilbert matrix with 12 rows has a condition number of about 1e16. In double precision, not a "
            "single digit of the solution is certain, although the residual is small.",
        ),
        Step(
            name="refusals",
            shows=["refusals"],
            text="A singular matrix raises an error that identifies the pivot that is zero. An indefinite matrix "
            "raises an error that identifies the leading minor that is not positive. `refusal` checks that a call "
            "raises the given exception.",
        ),
    ],
    look_at=[
        "The 'error' column shows scaled residuals. Compare them with LAPACK's in the second table: for each "
        "factorization and precision, they are of the same order of magnitude.",
        "The notes below the table give the errors of the solutions. For the Hilbert matrix, the residual is small, "
        "but the solution is wrong in its first digit.",
        "In the plot, on the page with pictures, the error of the solution follows the condition number times the "
        "machine epsilon. The residual does not.",
        "On an H200 in double precision, the singular value decomposition of a matrix with 1,024 rows takes 145 ms. "
        "That is 115 times as long as the Cholesky factorization of a matrix with 2,048 rows.",
        "The 'host us' column shows how long the host needs for a call to nvmath: 7,390 microseconds, about as long as "
        "the 7.42 ms that the solution takes.",
        "The 'sparse direct, cuDSS' row factorizes a sparse matrix with nvmath. It needs a GPU and the cuDSS library, "
        "which was not installed when the times of the H200 were recorded.",
    ],
    exercise=Exercise(
        task="`coefficients(a, b)` returns the x that minimises |a x - b|, using the normal equations a^T a x = a^T b. "
        "For a polynomial of degree 15, the error of the coefficients is above 1e-10. Double precision can do better: "
        "find a method that does, and that works on the device, without copying an array to the host.",
        hints=[
            "The condition number of a^T a is the square of the condition number of a. Which factorization works on a "
            "itself?",
            "`cudart_py.libraries` has a function for least squares that uses QR.",
        ],
        answer="QR does not square the condition number. With a = q r, a triangular solve gives x from r x = q^T b, "
        "and `lstsq` performs both steps. With a condition number of 2e5, the error is about 1e-12 instead of 1e-8.",
        check=check,
    ),
    course="The lectures on which the tour is based cover these libraries, but give no figures for them.",
)
