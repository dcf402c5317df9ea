"""Floating-point arithmetic on the host that gives a device's results."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# PyDLL keeps the interpreter lock, because these functions take less time than releasing it.
_C = ctypes.PyDLL("libm.so.6")
_DEFAULT = ctypes.c_void_p(-1)  # FE_DFL_ENV
_SIZE = 64  # more bytes than an fenv_t has


@contextmanager
def device_arithmetic() -> Iterator[None]:
    """Within the context, round to nearest, keep subnormal numbers, and let NumPy ignore floating-point errors.

    A program that was built with -ffast-math, or that has loaded such a library, flushes subnormal numbers to zero.
    Other programs change the rounding mode. When the context ends, the program's own settings apply again.
    """
    programs = ctypes.create_string_buffer(_SIZE)
    _C.fegetenv(programs)
    try:
        _C.fesetenv(_DEFAULT)
        with np.errstate(all="ignore"):
            yield
    finally:
        _C.fesetenv(programs)
