"""Every function of `cudart_py.libraries` on operands of its own, and what CuPy or PyTorch offer for the same work."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py import libraries as lib
from library_tour.libraries.sparse import laplacian

__all__ = ["CALLS", "UNTIMED", "Function", "Operands"]

Call = Callable[[], object]


# It takes seconds for a large grid.
grid_of = cache(laplacian)


class Operands:
    """Matrices of n rows and columns, vectors of n * n elements, and the other operands of the functions.

    `dense` replaces the random elements of the matrix `a`. The operands of `MADE` are made when they are first used.
    Others see our arrays, and copy nothing.
    """

    def __init__(self, n: int, dtype: Any = np.float32, dense: Any = None) -> None:
        self.n, self.dtype = n, np.dtype(dtype)
        self._random = np.random.default_rng(2)
        self.host = self.normal((n, n)) if dense is None else dense.astype(dtype)
        self.a = cuda.to_device(self.host)

    def __getattr__(self, name: str) -> Any:
        if name not in MADE:
            raise AttributeError(name)
        value = MADE[name](self)
        setattr(self, name, value)
        return value

    def normal(self, shape: Any) -> Any:
        """Return normally distributed numbers."""
        return self._random.standard_normal(shape, np.float32).astype(self.dtype)

    def vector(self, count: int) -> cuda.DeviceArray:
        """Return a vector of so many random elements."""
        return cuda.to_device(self.normal(count))


def definite(o: Operands) -> cuda.DeviceArray:
    """Return a symmetric and positive definite matrix."""
    half = o.normal((o.n, o.n))
    return cuda.to_device(((half + half.T) / 2 + 2 * o.n * np.eye(o.n)).astype(o.dtype))


def few(o: Operands) -> lib.SparseVector:
    """Return a sparse vector of n elements, of which every eighth is stored."""
    places = np.arange(0, o.n, 8, dtype=np.int32)
    return lib.SparseVector(o.n, cuda.to_device(places), o.vector(places.size))


def mostly_zero(o: Operands) -> cuda.DeviceArray:
    """Return a dense matrix of which every eighth column is not zero."""
    kept = np.zeros_like(o.host)
    kept[:, ::8] = o.host[:, ::8]
    return cuda.to_device(kept)


def bands(o: Operands) -> tuple[cuda.DeviceArray, ...]:
    """Return the diagonals of n tridiagonal systems."""
    lower, upper = np.full((2, o.n, o.n), -1, o.dtype)
    lower[:, 0], upper[:, -1] = 0, 0
    return tuple(map(cuda.to_device, (lower, np.full((o.n, o.n), 4, o.dtype), upper)))


MADE: dict[str, Callable[[Operands], Any]] = {
    "definite": definite,
    "b": lambda o: cuda.to_device(o.normal((o.n, o.n))),
    "out": lambda o: cuda.empty((o.n, o.n), o.dtype),
    "column": lambda o: o.vector(o.n),
    "result": lambda o: cuda.empty(o.n, o.dtype),
    # Long vectors, and a scalar for a result.
    "x": lambda o: o.a.reshape(-1),
    "y": lambda o: o.vector(o.n * o.n),
    "scalar": lambda o: cuda.empty(1, o.dtype),
    "counts": lambda o: cuda.empty(o.n * o.n, np.uint32),
    # Rows for transforms.
    "signal": lambda o: cuda.to_device((o.host + 1j).astype(np.complex64)),
    "spectrum": lambda o: cuda.empty((o.n, o.n), np.complex64),
    "half_spectrum": lambda o: cuda.zeros((o.n, o.n // 2 + 1), np.complex64),
    # The Laplacian of a grid of n/2 x n/2 points, of SciPy and ours, and one and eight vectors for its rows.
    "grid": lambda o: grid_of(max(4, o.n // 2), o.dtype),
    "sparse": lambda o: lib.SparseMatrix.from_host(o.grid),
    "points": lambda o: o.vector(o.grid.shape[0]),
    "several": lambda o: cuda.to_device(o.normal((o.grid.shape[0], 8))),
    "few": few,
    "mostly_zero": mostly_zero,
    "pattern": lambda o: lib.sparse_from_dense(o.mostly_zero),
    "bands": bands,
    # Lower triangular, with a large diagonal.
    "triangle": lambda o: cuda.to_device(np.tril(o.host) + o.dtype.type(o.n) * np.eye(o.n, dtype=o.dtype)),
}


class Function(NamedTuple):
    """A function: `ours` and `rivals` make calls of the operands, those of the rivals by their modules' names too.

    `waits`: it returns when its work is done. `bytes` and `flops` are what a call moves and computes.
    """

    ours: Callable[[Operands], Call]
    rivals: Mapping[str, Callable[[Any, Operands], Call]] = {}
    waits: bool = False
    bytes: Callable[[Operands], float] | None = None
    flops: Callable[[Operands], float] | None = None

    def peers(self, operands: Operands, modules: Mapping[str, Any]) -> dict[str, Call]:
        """Return the rivals' calls; without those that are not installed or fail, which is said.

        There are none on a driver whose memory others cannot see.
        """
        found: dict[str, Call] = {}
        for name, make in self.rivals.items() if "interop" in cuda.capabilities() else ():
            if modules.get(name):
                try:
                    call = make(modules[name], operands)
                    call()
                except Exception as error:  # each module has errors of its own
                    print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
                else:
                    found[name] = call
        return found


def tensor(torch: Any, array: cuda.DeviceArray) -> Any:
    """Return a tensor over our array."""
    return torch.as_tensor(array, device="cuda")


def in_cupy_sparse(cupy: Any, o: Operands) -> Any:
    """Return the Laplacian in CuPy."""
    return importlib.import_module("cupyx.scipy.sparse").csr_matrix(o.grid)


CALLS: dict[str, Function] = {
    # cuBLAS
    "gemm": Function(
        lambda o: partial(lib.gemm, o.a, o.b, o.out),
        {"torch": lambda m, o: partial(m.matmul, tensor(m, o.a), tensor(m, o.b), out=tensor(m, o.out))},
        flops=lambda o: 2 * o.n**3,
    ),
    "gemm_epilogue": Function(
        lambda o: partial(lib.gemm_epilogue, o.a, o.b, o.column, o.out, activation="relu"),
        {"torch": lambda m, o: lambda: m.addmm(tensor(m, o.column), tensor(m, o.a), tensor(m, o.b)).relu_()},
        flops=lambda o: 2 * o.n**3,
    ),
    "gemv": Function(
        lambda o: partial(lib.gemv, o.a, o.column, o.result),
        {"torch": lambda m, o: partial(m.mv, tensor(m, o.a), tensor(m, o.column), out=tensor(m, o.result))},
        bytes=lambda o: o.a.nbytes,
    ),
    "axpy": Function(
        lambda o: partial(lib.axpy, 0.5, o.x, o.y),
        {"torch": lambda m, o: partial(tensor(m, o.y).add_, tensor(m, o.x), alpha=0.5)},
        bytes=lambda o: 3 * o.x.nbytes,
    ),
    "scal": Function(
        lambda o: partial(lib.scal, 1.0, o.x),
        {"torch": lambda m, o: partial(tensor(m, o.x).mul_, 1.0)},
        bytes=lambda o: 2 * o.x.nbytes,
    ),
    "dot": Function(
        lambda o: partial(lib.dot, o.x, o.y, o.scalar),
        {"torch": lambda m, o: partial(m.dot, tensor(m, o.x), tensor(m, o.y))},
        bytes=lambda o: 2 * o.x.nbytes,
    ),
    # cuFFT
    "fft": Function(
        lambda o: partial(lib.fft, o.signal, out=o.spectrum, axes=-1),
        {"cupy": lambda m, o: partial(m.fft.fft, m.asarray(o.signal))},
        bytes=lambda o: 2 * o.signal.nbytes,
    ),
    "ifft": Function(
        lambda o: partial(lib.ifft, o.signal, out=o.spectrum, axes=-1),
        {"cupy": lambda m, o: partial(m.fft.ifft, m.asarray(o.signal))},
        bytes=lambda o: 2 * o.signal.nbytes,
    ),
    "rfft": Function(
        lambda o: partial(lib.rfft, o.a, out=o.half_spectrum, axes=-1),
        {"cupy": lambda m, o: partial(m.fft.rfft, m.asarray(o.a))},
        bytes=lambda o: o.a.nbytes + o.half_spectrum.nbytes,
    ),
    "irfft": Function(
        lambda o: partial(lib.irfft, o.half_spectrum, out=o.out, axes=-1),
        {"cupy": lambda m, o: partial(m.fft.irfft, m.asarray(o.half_spectrum))},
        bytes=lambda o: o.a.nbytes + o.half_spectrum.nbytes,
    ),
    # cuSPARSE
    "spmv": Function(
        lambda o: partial(lib.spmv, o.sparse, o.points),
        {"cupy": lambda m, o: partial(in_cupy_sparse(m, o).dot, m.asarray(o.points))},
        bytes=lambda o: o.sparse.nbytes + 2 * o.points.nbytes,
    ),
    "spmm": Function(
        lambda o: partial(lib.spmm, o.sparse, o.several),
        {"cupy": lambda m, o: partial(in_cupy_sparse(m, o).dot, m.asarray(o.several))},
        bytes=lambda o: o.sparse.nbytes + 2 * o.several.nbytes,
    ),
    "spgemm": Function(
        lambda o: partial(lib.spgemm, o.sparse, o.sparse),
        {"cupy": lambda m, o: partial(in_cupy_sparse(m, o).dot, in_cupy_sparse(m, o))},
        waits=True,
    ),
    "sddmm": Function(lambda o: partial(lib.sddmm, o.a, o.b, o.pattern)),
    "spdot": Function(lambda o: partial(lib.spdot, o.few, o.column), waits=True),
    "gemvi": Function(lambda o: partial(lib.gemvi, o.a, o.few, o.result)),
    "sparse_from_dense": Function(lambda o: partial(lib.sparse_from_dense, o.mostly_zero), waits=True),
    "solve_tridiagonal": Function(
        lambda o: partial(lib.solve_tridiagonal, *o.bands, o.b, o.out), bytes=lambda o: 5 * o.out.nbytes
    ),
    # cuSOLVER
    "solve": Function(
        lambda o: partial(lib.solve, o.a, o.column),
        {"cupy": lambda m, o: partial(m.linalg.solve, m.asarray(o.a), m.asarray(o.column))},
        waits=True,
    ),
    "cholesky": Function(
        lambda o: partial(lib.cholesky, o.definite),
        {"cupy": lambda m, o: partial(m.linalg.cholesky, m.asarray(o.definite))},
        waits=True,
    ),
    "solve_triangular": Function(
        lambda o: partial(lib.solve_triangular, o.triangle, o.b),
        {"torch": lambda m, o: partial(m.linalg.solve_triangular, tensor(m, o.triangle), tensor(m, o.b), upper=False)},
        waits=True,
    ),
    "qr": Function(
        lambda o: partial(lib.qr, o.a), {"cupy": lambda m, o: partial(m.linalg.qr, m.asarray(o.a))}, waits=True
    ),
    "lstsq": Function(
        lambda o: partial(lib.lstsq, o.a, o.column),
        {"cupy": lambda m, o: partial(m.linalg.lstsq, m.asarray(o.a), m.asarray(o.column), rcond=None)},
        waits=True,
    ),
    "svd": Function(
        lambda o: partial(lib.svd, o.a),
        {"cupy": lambda m, o: partial(m.linalg.svd, m.asarray(o.a), full_matrices=False)},
        waits=True,
    ),
    "eigh": Function(
        lambda o: partial(lib.eigh, o.definite),
        {"cupy": lambda m, o: partial(m.linalg.eigh, m.asarray(o.definite))},
        waits=True,
    ),
    # cuRAND
    "uniform": Function(
        lambda o: partial(lib.uniform, out=o.y),
        {"torch": lambda m, o: tensor(m, o.y).uniform_},
        bytes=lambda o: o.y.nbytes,
    ),
    "normal": Function(
        lambda o: partial(lib.normal, out=o.y),
        {"torch": lambda m, o: tensor(m, o.y).normal_},
        bytes=lambda o: o.y.nbytes,
    ),
    "log_normal": Function(
        lambda o: partial(lib.log_normal, out=o.y),
        {"torch": lambda m, o: tensor(m, o.y).log_normal_},
        bytes=lambda o: o.y.nbytes,
    ),
    "poisson": Function(lambda o: partial(lib.poisson, rate=10.0, out=o.counts), bytes=lambda o: o.counts.nbytes),
}
UNTIMED = {
    "release": "ends what a thread keeps",
    "to_bfloat16": "NumPy's work, on the host",
    "from_bfloat16": "NumPy's work, on the host",
}
