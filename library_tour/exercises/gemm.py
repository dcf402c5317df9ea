"""Multiply many pairs of matrices, of which the first is transposed.

So far each pair is a call of its own, and each first matrix is transposed by a copy.
"""

from __future__ import annotations

import numpy as np

import cudart_py as cuda
from cudart_py import libraries


def products(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return for each i the transposed a[i] times b[i]: (count, depth, rows) and (count, depth, columns)."""
    count, _, rows = a.shape
    out = cuda.empty((count, rows, b.shape[2]), np.float32)
    for i in range(count):
        transposed = cuda.to_device(a[i].to_host().T)
        libraries.gemm(transposed, b[i], out[i])
    return out
