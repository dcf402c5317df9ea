"""Solve linear systems with cuSOLVER: residuals compared with those of LAPACK, and ill-conditioned systems.

On the simulator, which runs the libraries in software and does not measure time:

    $ library-tour run solver
    solver: Dense solvers with cuSOLVER, and their residuals
    size 48: rows and columns of the matrices
                              by          error  bound  check
    ─────────────────────────────────────────────────────────
    LU float32                cuSOLVER  0.00949   30.0  right
    Cholesky float32          cuSOLVER  0.00949   30.0  right
    triangular float32        cuSOLVER  0.00202   30.0  right
    QR float32                cuSOLVER   0.0404   30.0  right
    SVD float32               cuSOLVER    0.217   30.0  right
    eigh float32              cuSOLVER   0.0754   30.0  right
    LU float64                cuSOLVER  0.00955   30.0  right
    Cholesky float64          cuSOLVER   0.0102   30.0  right
    triangular float64        cuSOLVER  0.00172   30.0  right
    QR float64                cuSOLVER   0.0408   30.0  right
    SVD float64               cuSOLVER    0.290   30.0  right
    eigh float64              cuSOLVER   0.0768   30.0  right
    LU complex128             cuSOLVER   0.0121   30.0  right
    Cholesky complex128       cuSOLVER  0.00778   30.0  right
    triangular complex128     cuSOLVER  0.00201   30.0  right
    QR complex128             cuSOLVER   0.0561   30.0  right
    SVD complex128            cuSOLVER    0.252   30.0  right
    eigh complex128           cuSOLVER   0.0939   30.0  right
    LU, a batch of 16         cuSOLVER   0.0270   30.0  right
    Cholesky, a batch of 16   cuSOLVER   0.0192   30.0  right
    LU float32, refined       cuSOLVER  0.00221   30.0  right
    sparse, in stages         cuDSS      0.0003   30.0  right
    nvmath LU float64
    sparse direct, cuDSS
    least squares, degree 3   cuSOLVER  0.00413   30.0  right
    least squares, degree 15  cuSOLVER  0.00236   30.0  right
    Hilbert matrix, n = 12    cuSOLVER   0.0296   30.0  right
    nvmath LU float64: Skipped: nvmath provides this function only on a GPU
    sparse direct, cuDSS: Skipped: nvmath provides this function only on a GPU
    least squares, degree 3: condition number 8.1e+00, relative error of the
    coefficients 5.0e-16
    least squares, degree 15: condition number 2.2e+05, relative error of the
    coefficients 2.9e-12
    Hilbert matrix, n = 12: condition number 1.6e+16, relative error of the
    solution 2.3e-01
    LAPACK residuals, from SciPy on the host:
                     LU  Cholesky  triangular      QR    SVD    eigh
    ────────────────────────────────────────────────────────────────
    float32     0.00671    0.0103     0.00217  0.0401  0.185  0.0766
    float64      0.0105   0.00973     0.00226  0.0456  0.184   0.110
    complex128   0.0112   0.00916     0.00184  0.0542  0.191   0.130
    The errors are residuals divided by norm x n x eps, as in LAPACK's own tests,
    which accept values below 30.
    The high-degree polynomial and the Hilbert matrix also have small residuals, but
    the errors of their solutions can reach about the condition number times eps. A
    small residual does not prove that a solution is accurate.
    A singular matrix raises an error that gives the pivot: solve: 'a' is singular:
    pivot 2 of its elimination is zero
    A matrix that is not positive definite raises an error that gives the minor:
    cholesky: 'a' is not positive definite: its leading minor of order 3 is not
    positive
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.benchmark.device.ceilings import measured_ceiling
from cudart_py.libraries import NotPositiveDefiniteError, SingularMatrixError

from .. import timing
from ..checks import poison, refusal
from ..counters import counted
from ..device_code import load
from ..stop import Check, Curve, Limit, Result, Row, Size
from .high_level import lent, nvmath_row
from .judgement import judged, relative_error, work_of
from .many_systems import SATISFIED, batch_rows, refined_row, staged_row
from .precisions import numbers

TITLE = "Dense solvers with cuSOLVER, and their residuals"
SIZE = Size("rows and columns of the matrices", full=2048, small=48, least=4)
CHECKED = 128
HILBERT = 12
# A singular value decomposition takes seconds, and the others take milliseconds.
SVD_SIZE = 1024
DEGREES = (3, 15)

Array = NDArray[Any]


def positive(n: int, dtype: Any) -> Array:
    """Return a Hermitian positive definite matrix."""
    a = numbers((n, n), dtype)
    product: Array = a @ a.conj().T / dtype(n) + np.eye(n, dtype=dtype)
    return product


def residual(left: Array, right: Array, scale: float, n: int, dtype: Any) -> float:
    """Return the norm of a difference, computed in extended precision and divided by scale x n x eps."""
    wide = np.clongdouble if left.dtype.kind == "c" else np.longdouble
    found = float(np.linalg.norm((left.astype(wide) - right.astype(wide)).ravel()))
    return found / (scale * n * float(np.finfo(dtype).eps))


def norm(x: Array) -> float:
    """Return the Frobenius norm."""
    return float(np.linalg.norm(x.ravel()))


def wide(x: Array) -> Array:
    """Return the elements in extended precision."""
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def run(device: cuda.Device, size: int) -> Result:
    """Check every solver at a small size, and time it at the full size."""
    n = min(size, CHECKED)
    limit = Limit("multiply-adds in float64", "TFLOP/s")
    if timing.available():
        limit = Limit(limit.name, limit.unit, 1e-12 * measured_ceiling(device, "fp64"))
    dtypes = (np.float32, np.float64, np.complex128)
    rows = [row for dtype in dtypes for row in solver_rows(n, size, dtype, limit)]
    rows += [*batch_rows(n, limit), refined_row(n, size, limit), staged_row(n)]
    rows += [high_level_row(n, size, limit), sparse_row(n)]
    rows += [fit_row(degree) for degree in DEGREES]
    row, curve = hilbert_row()
    rows.append(row)
    notes = [
        "The errors are residuals divided by norm x n x eps, as in LAPACK's own tests, which accept values below 30.",
        "The high-degree polynomial and the Hilbert matrix also have small residuals, but the errors of their "
        "solutions can reach about the condition number times eps. A small residual does not prove that a solution is "
        "accurate.",
    ]
    refused = refusals()
    heading, lapack = "LAPACK residuals, from SciPy on the host:", [lapack_row(n, dtype) for dtype in dtypes]
    notes += [f"{check.fact.capitalize()}: {check.detail}" for check in refused]
    if timing.available() and size > SVD_SIZE:
        notes.append(f"The singular value decompositions are timed for matrices with {SVD_SIZE:,} rows and columns.")
    return Result(rows, limit, checks=refused, pictures=[curve], notes=notes, tables={heading: lapack})


def solver_rows(n: int, size: int, dtype: Any, limit: Limit) -> list[Row]:
    """Solve and factor with each method, and judge the residuals."""
    if dtype != np.float64:
        limit = Limit("", limit.unit)  # the limit belongs to another precision
    name = np.dtype(dtype).name
    system = make_system(n, dtype)
    found = residuals(system, on_device_by(system))
    work = timed_work(size, dtype)
    return [
        judged(
            f"{title} {name}",
            "cuSOLVER",
            error,
            SATISFIED,
            work=work.get(title),
            amount=operations(title, size),
            limit=limit,
            does=solver_work(title, system),
        )
        for title, error in found.items()
    ]


def solver_work(title: str, system: System) -> dict[str, float]:
    """Return the work of a method on its matrices, right-hand sides and results."""
    n, several = len(system.a), system.b.shape[1]
    factor = 4.0 if system.a.dtype.kind == "c" else 1.0
    matrix = {"Cholesky": system.spd, "triangular": system.lower, "eigh": system.spd}.get(title, system.a)
    # A triangular system has few right-hand sides here, and QR's matrix has twice as many rows as columns.
    counts = {"triangular": float(several * n**2), "QR": (4 * 2 - 4 / 3) * n**3}
    operands = {"LU": [system.b, system.b], "triangular": [system.b, system.b]}.get(title, [matrix])
    if title in ("QR", "SVD"):
        matrix, operands = system.tall, [system.tall, system.a]  # a tall factor and a square one
    return work_of(factor * counts.get(title, operations(title, n)), matrix, *operands)


def lapack_row(n: int, dtype: Any) -> Row:
    """Solve and factor with each method on the host; return the residuals."""
    system = make_system(n, dtype)
    return Row(np.dtype(dtype).name, dict(residuals(system, on_host_by(system))))


class System(NamedTuple):
    """Inputs of the methods: square matrices, a tall one, and right-hand sides."""

    a: Array
    lower: Array
    spd: Array
    tall: Array
    b: Array


class Solved(NamedTuple):
    """Results of the methods."""

    solution: Array
    triangular: Array
    factor: Array
    qr: tuple[Array, Array]
    svd: tuple[Array, Array, Array]
    eigen: tuple[Array, Array]


def make_system(n: int, dtype: Any) -> System:
    """Return random matrices of a dtype."""
    a = numbers((n, n), dtype)
    lower = np.tril(a) + n * np.eye(n, dtype=dtype)
    return System(a, lower, positive(n, dtype), numbers((2 * n, n), dtype), numbers((n, 3), dtype))


def on_device_by(system: System) -> Solved:
    """Return the results of cuSOLVER, and of cuBLAS for the triangular matrix."""
    a, lower, spd, tall, b = (cuda.to_device(array) for array in system)
    q, r = libraries.qr(tall)
    u, s, vh = libraries.svd(tall)
    w, v = libraries.eigh(spd)
    return Solved(
        libraries.solve(a, b).to_host(), libraries.solve_triangular(lower, b).to_host(),
        libraries.cholesky(spd).to_host(), (q.to_host(), r.to_host()), (u.to_host(), s.to_host(), vh.to_host()),
        (w.to_host(), v.to_host()),
    )  # fmt: skip  # grouped by meaning


def on_host_by(system: System) -> Solved:
    """Return the results of LAPACK, through SciPy."""
    from scipy import linalg

    return Solved(
        linalg.solve(system.a, system.b), linalg.solve_triangular(system.lower, system.b, lower=True),
        linalg.cholesky(system.spd, lower=True), linalg.qr(system.tall, mode="economic"),
        linalg.svd(system.tall, full_matrices=False), linalg.eigh(system.spd),
    )  # fmt: skip  # grouped by meaning


def residuals(system: System, found: Solved) -> dict[str, float]:
    """Return the residual of each result, divided by norm x n x eps."""
    a, lower, spd, tall, b = system
    n, dtype = len(a), a.dtype
    errors = {"LU": residual(wide(a) @ wide(found.solution), b, norm(a) * norm(found.solution), n, dtype)}
    factor, x = wide(found.factor), found.triangular
    errors["Cholesky"] = residual(factor @ factor.conj().T, spd, norm(spd), n, dtype)
    errors["triangular"] = residual(wide(lower) @ wide(x), b, norm(lower) * norm(x), n, dtype)
    q, r = found.qr
    back = residual(wide(q) @ wide(r), tall, norm(tall), n, dtype)
    straight = residual(wide(q).conj().T @ wide(q), np.eye(n), norm(q), n, dtype)
    errors["QR"] = max(back, straight)
    u, s, vh = found.svd
    back = residual(wide(u) * s @ wide(vh), tall, norm(tall), n, dtype)
    # A matrix's singular values and eigenvalues move by no more than the norm of its perturbation.
    values = residual(s, np.linalg.svd(tall, compute_uv=False), norm(tall), n, dtype)
    errors["SVD"] = max(back, values)
    w, v = found.eigen
    back = residual(wide(spd) @ wide(v), wide(v) * w, norm(spd), n, dtype)
    errors["eigh"] = max(back, residual(w, np.linalg.eigvalsh(spd), norm(spd), n, dtype))
    return errors


def operations(title: str, n: int) -> float:
    """Return the number of operations to factor a real matrix; 0 if it depends on the matrix elements."""
    return {"LU": 2 / 3, "Cholesky": 1 / 3, "triangular": 1.0, "QR": 4 - 4 / 3}.get(title, 0.0) * float(n) ** 3


def timed_work(size: int, dtype: Any) -> dict[str, Callable[[], object]]:
    """Return the timed call of each method on square matrices of the full size; none if nothing is timed."""
    if not timing.available() or np.dtype(dtype).kind == "c":
        return {}
    a, spd = cuda.to_device(numbers((size, size), dtype)), cuda.to_device(positive(size, dtype))
    small = cuda.to_device(numbers((min(size, SVD_SIZE), min(size, SVD_SIZE)), dtype))
    b = cuda.to_device(numbers((size, size), dtype))
    return {
        "LU": lambda: libraries.solve(a, b[:, 0:1]),
        "Cholesky": lambda: libraries.cholesky(spd),
        "triangular": lambda: libraries.solve_triangular(spd, b),
        "QR": lambda: libraries.qr(a),
        "SVD": lambda: libraries.svd(small),
        "eigh": lambda: libraries.eigh(spd),
    }


def high_level_row(n: int, size: int, limit: Limit) -> Row:
    """Solve with nvmath.linalg, whose only dense solver is LU."""
    a, b = numbers((n, n), np.float64), numbers((n, 3), np.float64)

    def solved(a: Any, b: Any) -> Any:
        import nvmath

        return nvmath.linalg.direct_solver(a, b)

    def make_work() -> Callable[[], object]:
        return functools.partial(solved, *(lent(cuda.to_device(numbers((size, n), np.float64))) for n in (size, 1)))

    return nvmath_row(
        "nvmath LU float64",
        lambda: solved(a, b),
        lambda x: residual(wide(a) @ wide(x), b, norm(a) * norm(x), n, np.float64),
        SATISFIED,
        make_work=make_work,
        amount=operations("LU", size),
        limit=limit,
        gpu_only=True,
    )


def sparse_row(n: int) -> Row:
    """Solve a sparse system by factorization with nvmath's cuDSS function, which needs a GPU."""
    from .sparse import laplacian

    a, b = laplacian(n), numbers((n * n,), np.float64)

    def error_of(x: Array) -> float:
        # The norm of the Laplacian is 8.
        return residual(a.astype(np.longdouble) @ wide(x), b, 8 * norm(x), n * n, np.float64)

    def solved() -> Any:
        from nvmath.sparse.advanced import direct_solver

        return direct_solver(a, b)

    return nvmath_row("sparse direct, cuDSS", solved, error_of, SATISFIED, gpu_only=True)


