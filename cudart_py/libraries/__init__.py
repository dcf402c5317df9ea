"""CUDA's libraries for DeviceArrays: cuBLAS, cuFFT, cuSPARSE, cuSOLVER and cuRAND, through nvmath-python's bindings.

    from cudart_py import libraries

    c = libraries.gemm(a, b, alpha=2.0)
    libraries.fft(x, x)
    u = libraries.solve(a, b)

`import cudart_py` does not import this package. `docs/libraries.md` describes the arguments of each function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .blas import (
    asum,
    axpy,
    dot,
    empty_aux,
    gemm,
    gemm_batched,
    gemm_epilogue,
    gemm_gradient,
    gemm_sums,
    gemv,
    ger,
    iamax,
    matmul,
    nrm2,
    scal,
    scaled_gemm,
    symm,
    symv,
    syrk,
)
from .dtypes import (
    bfloat16,
    complex32,
    float8_e4m3,
    float8_e5m2,
    from_bfloat16,
    from_float8,
    to_bfloat16,
    to_float8,
)
from .failures import IllConditionedWarning, NotConvergedError, NotPositiveDefiniteError, SingularMatrixError
from .fourier import Callback, TransformPlan, fft, ifft, irfft, rfft
from .handles import release
from .plans import Plan
from .random_numbers import Generator, exponential, log_normal, normal, poisson, uniform
from .solvers import LuFactors, SparseSolver, cholesky, eigh, inv, lstsq, lu_factor, qr, solve, solve_triangular, svd
from .sparse import (
    SparseMatrix,
    SparseVector,
    gemvi,
    sddmm,
    solve_tridiagonal,
    sparse_convert,
    sparse_from_dense,
    sparse_sort,
    sparse_to_dense,
    sparse_transpose,
    spdot,
    spgemm,
    spmm,
    spmv,
    spsm,
    spsv,
)

__all__ = [
    "Callback",
    "Generator",
    "IllConditionedWarning",
    "LuFactors",
    "NotConvergedError",
    "NotPositiveDefiniteError",
    "Plan",
    "SingularMatrixError",
    "SparseMatrix",
    "SparseSolver",
    "SparseVector",
    "TransformPlan",
    "asum",
    "axpy",
    "bfloat16",
    "cholesky",
    "complex32",
    "dot",
    "eigh",
    "empty_aux",
    "exponential",
    "fft",
    "float8_e4m3",
    "float8_e5m2",
    "from_bfloat16",
    "from_float8",
    "gemm",
    "gemm_batched",
    "gemm_epilogue",
    "gemm_gradient",
    "gemm_sums",
    "gemv",
    "gemvi",
    "ger",
    "iamax",
    "ifft",
    "inv",
    "irfft",
    "log_normal",
    "lstsq",
    "lu_factor",
    "matmul",
    "normal",
    "nrm2",
    "poisson",
    "qr",
    "release",
    "rfft",
    "scal",
    "scaled_gemm",
    "sddmm",
    "solve",
    "solve_triangular",
    "solve_tridiagonal",
    "sparse_convert",
    "sparse_from_dense",
    "sparse_sort",
    "sparse_to_dense",
    "sparse_transpose",
    "spdot",
    "spgemm",
    "spmm",
    "spmv",
    "spsm",
    "spsv",
    "svd",
    "symm",
    "symv",
    "syrk",
    "to_bfloat16",
    "to_float8",
    "uniform",
]
if not TYPE_CHECKING:  # type checkers report unknown names themselves
    from ..hints import absent_from_libraries as __getattr__  # noqa: F401  # Python calls it
__dir__ = __all__.copy  # without private names and imports
