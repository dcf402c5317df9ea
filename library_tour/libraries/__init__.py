"""CUDA's libraries on DeviceArrays: cuBLAS, cuFFT, cuSPARSE, cuSOLVER and cuRAND, through nvmath-python's bindings.

    from library_tour import libraries

    c = libraries.gemm(a, b, alpha=2.0)
    libraries.fft(x, x)
    u = libraries.solve(a, b)

The stops of the tour are modules here, as those of the course are in `library_tour.course`.
"""

from __future__ import annotations

# The stops `gemm` and `fft` come first: a module that is imported later would take the place of the function.
from . import fft as _fft_stop  # noqa: F401  # loaded, not used
from . import gemm as _gemm_stop  # noqa: F401  # loaded, not used
from .bindings import NotPositiveDefiniteError, SingularMatrixError
from .blas import gemm
from .blas_vectors import axpy, dot, gemv
from .dense_factors import eigh, lstsq, qr, svd
from .dense_solver import cholesky, solve, solve_triangular
from .dtypes import bfloat16, from_bfloat16, to_bfloat16
from .fourier import complex32, fft, ifft, irfft, rfft
from .fused import gemm_epilogue
from .handles import release
from .random_numbers import Generator, log_normal, normal, poisson, uniform
from .sparse_blas import spdot, spmm, spmv
from .sparse_matrix import SparseMatrix, SparseVector
from .sparse_products import sddmm, sparse_from_dense, spgemm

__all__ = [
    "Generator",
    "NotPositiveDefiniteError",
    "SingularMatrixError",
    "SparseMatrix",
    "SparseVector",
    "axpy",
    "bfloat16",
    "cholesky",
    "complex32",
    "dot",
    "eigh",
    "fft",
    "from_bfloat16",
    "gemm",
    "gemm_epilogue",
    "gemv",
    "ifft",
    "irfft",
    "log_normal",
    "lstsq",
    "normal",
    "poisson",
    "qr",
    "release",
    "rfft",
    "sddmm",
    "solve",
    "solve_triangular",
    "sparse_from_dense",
    "spdot",
    "spgemm",
    "spmm",
    "spmv",
    "svd",
    "to_bfloat16",
    "uniform",
]
