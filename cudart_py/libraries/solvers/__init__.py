"""Linear systems and factorizations with cuSOLVER and cuBLAS."""

from __future__ import annotations

from .factors import eigh, lstsq, qr, svd
from .inverses import LuFactors, inv, lu_factor
from .linear import cholesky, solve, solve_triangular

__all__ = ["LuFactors", "cholesky", "eigh", "inv", "lstsq", "lu_factor", "qr", "solve", "solve_triangular", "svd"]
