"""Multiply sparse matrices with cuSPARSE: the Laplacian of a grid in every format, and conjugate gradients on it.

On the software driver, where NumPy and SciPy stand in for the libraries and nothing is timed:

    $ library-tour run sparse
    sparse: cuSPARSE on a grid's Laplacian, and conjugate gradients
    size 24: points on a side of the grid
    limit: copy bandwidth
                                    by       error    bound  check
    ──────────────────────────────────────────────────────────────
    Laplacian x vector, CSR         SciPy  5.2e-17  1.6e-15  right
    Laplacian x vector, COO         SciPy  4.8e-17  1.6e-15  right
    Laplacian x vector, SELL
    x 8 vectors (SpMM)              SciPy  5.5e-17  1.6e-15  right
    x itself (SpGEMM)               SciPy     0.00  1.6e-15  right
    dense x dense, sampled (SDDMM)  SciPy  5.8e-17  3.1e-15  right
    dense to sparse                 SciPy     0.00     0.00  right
    sparse x dense vector           SciPy  2.5e-17  1.7e-14  right
    conjugate gradients             SciPy  0.00182     30.0  right
    Laplacian x vector, SELL: not run here: SciPy does not store slices
    conjugate gradients: 288 iterations, on the host; residual over norm x n x eps
    Errors are in the 2-norm, over the product of the absolute values. GB/s count
    the matrix's arrays, and each vector once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import load
from ..limits import copy_limit
from ..stop import Curve, Limit, Result, Row, Size
from .judgement import judged, relative_error
from .tools import Tools

TITLE = "cuSPARSE on a grid's Laplacian, and conjugate gradients"
SIZE = Size("points on a side of the grid", full=2048, small=24, least=3)
CHECKED = 64
SPARSITIES = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
CROSSING = 4096  # rows of the matrices for the cross-over

Array = NDArray[Any]


def laplacian(n: int, dtype: Any = np.float64) -> Any:
    """Return the five-point Laplacian of an n x n grid with zeros around it, times the spacing's square."""
    from scipy import sparse

    line = sparse.diags_array([2.0, -1.0, -1.0], offsets=[0, -1, 1], shape=(n, n), dtype=dtype)
    unit = sparse.eye_array(n, dtype=dtype)
    return (sparse.kron(unit, line) + sparse.kron(line, unit)).tocsr()


def random_sparse(shape: tuple[int, int], density: float) -> Any:
    """Return a matrix of normal numbers of which a share is there."""
    from scipy import sparse

    random = np.random.default_rng()
    return sparse.csr_array(np.where(random.random(shape) < density, random.standard_normal(shape), 0.0))


def bound_of(longest: int, dtype: Any = np.float64) -> float:
    """Return how far a product may be off, over that of the absolute values: a rounding for each element of a row."""
    return float((longest + 2) * np.finfo(dtype).eps)


def run(device: cuda.Device, size: int) -> Result:
    """Check every product at a small size, and time that with a vector at the full one."""
    tools = Tools()
    limit = copy_limit(device)
    n = min(size, CHECKED)
    rows = [format_row(tools, format, n, size, limit) for format in ("csr", "coo", "sell")]
    rows += product_rows(tools, n)
    rows.append(vector_row(tools, n))
    gradients, history = gradient_row(tools, n)
    rows.append(gradients)
    pictures = [Curve("residuals", "iteration", "norm of the residual", {"conjugate gradients": history}, "y")]
    if timing.available() and tools.on_device:
        pictures.append(crossing_curve())
    note = (
        "Errors are in the 2-norm, over the product of the absolute values. GB/s count the matrix's arrays, and "
        "each vector once."
    )
    return Result(rows, limit, pictures=pictures, notes=[note])


def error_of(got: Array, a: Any, b: Any) -> float:
    """Return the error of a product of sparse or dense operands, over that of the absolute values."""
    left, right = a.astype(np.longdouble), b.astype(np.longdouble)
    result, scale = left @ right, abs(left) @ abs(right)
    dense = [x.toarray() if hasattr(x, "toarray") else np.asarray(x) for x in (result, scale)]
    return relative_error(got.astype(np.longdouble), dense[0], float(np.linalg.norm(dense[1].ravel())))


def format_row(tools: Tools, format: str, n: int, size: int, limit: Limit) -> Row:
    """Multiply the Laplacian, stored in one format, and a vector."""
    name = f"Laplacian x vector, {format.upper()}"
    if format == "sell" and not tools.on_device:
        return Row(name, note="not run here: SciPy does not store slices")
    host = laplacian(n)
    x = np.random.default_rng().standard_normal(n * n)
    got = tools.get(tools.spmv(tools.sparse(host, format), tools.put(x)))
    work: Callable[[], object] | None = None
    amount = 0
    if tools.on_device and timing.available():
        matrix = tools.sparse(laplacian(size), format)
        vector, out = (cuda.zeros(size * size, np.float64) for _ in range(2))
        amount = matrix.nbytes + vector.nbytes + out.nbytes

        def work() -> object:
            return tools.spmv(matrix, vector, out)

    error = error_of(got, host, x)
    return judged(name, tools.by("sparse"), error, bound_of(5), work=work, amount=amount, limit=limit)


