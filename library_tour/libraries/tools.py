"""The functions that the stops call: on DeviceArrays where CUDA's libraries run, else NumPy's and SciPy's like them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import poison

__all__ = ["Tools"]

# What executes a function, where the libraries run and where they do not.
EXECUTORS = {
    "gemm": ("cuBLAS", "SciPy's BLAS"),
    "gemm_halves": ("cuBLAS", "NumPy"),
    "gemv": ("cuBLAS", "SciPy's BLAS"),
    "axpy": ("cuBLAS", "SciPy's BLAS"),
    "gemm_epilogue": ("cuBLASLt", "NumPy"),
    "fft": ("cuFFT", "SciPy"),
    "sparse": ("cuSPARSE", "SciPy"),
    "solver": ("cuSOLVER", "LAPACK"),
    "random": ("cuRAND", "cuRAND on the host"),
}


class Tools:
    """One set of functions for both: `tools.gemm(tools.put(a), tools.put(b))`, and `tools.get` for the result.

    `on_device` tells which; `by("gemm")` names what executes it.
    """

    def __init__(self) -> None:
        self.on_device = self.libraries_run()
        self._functions = self._load()

    @staticmethod
    def libraries_run() -> bool:
        """Tell whether CUDA's libraries run with this driver."""
        return "libraries" in cuda.capabilities()

    def _load(self) -> list[ModuleType]:
        if not self.on_device:
            from . import stand_ins

            return [stand_ins]
        from . import blas, blas_vectors, dense_factors, dense_solver, fourier, fused, sparse_blas, sparse_products

        return [blas, blas_vectors, fused, fourier, sparse_blas, sparse_products, dense_solver, dense_factors]

    def __getattr__(self, name: str) -> Any:
        for module in self._functions:
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"there is no function {name!r} of the libraries")

    def by(self, name: str) -> str:
        """Name what executes a function, or a family of them."""
        return EXECUTORS[name][0 if self.on_device else 1]

    def put(self, host: NDArray[Any]) -> Any:
        """Bring an array to where the functions take it."""
        return cuda.to_device(host) if self.on_device else host

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Make room for a result."""
        return cuda.empty(shape, dtype) if self.on_device else np.empty(shape, dtype)

    def poisoned(self, shape: Any, dtype: Any) -> Any:
        """Make room for a result that is wrong until it is written."""
        out = self.empty(shape, dtype)
        poison(out)
        return out

    def get(self, array: Any) -> NDArray[Any]:
        """Bring a result to the host."""
        return array.to_host() if isinstance(array, cuda.DeviceArray) else np.asarray(array)

    def sparse(self, matrix: Any, format: str = "csr") -> Any:
        """Bring a SciPy sparse array to where the functions take it."""
        if not self.on_device:
            return matrix.tocoo() if format == "coo" else matrix.tocsr()
        from .sparse_matrix import SparseMatrix

        return SparseMatrix.from_host(matrix, format)
