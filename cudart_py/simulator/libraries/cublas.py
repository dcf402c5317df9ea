"""cuBLAS in software, with the names and parameters of `nvmath.bindings.cublas`; matrices are in column-major order."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings import cublas as bindings
from nvmath.bindings.cublas import DiagType, FillMode, Operation, SideMode, Status
from scipy import linalg

from .common.calls import queue
from .common.functions import LibraryError, entry, missing
from .common.numbers import DTYPES, LETTERS, narrowed, routine, widened
from .common.operands import Operand, array, columns, vector
from .common.products import multiplied, scale_dtype, supported, turned
from .dense.cublas_batches import (  # noqa: F401  # functions of this module
    cgels_batched,
    cgeqrf_batched,
    cgetrf_batched,
    cgetri_batched,
    cgetrs_batched,
    ctrsm_batched,
    dgels_batched,
    dgeqrf_batched,
    dgetrf_batched,
    dgetri_batched,
    dgetrs_batched,
    dtrsm_batched,
    gemm_batched_ex,
    sgels_batched,
    sgeqrf_batched,
    sgetrf_batched,
    sgetri_batched,
    sgetrs_batched,
    strsm_batched,
    zgels_batched,
    zgeqrf_batched,
    zgetrf_batched,
    zgetri_batched,
    zgetrs_batched,
    ztrsm_batched,
)
from .dense.cublas_handles import Handle, handles
from .dense.cublas_levels import (  # functions of this module
    asum_ex,
    cgeru,
    csymm,
    csymv,
    csyrk,
    dger,
    dsymm,
    dsymv,
    dsyrk,
    iamax_ex,
    nrm2_ex,
    sger,
    ssymm,
    ssymv,
    ssyrk,
    zgeru,
    zsymm,
    zsymv,
    zsyrk,
)

_call = entry(Status.EXECUTION_FAILED)


def __getattr__(name: str) -> Any:
    return missing(bindings, Status.NOT_SUPPORTED, name)


# -- handles -------------------------------------------------------------------------------------


def create() -> int:
    """Return a new handle (cublasCreate)."""
    return handles.add(Handle())


def destroy(handle: int) -> None:
    """Destroy a handle (cublasDestroy)."""
    handles.remove(handle)


def set_stream(handle: int, stream_id: int) -> None:
    """Set the stream of later calls, and return to cuBLAS's own workspace (cublasSetStream)."""
    found = handles.find(handle)
    found.stream, found.workspace = int(stream_id), (0, 0)


def set_workspace(handle: int, workspace: int, workspace_size_in_bytes: int) -> None:
    """Set the workspace of later calls, in device memory (cublasSetWorkspace)."""
    handles.find(handle).workspace = int(workspace), int(workspace_size_in_bytes)


def set_pointer_mode(handle: int, mode: int) -> None:
    """Set whether alpha, beta and scalar results of later calls are in host or device memory (cublasSetPointerMode)."""
    handles.find(handle).pointer_mode = int(mode)


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise LibraryError(Status.INVALID_VALUE, reason)


# -- products of matrices ------------------------------------------------------------------------


def _dtypes(name: str, codes: tuple[int, int, int], compute: int) -> list[np.dtype[Any]]:
    """Return the dtypes of a, b and c; raise NOT_SUPPORTED for combinations that cuBLAS does not support either."""
    a, b, c = (DTYPES.get(int(code)) for code in codes)
    if a is None or b is None or c is None or not supported(a, b, c, compute):
        raise LibraryError(Status.NOT_SUPPORTED, f"{name} has no product of these types in this precision")
    return [a, b, c]


def _queue_product(
    handle: int,
    name: str,
    operations: tuple[int, int],
    sizes: tuple[int, int, int],
    factors: tuple[int, int],
    operands: tuple[Operand, Operand, Operand],
    compute: int,
) -> None:
    """Queue c = alpha op(a) op(b) + beta c for batches of matrices."""
    found = handles.find(handle)
    a, b, c = operands
    alpha, beta = found.factors(scale_dtype(a.dtype, compute), *factors)

    def product() -> None:
        result = c.elements
        for index in range(c.shape[0]):
            left = turned(a.elements[index % a.shape[0]], operations[0])
            right = turned(b.elements[index % b.shape[0]], operations[1])
            value = alpha * multiplied(left, right, compute)
            if beta:
                value = value + beta * widened(result[index])
            result[index] = narrowed(value, c.dtype)

    # If a factor is zero, its operands are not read, so NaNs in them don't matter.
    reads = [*((a, b) if alpha and sizes[2] else ()), *((c,) if beta else ())]
    queue(found.stream, name, product, reads=reads, writes=[c], workspaces=found.workspaces())


def _matrices(
    address: int, rows: int, count: int, leading: int, stride: int, batch: int, dtype: np.dtype[Any]
) -> Operand:
    _require(leading >= max(rows, 1), f"the leading dimension is {leading}, and a column has {rows} elements")
    if not stride:
        batch = min(batch, 1)  # a stride of 0 means one matrix for the whole batch
    return array(int(address), (batch, rows, count), dtype, (stride, 1, leading))


