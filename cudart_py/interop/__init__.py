"""Kernels written in Python: `numba.kernel` and `triton.kernel` compile them for this package's launches and checks.

    from cudart_py import interop

    kernel = interop.numba.kernel(function, "void(float32, float32[:], float32[:])")
    kernel[grid, block](2.0, x, y)

`import cudart_py` does not import this package. This package imports Numba or Triton when a kernel is compiled.
"""

from . import numba, triton

__all__ = ["numba", "triton"]
__dir__ = __all__.copy
