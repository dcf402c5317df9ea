"""Multiply by the Laplacian of a grid with cuSPARSE, in every sparse format, and solve systems with it.

On the simulator, which runs the libraries in software and does not measure time:

    $ library-tour run sparse
    sparse: Sparse matrices with cuSPARSE, and conjugate gradients
    size 24: points per side of the grid
                           by          error    bound  check
    ────────────────────────────────────────────────────────
    SpMV, CSR              cuSPARSE  5.5e-17  1.6e-15  right
    SpMV, COO              cuSPARSE  5.5e-17  1.6e-15  right
    SpMV, SELL             cuSPARSE  5.5e-17  1.6e-15  right
    SpMM, 8 vectors        cuSPARSE  5.5e-17  1.6e-15  right
    SpGEMM, its square     cuSPARSE     0.00  1.6e-15  right
    SDDMM                  cuSPARSE  5.3e-17  3.1e-15  right
    dense to sparse        cuSPARSE     0.00     0.00  right
    SpSV, lower triangle   cuSPARSE  3.0e-17  1.1e-15  right
    SpSV, upper triangle   cuSPARSE  3.0e-17  1.1e-15  right
    SpSM, 8 columns        cuSPARSE  2.9e-17  1.1e-15  right
    CSR, CSC, COO, CSR     cuSPARSE     0.00     0.00  right
    sparse x dense vector  cuSPARSE  6.8e-19  1.7e-14  right
    dense x sparse vector  cuSPARSE  2.4e-17  1.7e-14  right
    nvmath SpMV, CSR
    conjugate gradients    cuSPARSE  0.00176     30.0  right
    CG, preconditioned     cuSPARSE  0.00126     30.0  right
    nvmath SpMV, CSR: Skipped: nvmath provides this function only on a GPU
    conjugate gradients: 288 iterations, each of which is one graph launch; the
    error is the residual divided by norm x n x eps. The plot shows the first 109.
    After these, the residual from the recurrence keeps falling, but b - A x does
    not.
    CG, preconditioned: two triangular solves per iteration; 41 iterations reach the
    level of rounding
    The errors of products are in the 2-norm, relative to the product of the
    absolute values. Rates in GB/s count the arrays of the matrix and each vector
    once. CSR stores one offset per row, and COO stores the row index of each
    element. SELL stores slices of 32 rows column by column, so that the lanes of a
    warp read adjacent elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.benchmark import measure_host

from .. import timing
from ..checks import poisoned
from ..device_code import load
from ..limits import copy_limit
from ..stop import Curve, Limit, Result, Row, Size, Value
from .conjugate_gradients import CapturedIteration, PreconditionedIteration
from .high_level import lender, lent, nvmath_row
from .judgement import judged, relative_error, work_of

TITLE = "Sparse matrices with cuSPARSE, and conjugate gradients"
SIZE = Size("points per side of the grid", full=2048, small=24, least=3)
CHECKED = 64
SPARSITIES = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
CROSSING = 4096  # rows of the matrices for the cross-over

Array = NDArray[Any]


@functools.lru_cache(maxsize=2)
def laplacian(n: int, dtype: Any = np.float64) -> Any:
    """Return the five-point Laplacian of an n x n grid with zeros around it, times the square of the spacing."""
    from scipy import sparse

    line = sparse.diags_array([2.0, -1.0, -1.0], offsets=[0, -1, 1], shape=(n, n), dtype=dtype)
    unit = sparse.eye_array(n, dtype=dtype)
    return (sparse.kron(unit, line) + sparse.kron(line, unit)).tocsr()


def random_sparse(shape: tuple[int, int], density: float) -> Any:
    """Return a matrix in which a fraction `density` of the elements is normally distributed and the rest is zero."""
    from scipy import sparse

    random = np.random.default_rng()
    return sparse.csr_array(np.where(random.random(shape) < density, random.standard_normal(shape), 0.0))


def bound_of(longest: int, dtype: Any = np.float64) -> float:
    """Return the largest allowed error relative to the product of absolute values: one rounding per element."""
    return float((longest + 2) * np.finfo(dtype).eps)


def run(device: cuda.Device, size: int) -> Result:
    """Check every product at a small size, and time the product with a vector at the full size."""
    limit = copy_limit(device)
    n = min(size, CHECKED)
    rows = [format_row(format, n, size, limit) for format in ("csr", "coo", "sell")]
    rows += product_rows(n)
    rows += solve_rows(n)
    rows += [*vector_rows(n, size, limit), high_level_row(n, size)]
    gradients, residuals = gradient_rows(n)
    rows += gradients
    pictures = [residuals]
    notes = [
        "The errors of products are in the 2-norm, relative to the product of the absolute values. Rates in GB/s count "
        "the arrays of the matrix and each vector once. CSR stores one offset per row, and COO stores the row index of "
        "each element. SELL stores slices of 32 rows column by column, so that the lanes of a warp read adjacent "
        "elements.",
    ]
    if timing.available():
        crossing, note = crossing_curve()
        pictures.append(crossing)
        notes.append(note)
    return Result(rows, limit, pictures=pictures, notes=notes)


def error_of(got: Array, a: Any, b: Any) -> float:
    """Return the error of a product of sparse or dense operands, relative to the product of absolute values."""
    left, right = a.astype(np.longdouble), b.astype(np.longdouble)
    result, scale = left @ right, abs(left) @ abs(right)
    dense = [x.toarray() if hasattr(x, "toarray") else np.asarray(x) for x in (result, scale)]
    return relative_error(got.astype(np.longdouble), dense[0], float(np.linalg.norm(dense[1].ravel())))


def format_row(format: str, n: int, size: int, limit: Limit) -> Row:
    """Multiply the Laplacian, stored in one format, and a vector."""
    name = f"SpMV, {format.upper()}"
    host = laplacian(n)
    x = np.random.default_rng().standard_normal(n * n)
    a = libraries.SparseMatrix.from_host(host, format)
    got = libraries.spmv(a, cuda.to_device(x), poisoned(n * n, np.float64)).to_host()
    does = work_of(2 * host.nnz, a, x, got)
    work: Callable[[], object] | None = None
    amount = 0
    if timing.available():
        matrix = libraries.SparseMatrix.from_host(laplacian(size), format)
        vector, out = (cuda.zeros(size * size, np.float64) for _ in range(2))
        amount = matrix.nbytes + vector.nbytes + out.nbytes

        def work() -> object:
            return libraries.spmv(matrix, vector, out)

    error = error_of(got, host, x)
    return judged(name, "cuSPARSE", error, bound_of(5), work=work, amount=amount, limit=limit, does=does)


def product_rows(n: int) -> list[Row]:
    """Multiply a sparse matrix by several vectors and by itself, sample a dense product, and convert a dense matrix."""
    by = "cuSPARSE"
    host = laplacian(n)
    random = np.random.default_rng()
    dense = random.standard_normal((n * n, 8))
    a = libraries.SparseMatrix.from_host(host)
    got = libraries.spmm(a, cuda.to_device(dense), poisoned(dense.shape, np.float64)).to_host()
    does = work_of(2 * host.nnz * dense.shape[1], a, dense, got)
    rows = [judged("SpMM, 8 vectors", by, error_of(got, host, dense), bound_of(5), does=does)]

    square = libraries.spgemm(a, a)
    squared = square.to_host()
    # Each element is multiplied by all elements of the row whose index equals its column index.
    meetings = int(np.diff(host.indptr)[host.indices].sum())
    does = work_of(2 * meetings, a, a, square)
    rows.append(judged("SpGEMM, its square", by, error_of(squared.toarray(), host, host), bound_of(5), does=does))

    pattern = random_sparse((n, n), 0.1)
    left, right = random.standard_normal((n, 12)), random.standard_normal((12, n))
    sampled = libraries.SparseMatrix.from_host(pattern)
    libraries.sddmm(cuda.to_device(left), cuda.to_device(right), sampled)
    found = sampled.to_host().toarray()
    stored = pattern.toarray() != 0
    exact = np.where(stored, left.astype(np.longdouble) @ right.astype(np.longdouble), 0)
    scale = float(np.linalg.norm(np.where(stored, abs(left) @ abs(right), 0)))
    does = work_of(2 * pattern.nnz * left.shape[1], left, right, sampled)
    rows.append(judged("SDDMM", by, relative_error(found, exact, scale), bound_of(12), does=does))

    kept = random_sparse((n, n + 1), 0.2)
    made = libraries.sparse_from_dense(cuda.to_device(kept.toarray()))
    back = made.to_host()
    different = float(abs(back - kept).sum()) + abs(back.nnz - kept.nnz)
    does = work_of(0, kept.toarray(), made)
    rows.append(judged("dense to sparse", by, different, 0.0, does=does))
    return rows


def solve_rows(n: int) -> list[Row]:
    """Solve systems with the two triangles of the Laplacian, and convert it to other formats and back."""
    from scipy import sparse

    by, host = "cuSPARSE", laplacian(n)
    a = libraries.SparseMatrix.from_host(host)
    b = np.random.default_rng().standard_normal((n * n, 8))
    rows = []
    for name, part in (("lower", sparse.tril(host).tocsr()), ("upper", sparse.triu(host).tocsr())):
        right = cuda.to_device(b[:, 0].copy())
        x = libraries.spsv(a, right, poisoned(n * n, np.float64), lower=name == "lower").to_host()
        does = work_of(2 * part.nnz, part.data, part.indices, part.indptr, b[:, 0], x)
        rows.append(judged(f"SpSV, {name} triangle", by, residual_of(part, x, b[:, 0]), bound_of(3), does=does))
    x = libraries.spsm(a, cuda.to_device(b), poisoned(b.shape, np.float64), lower=False).to_host()
    does = work_of(2 * part.nnz * b.shape[1], part.data, part.indices, part.indptr, b, x)
    rows.append(judged("SpSM, 8 columns", by, residual_of(part, x, b), bound_of(3), does=does))
    columns = libraries.sparse_convert(a, "csc")
    back = libraries.sparse_convert(libraries.sparse_convert(columns, "coo"), "csr")
    different = float(abs(back.to_host() - host).sum()) + abs(back.count - host.nnz)
    rows.append(judged("CSR, CSC, COO, CSR", by, different, 0.0, does=work_of(0, a, columns, back)))
    return rows


def residual_of(a: Any, x: Array, b: Array) -> float:
    """Return the residual of a system, relative to the sum of the absolute values of the terms of each row."""
    scale = abs(a) @ abs(x) + abs(b)
    return relative_error(a.astype(np.longdouble) @ x.astype(np.longdouble), b, float(np.linalg.norm(scale.ravel())))


def vector_rows(n: int, size: int, limit: Limit) -> list[Row]:
    """Multiply a sparse vector with a dense vector and with a dense matrix."""
    by = "cuSPARSE"
    random = np.random.default_rng()
    length = n * n
    indices = np.sort(random.choice(length, length // 8 + 1, replace=False)).astype(np.int32)
    values, y, a = (random.standard_normal(shape) for shape in (indices.size, length, (n, length)))
    vector = libraries.SparseVector(length, cuda.to_device(indices), cuda.to_device(values))
    bound = bound_of(indices.size)
    inner = np.array([libraries.spdot(vector, cuda.to_device(y))])
    # Only the elements at the indices that the sparse vector stores are read from the dense operands.
    does = work_of(2 * values.size, indices, values, y[indices])
    rows = [judged("sparse x dense vector", by, error_of(inner, y[None, indices], values), bound, does=does)]

    got = libraries.gemvi(cuda.to_device(a), vector, poisoned(n, np.float64)).to_host()
    work: Callable[[], object] | None = None
    amount = 0
    if timing.available():
        matrix, out = cuda.zeros((size, size), np.float64), cuda.zeros(size, np.float64)
        few = np.arange(0, size, 8, dtype=np.int32)
        large = libraries.SparseVector(size, cuda.to_device(few), cuda.full(few.size, 1.0, np.float64))
        amount = size * few.size * matrix.itemsize

        def work() -> object:
            return libraries.gemvi(matrix, large, out)

    error = error_of(got, a[:, indices], values)
    does = work_of(2 * n * values.size, indices, values, a[:, indices], got)
    rows.append(judged("dense x sparse vector", by, error, bound, work=work, amount=amount, limit=limit, does=does))
    return rows


def high_level_row(n: int, size: int) -> Row:
    """Multiply with nvmath.sparse, which takes arrays of SciPy and NumPy, or of CuPy."""
    host, dense = laplacian(n), np.random.default_rng().standard_normal((n * n, 1))

    def product(a: Any, b: Any, out: Any) -> Any:
        import nvmath

        return nvmath.sparse.matmul(a, b, c=out, beta=1.0)

    def make_work() -> Callable[[], object]:
        x, out = (lent(cuda.zeros((size * size, 1))) for _ in range(2))
        from cupyx.scipy import sparse  # type: ignore[import-not-found]  # because CuPy is not a dependency

        return functools.partial(product, sparse.csr_matrix(laplacian(size)), x, out)

    package = lender()
    return nvmath_row(
        "nvmath SpMV, CSR",
        lambda: product(host, dense, np.zeros_like(dense)),
        lambda got: error_of(got, host, dense),
        bound_of(5),
        gpu_only=True,
        make_work=make_work if package and package.__name__ == "cupy" else None,
    )


def gradient_rows(n: int) -> tuple[list[Row], Curve]:
    """Solve the Laplacian with a point source, and keep the history of the residual.

    In exact arithmetic the method needs no more iterations than there are different eigenvalues whose eigenvectors
    the source contains. After k iterations the error, in the norm of the matrix, is at most 2 f^k times that at the
    beginning, where f = (sqrt(c) - 1) / (sqrt(c) + 1) and c is the condition number; the residual, in the 2-norm, is at
    most 2 sqrt(c) f^k times that at the beginning.
    """
    host = laplacian(n)
    b = np.zeros(n * n)
    b[n * (n // 2) + n // 2] = 1.0
    # By the bound, this many iterations are enough for all digits, because sqrt(c) is about 2 n / pi.
    iterations = 12 * n
    timed: dict[str, dict[str, Value]] = {}
    with CapturedIteration(load("sparse"), libraries.SparseMatrix.from_host(host), b, iterations) as iteration:
        for _ in range(iterations):
            iteration.launch()
        x, history = iteration.solution(), iteration.residuals(iterations)
        if timing.available():
            timed = {
                "graph": costs(iteration.launch, iteration.stream),
                "calls": costs(iteration.queue, iteration.stream),
            }
    residual = float(np.linalg.norm(b - host @ x))
    scale = 8 * float(np.linalg.norm(x)) * n * n * float(np.finfo(float).eps)
    preconditioned, second = preconditioned_row(host, b, 5 * n, scale)
    curve = residual_curve(history, second, n)
    drawn = len(next(iter(curve.lines.values()))) - 1
    note = (
        f"{iterations} iterations, each of which is one graph launch; the error is the residual divided by norm x n x "
        f"eps. The plot shows the first {drawn}. After these, the residual from the recurrence keeps falling, but b - "
        "A x does not."
    )
    row = judged("conjugate gradients", "cuSPARSE", residual / scale, 30.0, note=note)
    rows = [
        row,
        preconditioned,
        *(Row(f"an iteration, {how}", {"by": "cuSPARSE", **values}) for how, values in timed.items()),
    ]
    return rows, curve


def preconditioned_row(host: Any, b: Array, iterations: int, scale: float) -> tuple[Row, Array]:
    """Solve the same system with two triangular solves per iteration; return the history of the residual too."""
    a = libraries.SparseMatrix.from_host(host)
    with PreconditionedIteration(load("sparse"), a, float(host[0, 0]), b, iterations) as iteration:
        for _ in range(iterations):
            iteration.launch()
        x, history = iteration.solution(), iteration.residuals(iterations)
    kept = until_rounding(history)
    note = f"two triangular solves per iteration; {len(kept) - 1} iterations reach the level of rounding"
    residual = float(np.linalg.norm(b - host @ x))
    row = judged("CG, preconditioned", "cuSPARSE", residual / scale, 30.0, note=note)
    return row, kept


def until_rounding(history: Array) -> Array:
    """Return the norms of the residual down to the level of rounding."""
    return history[: int(np.argmax(history < np.finfo(float).eps * history[0])) or len(history)]


def costs(work: Callable[[], object], stream: cuda.Stream) -> dict[str, Value]:
    """Return the columns of a call: its time on the device and its time on the host."""
    host_us = 1e6 * (measure_host(work, stream=stream, options=timing.OPTIONS).median or 0.0)
    return {**timing.rates(timing.median_ms(work, stream)), "host us": host_us}


def residual_curve(history: Array, preconditioned: Array, n: int) -> Curve:
    """Draw the norm of both residuals down to the level of rounding, and the bound of the first."""
    shown = [(float(k), float(norm)) for k, norm in enumerate(until_rounding(history))]
    root = 1 / np.tan(
        np.pi / (2 * (n + 1))
    )  # square root of the condition number, from the sines and cosines of the eigenvalues
    rate = (root - 1) / (root + 1)
    bound = [(k, float(2 * root * history[0] * rate**k)) for k, _ in shown]
    lines = {
        "conjugate gradients": shown,
        "preconditioned": [(float(k), float(norm)) for k, norm in enumerate(preconditioned)],
        "bound by the condition number": bound,
    }
    return Curve("residuals", "iteration", "norm of the residual", lines, "y")


def crossing_curve() -> tuple[Curve, str]:
    """Measure a product with 64 vectors against the sparsity of the matrix, sparse and dense; say where they cross."""
    n, columns = CROSSING, 64
    b, out = cuda.to_device(random_dense((n, columns))), cuda.empty((n, columns), np.float32)
    lines: dict[str, list[tuple[float, float]]] = {"sparse": [], "dense": []}
    for sparsity in SPARSITIES:
        host = random_sparse((n, n), 1 - sparsity).astype(np.float32)
        sparse, dense = libraries.SparseMatrix.from_host(host), cuda.to_device(host.toarray())
        lines["sparse"].append((100 * sparsity, multiply_ms(libraries.spmm, sparse, b, out)))
        lines["dense"].append((100 * sparsity, multiply_ms(libraries.gemm, dense, b, out)))
    faster = [zeros for (zeros, ms), (_, dense_ms) in zip(*lines.values(), strict=True) if ms < dense_ms]
    when = f"once {faster[0]:g} % of the elements are zero" if faster else "at none of the tested percentages"
    note = (
        f"Multiplying a {n:,} x {n:,} matrix by {columns} vectors is faster with a sparse matrix {when}. The tested "
        f"percentages of zeros are {', '.join(f'{100 * sparsity:g} %' for sparsity in SPARSITIES)}."
    )
    return Curve("crossing", "zeros, %", f"ms for {columns} vectors", lines, "y"), note


def random_dense(shape: tuple[int, int]) -> Array:
    """Return normally distributed elements in single precision."""
    return np.random.default_rng().standard_normal(shape, np.float32)


def multiply_ms(product: Callable[..., object], matrix: Any, b: cuda.DeviceArray, out: cuda.DeviceArray) -> float:
    """Measure one product."""
    return timing.median_ms(lambda: product(matrix, b, out), quick=True)
