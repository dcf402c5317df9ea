"""Sparse matrices, their products and conversions, and triangular and tridiagonal systems with cuSPARSE."""

from __future__ import annotations

from .conversions import sparse_convert, sparse_sort, sparse_to_dense, sparse_transpose
from .matrix import SparseMatrix, SparseVector
from .products import gemvi, spdot, spmm, spmv
from .sparse_results import sddmm, sparse_from_dense, spgemm
from .triangular import spsm, spsv
from .tridiagonal import solve_tridiagonal

__all__ = [
    "SparseMatrix",
    "SparseVector",
    "gemvi",
    "sddmm",
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
]