def fit_row(degree: int) -> Row:
    """Fit a polynomial to the values of a known one with QR; a kernel computes the matrix of powers.

    High powers of a number in [-1, 1] are nearly equal, so the condition number grows with the degree, and so does the
    error of the coefficients. The values of the fitted polynomial stay right.
    """
    points = np.linspace(-1, 1, 200)
    coefficients = np.ones(degree + 1)
    matrix = cuda.empty((points.size, degree + 1), np.float64)
    poison(matrix)
    metrics = counted(load("solver")["vandermonde"][1, 256].bind(cuda.to_device(points), matrix, *matrix.shape))
    powers = matrix.to_host()
    values = powers @ coefficients
    x = libraries.lstsq(matrix, cuda.to_device(values)).to_host()
    condition = float(np.linalg.cond(powers))
    off = relative_error(x, coefficients)
    left = wide(powers).T @ (wide(powers) @ wide(x) - wide(values))
    found = norm(left) / (norm(powers) * norm(values) * points.size * float(np.finfo(float).eps))
    note = f"condition number {condition:.1e}, relative error of the coefficients {off:.1e}"
    return judged(f"least squares, degree {degree}", "cuSOLVER", found, SATISFIED, note=note, metrics=metrics)


class Hilbert(NamedTuple):
    """Condition, error and residual of a system with a Hilbert matrix, whose solution is all ones."""

    condition: float
    error: float  # of the solution
    residual: float  # divided by norm x n x eps


