"""Sparse matrices and their products, by cuSPARSE."""

from __future__ import annotations

from .matrix import SparseMatrix, SparseVector
from .products import spdot, spmm, spmv
from .sparse_results import sddmm, sparse_from_dense, spgemm

__all__ = ["SparseMatrix", "SparseVector", "sddmm", "sparse_from_dense", "spdot", "spgemm", "spmm", "spmv"]
