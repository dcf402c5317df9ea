"""Solve with cuSOLVER: every factorization with its residual, fits, a matrix as hard as any, and singular ones.

On the simulator, whose libraries are in software and which times nothing:

    $ library-tour run solver
    solver: cuSOLVER's factorizations, judged by their residuals
    size 48: rows and columns of the matrices
    limit: multiply-adds in float64
                              by          error  bound  check
    ─────────────────────────────────────────────────────────
    LU float32                cuSOLVER  0.00694   30.0  right
    Cholesky float32          cuSOLVER  0.00941   30.0  right
    triangular float32        cuSOLVER  0.00196   30.0  right
    QR float32                cuSOLVER   0.0414   30.0  right
    SVD float32               cuSOLVER    0.199   30.0  right
    eigh float32              cuSOLVER   0.0823   30.0  right
    LU float64                cuSOLVER  0.00644   30.0  right
    Cholesky float64          cuSOLVER  0.00838   30.0  right
    triangular float64        cuSOLVER  0.00214   30.0  right
    QR float64                cuSOLVER   0.0431   30.0  right
    SVD float64               cuSOLVER    0.269   30.0  right
    eigh float64              cuSOLVER   0.0707   30.0  right
    LU complex128             cuSOLVER   0.0148   30.0  right
    Cholesky complex128       cuSOLVER  0.00833   30.0  right
    triangular complex128     cuSOLVER  0.00172   30.0  right
    QR complex128             cuSOLVER   0.0559   30.0  right
    SVD complex128            cuSOLVER    0.270   30.0  right
    eigh complex128           cuSOLVER   0.0961   30.0  right
    nvmath LU float64
    sparse direct, cuDSS
    least squares, degree 3   cuSOLVER  0.00413   30.0  right
    least squares, degree 15  cuSOLVER  0.00236   30.0  right
    Hilbert's matrix, n = 12  cuSOLVER   0.0296   30.0  right
    nvmath LU float64: not run here: nvmath does this on a GPU alone
    sparse direct, cuDSS: not run here: nvmath does this on a GPU alone
    least squares, degree 3: condition 8.1e+00, coefficients off by 5.0e-16
    least squares, degree 15: condition 2.2e+05, coefficients off by 2.9e-12
    Hilbert's matrix, n = 12: condition 1.6e+16, solution off by 2.3e-01
    Residuals are over norm x n x eps, as LAPACK's own tests have them, and satisfy
    below 30. The fit of a high degree and Hilbert's matrix have small residuals
    too: it is the solutions that are off, by the condition.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.benchmark.device_ceilings import measured_ceiling
from cudart_py.libraries import NotPositiveDefiniteError, SingularMatrixError

from .. import timing
from ..checks import poison, refusal
from ..device_code import load
from ..stop import Check, Curve, Limit, Result, Row, Size
from .high_level import lent, nvmath_row
from .judgement import judged, relative_error
from .precisions import numbers

TITLE = "cuSOLVER's factorizations, judged by their residuals"
SIZE = Size("rows and columns of the matrices", full=2048, small=48, least=4)
CHECKED = 128
# What LAPACK's own tests ask for: a residual over norm x n x eps.
SATISFIED = 30.0
HILBERT = 12
# A decomposition takes a second and more where the others take milliseconds.
SVD_SIZE = 1024
DEGREES = (3, 15)

Array = NDArray[Any]


def positive(n: int, dtype: Any) -> Array:
    """Return a Hermitian positive definite matrix."""
    a = numbers((n, n), dtype)
    product: Array = a @ a.conj().T / dtype(n) + np.eye(n, dtype=dtype)
    return product


def residual(left: Array, right: Array, scale: float, n: int, dtype: Any) -> float:
    """Return the norm of a difference, computed in extended precision, over scale x n x eps."""
    wide = np.clongdouble if left.dtype.kind == "c" else np.longdouble
    found = float(np.linalg.norm((left.astype(wide) - right.astype(wide)).ravel()))
    return found / (scale * n * float(np.finfo(dtype).eps))


def norm(x: Array) -> float:
    """Return the Frobenius norm."""
    return float(np.linalg.norm(x.ravel()))


def wide(x: Array) -> Array:
    """Return numbers in extended precision."""
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def run(device: cuda.Device, size: int) -> Result:
    """Check every solver at a small size, and time them at the full one."""
    n = min(size, CHECKED)
    limit = Limit("multiply-adds in float64", "TFLOP/s")
    if timing.available():
        limit = Limit(limit.name, limit.unit, 1e-12 * measured_ceiling(device, "fp64"))
    dtypes = (np.float32, np.float64, np.complex128)
    rows = [row for dtype in dtypes for row in solver_rows(n, size, dtype, limit)]
    rows += [high_level_row(n, size, limit), sparse_row(n)]
    rows += [fit_row(degree) for degree in DEGREES]
    row, curve = hilbert_row()
    rows.append(row)
    notes = [
        "Residuals are over norm x n x eps, as LAPACK's own tests have them, and satisfy below 30. The fit of a high "
        "degree and Hilbert's matrix have small residuals too: it is the solutions that are off, by the condition."
    ]
    if timing.available() and size > SVD_SIZE:
        notes.append(f"The singular value decompositions are timed with {SVD_SIZE:,} rows and columns.")
    return Result(rows, limit, checks=refusals(), pictures=[curve], notes=notes)


def solver_rows(n: int, size: int, dtype: Any, limit: Limit) -> list[Row]:
    """Solve and factor with each method."""
    if dtype != np.float64:
        limit = Limit("", limit.unit)  # it is that of another precision
    by, name = "cuSOLVER", np.dtype(dtype).name
    a, spd, b = numbers((n, n), dtype), positive(n, dtype), numbers((n, 3), dtype)
    tall = numbers((2 * n, n), dtype)
    place = {"a": cuda.to_device(a), "spd": cuda.to_device(spd), "b": cuda.to_device(b), "tall": cuda.to_device(tall)}
    work = timed_work(size, dtype)
    errors: dict[str, float] = {}

    x = libraries.solve(place["a"], place["b"]).to_host()
    errors["LU"] = residual(wide(a) @ wide(x), b, norm(a) * norm(x), n, dtype)
    factor = libraries.cholesky(place["spd"]).to_host()
    errors["Cholesky"] = residual(wide(factor) @ wide(factor).conj().T, spd, norm(spd), n, dtype)
    lower = np.tril(a) + n * np.eye(n, dtype=dtype)
    x = libraries.solve_triangular(cuda.to_device(lower), place["b"]).to_host()
    errors["triangular"] = residual(wide(lower) @ wide(x), b, norm(lower) * norm(x), n, dtype)
    q, r = (part.to_host() for part in libraries.qr(place["tall"]))
    back = residual(wide(q) @ wide(r), tall, norm(tall), n, dtype)
    straight = residual(wide(q).conj().T @ wide(q), np.eye(n), norm(q), n, dtype)
    errors["QR"] = max(back, straight)
    u, s, vh = (part.to_host() for part in libraries.svd(place["tall"]))
    back = residual(wide(u) * s @ wide(vh), tall, norm(tall), n, dtype)
    # Against LAPACK's values: those of a matrix move by no more than its perturbation.
    values = residual(s, np.linalg.svd(tall, compute_uv=False), norm(tall), n, dtype)
    errors["SVD"] = max(back, values)
    w, v = (part.to_host() for part in libraries.eigh(place["spd"]))
    back = residual(wide(spd) @ wide(v), wide(v) * w, norm(spd), n, dtype)
    errors["eigh"] = max(back, residual(w, np.linalg.eigvalsh(spd), norm(spd), n, dtype))
    return [
        judged(
            f"{title} {name}", by, error, SATISFIED, work=work.get(title), amount=operations(title, size), limit=limit
        )
        for title, error in errors.items()
    ]


def operations(title: str, n: int) -> float:
    """Return the operations of a factorization of real numbers; 0 where they depend on the numbers."""
    return {"LU": 2 / 3, "Cholesky": 1 / 3, "triangular": 1.0, "QR": 4 - 4 / 3}.get(title, 0.0) * float(n) ** 3


def timed_work(size: int, dtype: Any) -> dict[str, Callable[[], object]]:
    """Return what is timed for each method, on square matrices of the full size; nothing without a GPU's clock."""
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
    """Solve with nvmath.linalg, which has LU alone."""
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
    """Solve with a sparse matrix directly: nvmath's face of cuDSS, on a GPU alone; else SciPy's SuperLU."""
    from .sparse import laplacian

    a, b = laplacian(n), numbers((n * n,), np.float64)

    def error_of(x: Array) -> float:
        # The Laplacian's norm is 8.
        return residual(a.astype(np.longdouble) @ wide(x), b, 8 * norm(x), n * n, np.float64)

    def solved() -> Any:
        from nvmath.sparse.advanced import direct_solver

        return direct_solver(a, b)

    return nvmath_row("sparse direct, cuDSS", solved, error_of, SATISFIED, gpu_only=True)