def hilbert(n: int) -> Hilbert:
    """Solve a system with a Hilbert matrix, which a kernel computes."""
    matrix = cuda.empty((n, n), np.float64)
    poison(matrix)
    load("solver")["hilbert"][1, (16, 16)](matrix, n)
    a = matrix.to_host()
    b = (wide(a) @ np.ones(n)).astype(np.float64)
    x = libraries.solve(matrix, cuda.to_device(b)).to_host()
    found = residual(wide(a) @ wide(x), b, norm(a) * norm(x), n, np.float64)
    return Hilbert(float(np.linalg.cond(a)), relative_error(x, np.ones(n)), found)


def hilbert_row() -> tuple[Row, Curve]:
    """Solve systems with Hilbert matrices, whose residuals are small although the solutions are wrong."""
    found = [hilbert(n) for n in range(2, HILBERT + 1)]
    eps = float(np.finfo(float).eps)
    lines = {
        "error of the solution": [(each.condition, max(each.error, eps)) for each in found],
        "residual over norm x n": [(each.condition, max(each.residual * eps, eps / 100)) for each in found],
        "condition x eps": [(each.condition, each.condition * eps) for each in found],
    }
    worst = found[-1]
    note = f"condition number {worst.condition:.1e}, relative error of the solution {worst.error:.1e}"
    by = "cuSOLVER"
    row = judged(f"Hilbert matrix, n = {HILBERT}", by, worst.residual, SATISFIED, note=note)
    return row, Curve("hilbert", "condition number", "relative to the solution, or to the norms", lines, "xy")


def refusals() -> list[Check]:
    """Check that the solvers refuse unsuitable matrices, and name the pivot or the minor."""
    singular, indefinite = np.diag([1.0, 2.0, 0.0, 4.0]), np.diag([1.0, 2.0, -3.0, 4.0])
    b = np.ones(4)
    return [
        refusal(
            "a singular matrix raises an error that gives the pivot", SingularMatrixError,
            lambda: libraries.solve(cuda.to_device(singular), cuda.to_device(b)),
        ),
        refusal(
            "a matrix that is not positive definite raises an error that gives the minor", NotPositiveDefiniteError,
            lambda: libraries.cholesky(cuda.to_device(indefinite)),
        ),
    ]  # fmt: skip  # rows of a table
