"""Linear systems and factorizations with cuSOLVER, cuBLAS and cuDSS."""

from __future__ import annotations

from .factors import eigh, lstsq, qr, svd
from .linear import cholesky, solve, solve_triangular
from .lu import LuFactors, inv, lu_factor
from .sparse_direct import SparseSolver

__all__ = [
    "LuFactors",
    "SparseSolver",
    "cholesky",
    "eigh",
    "inv",
    "lstsq",
    "lu_factor",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
]