def fit_row(degree: int) -> Row:
    """Fit a polynomial to values of one by QR: the matrix of powers is made by a kernel.

    With high degrees the powers look alike, the condition number grows, and with it what rounding does to the
    coefficients; the values of the fit stay right.
    """
    points = np.linspace(-1, 1, 200)
    coefficients = np.ones(degree + 1)
    matrix = cuda.empty((points.size, degree + 1), np.float64)
    poison(matrix)
    load("solver")["vandermonde"][1, 256](cuda.to_device(points), matrix, *matrix.shape)
    powers = matrix.to_host()
    values = powers @ coefficients
    x = libraries.lstsq(matrix, cuda.to_device(values)).to_host()
    condition = float(np.linalg.cond(powers))
    off = relative_error(x, coefficients)
    left = wide(powers).T @ (wide(powers) @ wide(x) - wide(values))
    found = norm(left) / (norm(powers) * norm(values) * points.size * float(np.finfo(float).eps))
    note = f"condition {condition:.1e}, coefficients off by {off:.1e}"
    return judged(f"least squares, degree {degree}", "cuSOLVER", found, SATISFIED, note=note)


class Hilbert(NamedTuple):
    """What came of a system with Hilbert's matrix whose solution is ones."""

    condition: float
    error: float  # of the solution
    residual: float  # over norm x n x eps


