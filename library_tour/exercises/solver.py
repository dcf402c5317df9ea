"""Solve a least squares problem.

The start solves the normal equations, which loses twice as many digits as the matrix itself would.
"""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries


def coefficients(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the x that minimizes |a x - b|; `a` has more rows than columns."""
    return libraries.solve(libraries.gemm(a, a, op_a="T"), libraries.gemv(a, b, op="T"), positive=True)
