"""Solve many small systems in one call, refine a solution, and reuse the stages of a sparse solver."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries

from .. import timing
from ..stop import Limit, Row
from .judgement import judged, skipped_row, work_of
from .precisions import exact, numbers

# The matrices of a batch that is checked, of one that is timed, and the rows of the latter's matrices.
CHECKED_BATCH, TIMED_BATCH, TIMED_ROWS = 16, 10_000, 32
# The bound of LAPACK's own tests for a residual divided by norm x n x eps.
SATISFIED = 30.0

Array = NDArray[Any]


def scaled_residual(a: Array, x: Array, b: Array) -> float:
    """Return the norm of a x - b in extended precision, divided by norm(a) norm(x) n eps."""
    rest = float(np.linalg.norm((exact(a) @ exact(x) - exact(b)).ravel()))
    size = float(np.linalg.norm(a.ravel()) * np.linalg.norm(x.ravel()))
    return float(rest / (size * a.shape[-1] * np.finfo(np.float64).eps))


def batch_rows(n: int, limit: Limit) -> list[Row]:
    """Factor a batch of matrices in one call, with LU to solve systems, and with Cholesky."""
    n = max(n // 4, 2)
    a, b = numbers((CHECKED_BATCH, n, n), np.float64), numbers((CHECKED_BATCH, n, 1), np.float64)
    positive = a @ a.swapaxes(1, 2) + np.eye(n)
    x = libraries.solve(cuda.to_device(a), cuda.to_device(b)).to_host()
    factors = libraries.cholesky(cuda.to_device(positive)).to_host()
    errors = {
        "LU": max(map(scaled_residual, a, x, b)),
        "Cholesky": max(map(scaled_residual, factors, factors.swapaxes(1, 2), positive)),
    }
    works: dict[str, Callable[[], object]] = {}
    if timing.available():
        many = numbers((TIMED_BATCH, TIMED_ROWS, TIMED_ROWS), np.float64)
        right = cuda.to_device(numbers((TIMED_BATCH, TIMED_ROWS, 1), np.float64))
        definite = cuda.to_device(many @ many.swapaxes(1, 2) + np.eye(TIMED_ROWS))
        works["LU"] = functools.partial(libraries.solve, cuda.to_device(many), right)
        works["Cholesky"] = functools.partial(libraries.cholesky, definite)
    operations = {"LU": 2 / 3, "Cholesky": 1 / 3}
    return [
        judged(
            f"{name}, a batch of {CHECKED_BATCH}", "cuSOLVER", error, SATISFIED, work=works.get(name),
            amount=operations[name] * TIMED_BATCH * TIMED_ROWS**3, limit=limit,
            does=work_of(operations[name] * CHECKED_BATCH * n**3, a, a),
        )
        for name, error in errors.items()
    ]  # fmt: skip  # grouped by meaning


def refined_row(n: int, size: int, limit: Limit) -> Row:
    """Factor a double-precision matrix in single precision, and refine the solution iteratively to double precision."""
    a, b = numbers((n, n), np.float64) + n * np.eye(n), numbers((n, 1), np.float64)
    x = libraries.solve(cuda.to_device(a), cuda.to_device(b), precision="float32").to_host()
    work: Callable[[], object] | None = None
    if timing.available():
        large = cuda.to_device(numbers((size, size), np.float64) + size * np.eye(size))
        right = cuda.to_device(numbers((size, 1), np.float64))
        work = functools.partial(libraries.solve, large, right, precision="float32")
    return judged("LU float32, refined", "cuSOLVER", scaled_residual(a, x, b), SATISFIED, work=work,
                  amount=2 / 3 * size**3, limit=limit,
                  does=work_of(2 / 3 * n**3, a, b, x))  # fmt: skip  # grouped by meaning


def staged_row(n: int) -> Row:
    """Solve with a sparse matrix in stages, and again with new values of the same sparsity pattern."""
    from .sparse import laplacian

    title = "sparse, in stages"
    if "cudss" not in cuda.capabilities():
        return skipped_row(title, 'cuDSS is missing; the `cu13` extra installs it: pip install "cudart-py[cu13]"')
    matrix = laplacian(n)
    b = numbers((n * n, 2), np.float64)
    solver = libraries.SparseSolver(libraries.SparseMatrix.from_host(matrix), kind="positive")
    solver.analyze()
    solver.factorize()
    first = solver.solve(cuda.to_device(b)).to_host()
    solver.refactorize(cuda.to_device(2 * matrix.data))  # without another analysis
    second = solver.solve(cuda.to_device(b)).to_host()
    errors = []
    for values, x in ((matrix, first), (2 * matrix, second)):
        rest = float(np.linalg.norm(values.astype(np.longdouble) @ exact(x) - exact(b)))
        # The norm of the Laplacian is 8.
        errors.append(float(rest / (8 * np.linalg.norm(x) * n * n * np.finfo(np.float64).eps)))
    return judged(title, "cuDSS", max(errors), SATISFIED, does=work_of(0, b, first))
