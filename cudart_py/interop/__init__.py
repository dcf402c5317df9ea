"""Other Python packages: kernels that Numba or Triton compile, and pools from which other libraries allocate.

`numba.kernel` and `triton.kernel` compile kernels written in Python for this package's launches and checks.
`allocators` has allocators for CuPy, PyTorch and nvmath.

    from cudart_py import interop

    kernel = interop.numba.kernel(function, "void(float32, float32[:], float32[:])")
    kernel[grid, block](2.0, x, y)

`import cudart_py` does not import this package. This package imports Numba or Triton when a kernel is compiled.
"""

from . import allocators, numba, triton

__all__ = ["allocators", "numba", "triton"]
__dir__ = __all__.copy
