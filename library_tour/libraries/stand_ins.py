"""The libraries' functions on NumPy arrays, by NumPy and SciPy: for where there is no GPU.

They take the same arguments as those for DeviceArrays and mean the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtypes import bfloat16, from_bfloat16, to_bfloat16

__all__ = [
    "axpy",
    "cholesky",
    "dot",
    "eigh",
    "fft",
    "gemm",
    "gemm_epilogue",
    "gemv",
    "ifft",
    "irfft",
    "lstsq",
    "qr",
    "rfft",
    "sddmm",
    "solve",
    "solve_triangular",
    "sparse_from_dense",
    "spgemm",
    "spmm",
    "spmv",
    "svd",
]

Array = NDArray[Any]
# scipy.linalg.blas counts its operations like this.
_OPERATIONS = {"N": 0, "T": 1, "C": 2}


def _into(out: Array | None, result: Array) -> Array:
    if out is None:
        return result
    out[...] = result
    return out


def _turned(matrix: Any, op: str) -> Any:
    return matrix if op == "N" else matrix.swapaxes(-1, -2) if op == "T" else matrix.conj().swapaxes(-1, -2)


# -- cuBLAS --------------------------------------------------------------------------------------


def gemm(
    a: Array,
    b: Array,
    out: Array | None = None,
    *,
    alpha: Any = 1.0,
    beta: Any = 0.0,
    op_a: str = "N",
    op_b: str = "N",
    compute: str | None = None,
) -> Array:
    """Return alpha op(a) op(b) + beta out: BLAS for what it has, NumPy in single precision for halves and TF32."""
    from scipy.linalg import blas

    added = beta * _widened(out) if out is not None and beta else 0.0
    if a.dtype.char not in "fdFD" or compute or a.ndim == 3 or b.ndim == 3:
        left, right = (_rounded(_turned(_widened(x), op), compute) for x, op in ((a, op_a), (b, op_b)))
        return _into(out, _narrowed(alpha * (left @ right) + added, a.dtype if out is None else out.dtype))
    function = blas.get_blas_funcs("gemm", (a, b))
    result = function(alpha, a, b, trans_a=_OPERATIONS[op_a], trans_b=_OPERATIONS[op_b])
    return _into(out, np.ascontiguousarray(result + added, dtype=a.dtype))


def _widened(x: Array) -> Array:
    if x.dtype == bfloat16:
        return from_bfloat16(x)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _narrowed(x: Array, dtype: Any) -> Array:
    return to_bfloat16(x) if dtype == bfloat16 else x.astype(dtype)


def _rounded(x: Array, compute: str | None) -> Array:
    """Round single precision to the 11 bits of TF32, as tensor cores do with what they read."""
    if compute != "tf32":
        return x
    bits = np.ascontiguousarray(x).view(np.uint32)
    result: Array = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(x.dtype)
    return result


def gemv(a: Array, x: Array, out: Array | None = None, *, alpha: Any = 1.0, beta: Any = 0.0, op: str = "N") -> Array:
    """Return alpha op(a) x + beta out."""
    from scipy.linalg import blas

    function = blas.get_blas_funcs("gemv", (a, x))
    result = function(alpha, a, x, trans=_OPERATIONS[op])
    return _into(out, result + (beta * out if out is not None and beta else 0.0))


def axpy(alpha: Any, x: Array, y: Array) -> Array:
    """Add alpha x to y."""
    y += y.dtype.type(alpha) * x
    return y


def dot(x: Array, y: Array, out: Array | None = None) -> Array:
    """Return the sum of x[i] y[i] as an array of one element."""
    return _into(out, np.asarray(x @ y).reshape(1))


def gemm_epilogue(a: Array, b: Array, bias: Array, out: Array | None = None, *, activation: str | None = None) -> Array:
    """Return activation(a b + bias)."""
    x = _widened(a) @ _widened(b) + _widened(bias)
    if activation == "relu":
        x = np.maximum(x, 0)
    elif activation == "gelu":
        x = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return _into(out, _narrowed(x, a.dtype))


# -- cuFFT ---------------------------------------------------------------------------------------


def _axes(x: Array, axes: Any) -> Any:
    return tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes


def fft(x: Array, out: Array | None = None, *, axes: Any = -1) -> Array:
    """Return the discrete Fourier transform."""
    from scipy import fft as transforms

    return _into(out, transforms.fftn(x, axes=_axes(x, axes)))


def ifft(x: Array, out: Array | None = None, *, axes: Any = -1) -> Array:
    """Return the inverse transform, not divided by the number of elements."""
    from scipy import fft as transforms

    return _into(out, transforms.ifftn(x, axes=_axes(x, axes), norm="forward"))


def rfft(x: Array, out: Array | None = None, *, axes: Any = -1) -> Array:
    """Return the first half of the transform of real numbers."""
    from scipy import fft as transforms

    return _into(out, transforms.rfftn(x, axes=_axes(x, axes)))


def irfft(
    x: Array, out: Array | None = None, *, axes: Any = -1, length: int | None = None, overwrite: bool = False
) -> Array:
    """Return the inverse of `rfft`, not divided by the number of elements."""
    from scipy import fft as transforms

    along = _axes(x, axes)
    lengths = [x.shape[axis] for axis in along]
    lengths[-1] = length or (2 * (lengths[-1] - 1) if out is None else out.shape[along[-1]])
    return _into(out, transforms.irfftn(x, lengths, axes=along, norm="forward", overwrite_x=overwrite))


# -- cuSPARSE ------------------------------------------------------------------------------------


def spmv(a: Any, x: Array, out: Array | None = None, *, alpha: Any = 1.0, beta: Any = 0.0, op: str = "N") -> Array:
    """Return alpha op(a) x + beta out for a sparse matrix."""
    turned = a if op == "N" else a.T if op == "T" else a.conj().T
    return _into(out, alpha * (turned @ x) + (beta * out if out is not None and beta else 0.0))


spmm = spmv


def spgemm(a: Any, b: Any, *, alpha: Any = 1.0) -> Any:
    """Return alpha a b of sparse matrices."""
    return (alpha * (a @ b)).tocsr()


def sddmm(a: Array, b: Array, out: Any, *, alpha: Any = 1.0, beta: Any = 0.0) -> Any:
    """Set the elements that a sparse matrix stores to those of alpha (a b) + beta out."""
    where = out.tocoo()
    out.data[...] = alpha * np.einsum("ik,ki->i", a[where.row], b[:, where.col]) + beta * out.data
    return out


def sparse_from_dense(a: Array) -> Any:
    """Return the elements that are not zero, row by row."""
    from scipy import sparse

    return sparse.csr_array(a)


# -- cuSOLVER ------------------------------------------------------------------------------------


def solve(a: Array, b: Array, *, positive: bool = False) -> Array:
    """Return x with a x = b, with the errors that the solvers on the device raise."""
    from scipy.linalg import lapack

    from .bindings import NotPositiveDefiniteError, SingularMatrixError

    if positive:
        function = lapack.get_lapack_funcs("posv", (a, b))
        _, x, minor = function(a, b, lower=True)
        if minor:
            raise NotPositiveDefiniteError(
                f"a is not positive definite: its leading minor of order {minor} is not positive", minor=minor
            )
    else:
        function = lapack.get_lapack_funcs("gesv", (a, b))
        _, _, x, pivot = function(a, b)
        if pivot:
            raise SingularMatrixError(f"a is singular: pivot {pivot - 1} of its elimination is zero", pivot=pivot - 1)
    return np.ascontiguousarray(x.reshape(b.shape))


def cholesky(a: Array) -> Array:
    """Return the lower triangular factor."""
    from scipy.linalg import lapack

    from .bindings import NotPositiveDefiniteError

    factor, minor = lapack.get_lapack_funcs("potrf", (a,))(a, lower=True)
    if minor:
        raise NotPositiveDefiniteError(
            f"a is not positive definite: its leading minor of order {minor} is not positive", minor=minor
        )
    return np.ascontiguousarray(factor)


def solve_triangular(a: Array, b: Array, *, lower: bool = True, op: str = "N", unit: bool = False) -> Array:
    """Return x with op(a) x = b of a triangular matrix."""
    from scipy import linalg

    x: Array = linalg.solve_triangular(a, b, trans=_OPERATIONS[op], lower=lower, unit_diagonal=unit)
    return x


def qr(a: Array) -> tuple[Array, Array]:
    """Return Q and R of a tall matrix."""
    q, r = np.linalg.qr(a)
    return q, r


def lstsq(a: Array, b: Array) -> Array:
    """Return the x that makes the norm of a x - b least, by QR."""
    from scipy import linalg

    q, r = linalg.qr(a, mode="economic")
    x: Array = linalg.solve_triangular(r, q.conj().T @ b)
    return x


def svd(a: Array, *, method: str = "qr") -> tuple[Array, Array, Array]:
    """Return U, the singular values and V^H."""
    from scipy import linalg

    u, s, vh = linalg.svd(a, full_matrices=False, lapack_driver="gesvd" if method == "qr" else "gesdd")
    return u, s, vh


def eigh(a: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a Hermitian matrix."""
    from scipy import linalg

    values, vectors = linalg.eigh(a)
    return values, vectors
