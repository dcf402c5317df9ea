"""Multiply many pairs of matrices, with the first of each pair transposed, in one call and without a copy."""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries


def products(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the transpose of a[i] times b[i] for each i; a is (count, depth, rows), b is (count, depth, columns)."""
    return libraries.gemm(a, b, op_a="T")
