"""Linear systems and factorizations with cuSOLVER."""

from __future__ import annotations

from .factors import eigh, lstsq, qr, svd
from .linear import cholesky, solve, solve_triangular

__all__ = ["cholesky", "eigh", "lstsq", "qr", "solve", "solve_triangular", "svd"]
