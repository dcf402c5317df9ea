"""Sparse matrices, their products, and tridiagonal systems with cuSPARSE."""

from __future__ import annotations

from .matrix import SparseMatrix, SparseVector
from .products import gemvi, spdot, spmm, spmv
from .sparse_results import sddmm, sparse_from_dense, spgemm
from .tridiagonal import solve_tridiagonal

__all__ = [
    "SparseMatrix",
    "SparseVector",
    "gemvi",
    "sddmm",
    "solve_tridiagonal",
    "sparse_from_dense",
    "spdot",
    "spgemm",
    "spmm",
    "spmv",
]