def product_rows(tools: Tools, n: int) -> list[Row]:
    """Multiply with several vectors, with another sparse matrix, and only where the result is wanted."""
    by = tools.by("sparse")
    host = laplacian(n)
    random = np.random.default_rng()
    dense = random.standard_normal((n * n, 8))
    a = tools.sparse(host)
    got = tools.get(tools.spmm(a, tools.put(dense)))
    rows = [judged("x 8 vectors (SpMM)", by, error_of(got, host, dense), bound_of(5))]

    square = tools.spgemm(a, a)
    squared = square.to_host() if tools.on_device else square
    rows.append(judged("x itself (SpGEMM)", by, error_of(squared.toarray(), host, host), bound_of(5)))

    pattern = random_sparse((n, n), 0.1)
    left, right = random.standard_normal((n, 12)), random.standard_normal((12, n))
    sampled = tools.sparse(pattern)
    tools.sddmm(tools.put(left), tools.put(right), sampled)
    found = (sampled.to_host() if tools.on_device else sampled).toarray()
    stored = tools.sparse(pattern).to_host().toarray() != 0 if tools.on_device else pattern.toarray() != 0
    exact = np.where(stored, left.astype(np.longdouble) @ right.astype(np.longdouble), 0)
    scale = float(np.linalg.norm(np.where(stored, abs(left) @ abs(right), 0)))
    rows.append(judged("dense x dense, sampled (SDDMM)", by, relative_error(found, exact, scale), bound_of(12)))

    made = tools.sparse_from_dense(tools.put(random_sparse((n, n), 0.2).toarray()))
    back = made.to_host() if tools.on_device else made
    again = tools.sparse_from_dense(tools.put(back.toarray()))
    same = (again.to_host() if tools.on_device else again) - back
    rows.append(judged("dense to sparse", by, float(abs(same).sum()), 0.0))
    return rows


def vector_row(tools: Tools, n: int) -> Row:
    """Multiply a sparse vector and a dense one."""
    random = np.random.default_rng()
    size = n * n
    indices = np.sort(random.choice(size, size // 8 + 1, replace=False)).astype(np.int32)
    values, y = random.standard_normal(indices.size), random.standard_normal(size)
    exact = values.astype(np.longdouble) @ y[indices]
    scale = float(abs(values) @ abs(y[indices]))
    if tools.on_device:
        from .sparse_matrix import SparseVector

        vector = SparseVector(size, cuda.to_device(indices), cuda.to_device(values))
        got = tools.spdot(vector, cuda.to_device(y))
    else:
        got = values @ y[indices]
    error = float(abs(got - exact)) / scale
    return judged("sparse x dense vector", tools.by("sparse"), error, bound_of(indices.size))


def gradient_row(tools: Tools, n: int) -> tuple[Row, list[tuple[float, float]]]:
    """Solve the Laplacian with a point source, and keep the residual's history.

    In exact arithmetic as many iterations suffice as there are different eigenvalues that the source excites;
    the error falls by (sqrt(c) - 1) / (sqrt(c) + 1) each time, c being the condition number.
    """
    from .conjugate_gradients import iterate_captured, iterate_on_host

    host = laplacian(n)
    b = np.zeros(n * n)
    b[n * (n // 2) + n // 2] = 1.0
    # The condition number is about (2 n / pi)^2, and the bound of the error's fall exp(-2 k / sqrt(c)).
    iterations = 12 * n
    if tools.on_device:
        x, history = iterate_captured(load("sparse"), tools.sparse(host), b, iterations)
    else:
        x, history = iterate_on_host(host, b, iterations)
    residual = float(np.linalg.norm(b - host @ x))
    scale = 8 * float(np.linalg.norm(x)) * n * n * float(np.finfo(float).eps)
    note = f"{iterations} iterations, {'each the launch of one graph' if tools.on_device else 'on the host'}"
    row = judged(
        "conjugate gradients", tools.by("sparse"), residual / scale, 30.0, note=f"{note}; residual over norm x n x eps"
    )
    shown = [(float(k), float(norm)) for k, norm in enumerate(history) if norm > 0]
    return row, shown


def crossing_curve() -> Curve:
    """Measure a product with 64 vectors against the matrix's sparsity, stored sparse and dense."""
    from .blas import gemm
    from .sparse_blas import spmm
    from .sparse_matrix import SparseMatrix

    n, columns = CROSSING, 64
    b, out = (cuda.zeros((n, columns), np.float32) for _ in range(2))
    dense = cuda.zeros((n, n), np.float32)
    dense_ms = timing.median_ms(lambda: gemm(dense, b, out))
    lines: dict[str, list[tuple[float, float]]] = {"sparse": [], "dense": []}
    for sparsity in SPARSITIES:
        matrix = SparseMatrix.from_host(random_sparse((n, n), 1 - sparsity).astype(np.float32))
        lines["sparse"].append((100 * sparsity, multiply_ms(spmm, matrix, b, out)))
        lines["dense"].append((100 * sparsity, dense_ms))
    return Curve("crossing", "zeros, %", "ms for 64 vectors", lines)


def multiply_ms(product: Callable[..., object], matrix: Any, b: cuda.DeviceArray, out: cuda.DeviceArray) -> float:
    """Measure one product."""
    return timing.median_ms(lambda: product(matrix, b, out))
