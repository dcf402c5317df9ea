"""Solve a least squares problem.

For now, the function solves the normal equations, which loses twice as many digits as working with the matrix itself.
"""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries


def coefficients(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the x that minimises |a x - b|; `a` has more rows than columns."""
    return libraries.solve(libraries.gemm(a, a, op_a="T"), libraries.gemv(a, b, op="T"), positive=True)
