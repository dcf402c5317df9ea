"""Products of dense matrices and vectors, with cuBLAS and cuBLASLt."""

from __future__ import annotations

from .fused import gemm_epilogue
from .matmul import matmul
from .products import gemm
from .vectors import axpy, dot, gemv, scal

__all__ = ["axpy", "dot", "gemm", "gemm_epilogue", "gemv", "matmul", "scal"]