def _gemm(
    name: str, handle: int, transa: int, transb: int, m: int, n: int, k: int, factors: tuple[int, int],
    a: tuple[int, int, int, int], b: tuple[int, int, int, int], c: tuple[int, int, int, int], batch: int, compute: int,
) -> None:  # fmt: skip  # grouped by meaning
    _require(min(m, n, k, batch) >= 0, f"the sizes are {m} x {n} x {k}, {batch} times")
    dtypes = _dtypes(name, (a[1], b[1], c[1]), compute)
    shape_a = (m, k) if transa == Operation.N else (k, m)
    shape_b = (k, n) if transb == Operation.N else (n, k)
    shapes = shape_a, shape_b, (m, n)
    operands = [
        _matrices(address, *shape, leading, stride, batch, dtype)
        for (address, _, leading, stride), shape, dtype in zip((a, b, c), shapes, dtypes, strict=True)
    ]
    if m and n and batch:
        _queue_product(
            handle, name, (transa, transb), (m, n, k), factors, (operands[0], operands[1], operands[2]), compute
        )


@_call
def gemm_ex(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, atype: int, lda: int, b: int,
    btype: int, ldb: int, beta: int, c: int, ctype: int, ldc: int, compute_type: int, algo: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha op(a) op(b) + beta c (cublasGemmEx)."""
    operands = (a, atype, lda, 0), (b, btype, ldb, 0), (c, ctype, ldc, 0)
    _gemm("cublasGemmEx", handle, transa, transb, m, n, k, (alpha, beta), *operands, 1, compute_type)


@_call
def gemm_strided_batched_ex(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, atype: int, lda: int,
    stride_a: int, b: int, btype: int, ldb: int, stride_b: int, beta: int, c: int, ctype: int, ldc: int, stride_c: int,
    batch_count: int, compute_type: int, algo: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue products of batches of matrices, with strides in elements (cublasGemmStridedBatchedEx)."""
    operands = (a, atype, lda, stride_a), (b, btype, ldb, stride_b), (c, ctype, ldc, stride_c)
    name = "cublasGemmStridedBatchedEx"
    _gemm(name, handle, transa, transb, m, n, k, (alpha, beta), *operands, batch_count, compute_type)


@_call
def _geam(
    dtype: np.dtype[Any], handle: int, transa: int, transb: int, m: int, n: int, alpha: int, a: int, lda: int,
    beta: int, b: int, ldb: int, c: int, ldc: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha op(a) + beta op(b) (cublasSgeam and related functions)."""
    found = handles.find(handle)
    first, second = found.factors(dtype, alpha, beta)
    left = columns(int(a), *((m, n) if transa == Operation.N else (n, m)), lda, dtype)
    right = columns(int(b), *((m, n) if transb == Operation.N else (n, m)), ldb, dtype)
    out = columns(int(c), m, n, ldc, dtype)

    def add() -> None:
        result = np.zeros((m, n), dtype)
        for factor, operand, operation in ((first, left, transa), (second, right, transb)):
            if factor:
                result += factor * turned(operand.elements, operation)
        out.elements[...] = result

    reads = [operand for factor, operand in ((first, left), (second, right)) if factor]
    queue(found.stream, routine("cublas<t>geam", dtype), add, reads=reads, writes=[out])


@_call
def _trsm(
    dtype: np.dtype[Any], handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int, alpha: int, a: int,
    lda: int, b: int, ldb: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of op(a) x = alpha b, or x op(a) = alpha b, with a triangular a, into b (cublasStrsm)."""
    found = handles.find(handle)
    (factor,) = found.factors(dtype, alpha)
    order = m if side == SideMode.LEFT else n
    matrix, out = columns(int(a), order, order, lda, dtype), columns(int(b), m, n, ldb, dtype)
    lower, unit = uplo == FillMode.LOWER, diag == DiagType.UNIT

    def solve() -> None:
        triangle, right = matrix.elements, factor * out.elements
        if side == SideMode.RIGHT:  # x op(a) = b is op(a)^T x^T = b^T
            right = right.T
        operation = trans if side == SideMode.LEFT else {Operation.N: Operation.T, Operation.T: Operation.N}.get(trans)
        if operation is None:  # x a^H = b is conj(a) x^T = b^T
            triangle, operation = triangle.conj(), Operation.N
        x = linalg.solve_triangular(
            triangle, right, trans=int(operation), lower=lower, unit_diagonal=unit, check_finite=False
        )
        out.elements[...] = x if side == SideMode.LEFT else x.T

    queue(
        found.stream,
        routine("cublas<t>trsm", dtype),
        solve,
        reads=[*_triangle(matrix, lower=lower, unit=unit), out],
        writes=[out],
    )


def _triangle(matrix: Operand, *, lower: bool, unit: bool) -> list[Operand]:
    """Return the parts of a triangular matrix that are read: each column, from or up to the diagonal."""
    order, size = matrix.shape[0], matrix.dtype.itemsize
    found = []
    for column in range(order):
        first, last = (column + unit, order) if lower else (0, column + 1 - unit)
        if last > first:
            address = matrix.address + column * matrix.strides[1] + first * size
            found.append(vector(address, last - first, matrix.dtype))
    return found


# -- vectors -------------------------------------------------------------------------------------


@_call
def _gemv(
    dtype: np.dtype[Any], handle: int, trans: int, m: int, n: int, alpha: int, a: int, lda: int, x: int, incx: int,
    beta: int, y: int, incy: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue y = alpha op(a) x + beta y (cublasSgemv and related functions)."""
    found = handles.find(handle)
    factor, rest = found.factors(dtype, alpha, beta)
    _require(min(incx, incy) > 0, f"the increments are {incx} and {incy}: the simulator requires positive ones")
    if not (m and n):  # as in the BLAS, which does not even multiply y by beta then
        return
    rows, count = (m, n) if trans == Operation.N else (n, m)
    matrix = columns(int(a), m, n, lda, dtype)
    source, out = vector(int(x), count, dtype, incx), vector(int(y), rows, dtype, incy)

    def multiply() -> None:
        result = out.elements
        product = factor * (turned(matrix.elements, trans) @ source.elements)
        result[...] = product + rest * result if rest else product

    reads = [*((matrix, source) if factor else ()), *((out,) if rest else ())]
    queue(found.stream, routine("cublas<t>gemv", dtype), multiply, reads=reads, writes=[out])


@_call
def axpy_ex(
    handle: int, n: int, alpha: int, alpha_type: int, x: int, x_type: int, incx: int, y: int, y_type: int, incy: int,
    executiontype: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue y = alpha x + y (cublasAxpyEx)."""
    found = handles.find(handle)
    (factor,) = found.factors(DTYPES[int(alpha_type)], alpha)
    source, out = vector(int(x), n, DTYPES[int(x_type)], incx), vector(int(y), n, DTYPES[int(y_type)], incy)

    def add() -> None:
        out.elements[...] = narrowed(factor * widened(source.elements) + widened(out.elements), out.dtype)

    queue(found.stream, "cublasAxpyEx", add, reads=[source, out], writes=[out])


@_call
def scal_ex(
    handle: int, n: int, alpha: int, alpha_type: int, x: int, x_type: int, incx: int, execution_type: int
) -> None:
    """Queue x = alpha x (cublasScalEx)."""
    found = handles.find(handle)
    (factor,) = found.factors(DTYPES[int(alpha_type)], alpha)
    out = vector(int(x), n, DTYPES[int(x_type)], incx)

    def multiply() -> None:
        out.elements[...] = narrowed(factor * widened(out.elements), out.dtype)

    queue(found.stream, "cublasScalEx", multiply, reads=[out], writes=[out])


@_call
def dot_ex(
    handle: int, n: int, x: int, x_type: int, incx: int, y: int, y_type: int, incy: int, result: int, result_type: int,
    execution_type: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the dot product of x and y, which is written to device memory (cublasDotEx)."""
    found = handles.find(handle)
    found.require_results_on_device()
    first, second = vector(int(x), n, DTYPES[int(x_type)], incx), vector(int(y), n, DTYPES[int(y_type)], incy)
    out = vector(int(result), 1, DTYPES[int(result_type)])

    def multiply() -> None:
        out.elements[0] = first.elements @ second.elements

    queue(found.stream, "cublasDotEx", multiply, reads=[first, second], writes=[out])


# The BLAS functions for each dtype, whose letter begins the name.
sgeam, dgeam, cgeam, zgeam = (functools.partial(_geam, dtype) for dtype in LETTERS.values())
strsm, dtrsm, ctrsm, ztrsm = (functools.partial(_trsm, dtype) for dtype in LETTERS.values())
sgemv, dgemv, cgemv, zgemv = (functools.partial(_gemv, dtype) for dtype in LETTERS.values())

# The functions with 64-bit sizes are the same, because Python's integers are unbounded.
gemm_ex_64, gemm_strided_batched_ex_64, gemm_batched_ex_64 = gemm_ex, gemm_strided_batched_ex, gemm_batched_ex
axpy_ex_64, scal_ex_64, dot_ex_64 = axpy_ex, scal_ex, dot_ex
nrm2ex_64, asum_ex_64, iamax_ex_64 = nrm2_ex, asum_ex, iamax_ex
sgemv_64, dgemv_64, cgemv_64, zgemv_64 = sgemv, dgemv, cgemv, zgemv
sger_64, dger_64, cgeru_64, zgeru_64 = sger, dger, cgeru, zgeru
ssymv_64, dsymv_64, csymv_64, zsymv_64 = ssymv, dsymv, csymv, zsymv
ssymm_64, dsymm_64, csymm_64, zsymm_64 = ssymm, dsymm, csymm, zsymm
ssyrk_64, dsyrk_64, csyrk_64, zsyrk_64 = ssyrk, dsyrk, csyrk, zsyrk
