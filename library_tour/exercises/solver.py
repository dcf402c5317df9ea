"""Solve a problem of least squares.

So far the normal equations are solved, which costs twice the digits that the matrix itself would.
"""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries


def coefficients(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the x for which |a x - b| is least; `a` has more rows than columns."""
    return libraries.solve(libraries.gemm(a, a, op_a="T"), libraries.gemv(a, b, op="T"), positive=True)
