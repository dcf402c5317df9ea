"""Multiply many pairs of matrices, the first of each transposed, in one call and without a copy."""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries


def products(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return transposed a[i] times b[i] for each i; shapes are (count, depth, rows) and (count, depth, columns)."""
    return libraries.gemm(a, b, op_a="T")