def hilbert(n: int) -> Hilbert:
    """Solve with Hilbert's matrix, made by a kernel."""
    matrix = cuda.empty((n, n), np.float64)
    poison(matrix)
    load("solver")["hilbert"][1, (16, 16)](matrix, n)
    a = matrix.to_host()
    b = (wide(a) @ np.ones(n)).astype(np.float64)
    x = libraries.solve(matrix, cuda.to_device(b)).to_host()
    found = residual(wide(a) @ wide(x), b, norm(a) * norm(x), n, np.float64)
    return Hilbert(float(np.linalg.cond(a)), relative_error(x, np.ones(n)), found)


def hilbert_row() -> tuple[Row, Curve]:
    """Solve with Hilbert's matrices: the residuals are small, and the solutions are not right."""
    found = [hilbert(n) for n in range(2, HILBERT + 1)]
    eps = float(np.finfo(float).eps)
    lines = {
        "error of the solution": [(each.condition, max(each.error, eps)) for each in found],
        "residual over norm x n": [(each.condition, max(each.residual * eps, eps / 100)) for each in found],
        "condition x eps": [(each.condition, each.condition * eps) for each in found],
    }
    worst = found[-1]
    note = f"condition {worst.condition:.1e}, solution off by {worst.error:.1e}"
    by = "cuSOLVER"
    row = judged(f"Hilbert's matrix, n = {HILBERT}", by, worst.residual, SATISFIED, note=note)
    return row, Curve("hilbert", "condition number", "relative to the solution, or to the norms", lines, "xy")


def refusals() -> list[Check]:
    """Give the solvers what has no solution."""
    singular, indefinite = np.diag([1.0, 2.0, 0.0, 4.0]), np.diag([1.0, 2.0, -3.0, 4.0])
    b = np.ones(4)
    return [
        refusal(
            "a singular matrix is refused, and its pivot named", SingularMatrixError,
            lambda: libraries.solve(cuda.to_device(singular), cuda.to_device(b)),
        ),
        refusal(
            "a matrix that is not positive definite is refused, and its minor named", NotPositiveDefiniteError,
            lambda: libraries.cholesky(cuda.to_device(indefinite)),
        ),
    ]  # fmt: skip  # rows of a table
