"""Solve a least squares problem with QR."""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries


def coefficients(a: cuda.DeviceArray, b: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the x that minimises |a x - b|; `a` has more rows than columns."""
    return libraries.lstsq(a, b)
