"""Products of dense matrices and vectors, with cuBLAS and cuBLASLt."""

from __future__ import annotations

from .fused import empty_aux, gemm_epilogue, gemm_gradient, gemm_sums
from .matmul import matmul
from .products import gemm
from .scaled import scaled_gemm
from .vectors import axpy, dot, gemv, scal

__all__ = [
    "axpy",
    "dot",
    "empty_aux",
    "gemm",
    "gemm_epilogue",
    "gemm_gradient",
    "gemm_sums",
    "gemv",
    "matmul",
    "scal",
    "scaled_gemm",
]
