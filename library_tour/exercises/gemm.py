"""Multiply many pairs of matrices, the first of each transposed.

The start makes one call per pair, and transposes each first matrix by a copy.
"""

from __future__ import annotations

import numpy as np

import cudart_py as cuda
from cudart_py import libraries


def products(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return transposed a[i] times b[i] for each i; shapes are (count, depth, rows) and (count, depth, columns)."""
    count, _, rows = a.shape
    out = cuda.empty((count, rows, b.shape[2]), np.float32)
    for i in range(count):
        transposed = cuda.to_device(a[i].to_host().T)
        libraries.gemm(transposed, b[i], out[i])
    return out
