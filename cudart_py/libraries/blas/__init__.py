"""Products of dense matrices and vectors, with cuBLAS and cuBLASLt."""

from __future__ import annotations

from .epilogues import empty_aux, gemm_epilogue, gemm_gradient, gemm_sums
from .matmul import matmul
from .pointer_batches import gemm_batched
from .products import gemm
from .reductions import asum, iamax, nrm2
from .scaled_products import scaled_gemm
from .symmetric import ger, symm, symv, syrk
from .vectors import axpy, dot, gemv, scal

__all__ = [
    "asum",
    "axpy",
    "dot",
    "empty_aux",
    "gemm",
    "gemm_batched",
    "gemm_epilogue",
    "gemm_gradient",
    "gemm_sums",
    "gemv",
    "ger",
    "iamax",
    "matmul",
    "nrm2",
    "scal",
    "scaled_gemm",
    "symm",
    "symv",
    "syrk",
]
