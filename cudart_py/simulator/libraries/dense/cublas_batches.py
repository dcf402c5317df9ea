"""cuBLAS's factorizations and solvers of batches in software, with LAPACK, for each letter of the BLAS."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings.cublas import DiagType, FillMode, Operation, SideMode, Status
from scipy.linalg import blas

from ..common.functions import LibraryError, entry
from ..common.numbers import DTYPES, LETTERS, from_host, narrowed, routine, to_host, widened
from ..common.operands import vector
from ..common.products import multiplied, scale_dtype, supported, turned
from ..factorizations import lapack_for
from .batches import Batch, queue_batches
from .cublas_handles import handles

_call = entry(Status.EXECUTION_FAILED)


@_call
def _getrf_batched(
    dtype: np.dtype[Any], handle: int, n: int, a: int, lda: int, p: int, info: int, batch_size: int
) -> None:
    """Queue the in-place LU factorization of each matrix, with pivots counted from 1 (cublasSgetrfBatched)."""
    matrices, pivots = Batch(a, batch_size, n, n, lda, dtype), vector(int(p), n * batch_size, np.int32)
    verdicts = vector(int(info), batch_size, np.int32)

    def factor() -> None:
        places = pivots.elements.reshape(batch_size, n)
        for index, matrix in enumerate(matrices):
            matrix[...], exchanges, verdicts.elements[index] = lapack_for("getrf", dtype)(matrix)
            places[index] = exchanges + 1

    outputs = pivots, verdicts
    stream = handles.find(handle).stream
    queue_batches(
        stream, routine("cublas<t>getrfBatched", dtype), factor, reads=(matrices,), writes=(matrices,), outputs=outputs
    )


@_call
def _getrs_batched(
    dtype: np.dtype[Any], handle: int, trans: int, n: int, nrhs: int, aarray: int, lda: int, dev_ipiv: int,
    barray: int, ldb: int, info: int, batch_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of each system from its LU factors (cublasSgetrsBatched)."""
    factors, out = Batch(aarray, batch_size, n, n, lda, dtype), Batch(barray, batch_size, n, nrhs, ldb, dtype)
    pivots = vector(int(dev_ipiv), n * batch_size, np.int32)
    to_host(info, np.int32, 0)

    def solve() -> None:
        places = pivots.elements.reshape(batch_size, n) - 1
        for matrix, right, exchanges in zip(factors, out, places, strict=True):
            right[...], _ = lapack_for("getrs", dtype)(matrix, exchanges, right, trans=int(trans))

    stream = handles.find(handle).stream
    queue_batches(
        stream, routine("cublas<t>getrsBatched", dtype), solve, reads=(factors, out), writes=(out,), inputs=(pivots,)
    )


@_call
def _getri_batched(
    dtype: np.dtype[Any], handle: int, n: int, a: int, lda: int, p: int, c: int, ldc: int, info: int, batch_size: int
) -> None:
    """Queue the inverse of each matrix from its LU factors, into other matrices (cublasSgetriBatched)."""
    factors, out = Batch(a, batch_size, n, n, lda, dtype), Batch(c, batch_size, n, n, ldc, dtype)
    pivots, verdicts = vector(int(p), n * batch_size, np.int32), vector(int(info), batch_size, np.int32)

    def invert() -> None:
        places = pivots.elements.reshape(batch_size, n) - 1
        for index, (matrix, result) in enumerate(zip(factors, out, strict=True)):
            result[...], verdicts.elements[index] = lapack_for("getri", dtype)(matrix, places[index])

    stream = handles.find(handle).stream
    queue_batches(
        stream, routine("cublas<t>getriBatched", dtype), invert,
        reads=(factors,), writes=(out,), inputs=(pivots,), outputs=(verdicts,),
    )  # fmt: skip  # grouped by meaning


@_call
def _geqrf_batched(
    dtype: np.dtype[Any], handle: int, m: int, n: int, aarray: int, lda: int, tau_array: int, info: int,
    batch_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the in-place QR factorization of each matrix (cublasSgeqrfBatched)."""
    matrices = Batch(aarray, batch_size, m, n, lda, dtype)
    scales = Batch(tau_array, batch_size, min(m, n), 1, min(m, n), dtype)
    to_host(info, np.int32, 0)

    def factor() -> None:
        for matrix, scale in zip(matrices, scales, strict=True):
            matrix[...], scale[:, 0], _, _ = lapack_for("geqrf", dtype)(matrix)

    stream = handles.find(handle).stream
    queue_batches(stream, routine("cublas<t>geqrfBatched", dtype), factor, reads=(matrices,), writes=(matrices, scales))


@_call
def _gels_batched(
    dtype: np.dtype[Any], handle: int, trans: int, m: int, n: int, nrhs: int, aarray: int, lda: int, carray: int,
    ldc: int, info: int, dev_info_array: int, batch_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the least-squares solution of each tall system; it overwrites the right-hand sides (cublasSgelsBatched)."""
    matrices, out = Batch(aarray, batch_size, m, n, lda, dtype), Batch(carray, batch_size, m, nrhs, ldc, dtype)
    verdicts = vector(int(dev_info_array), batch_size, np.int32)
    to_host(info, np.int32, 0)

    def solve() -> None:
        for index, (matrix, right) in enumerate(zip(matrices, out, strict=True)):
            matrix[...], right[...], verdicts.elements[index] = lapack_for("gels", dtype)(matrix, right)

    stream = handles.find(handle).stream
    queue_batches(
        stream, routine("cublas<t>gelsBatched", dtype), solve,
        reads=(matrices, out), writes=(matrices, out), outputs=(verdicts,),
    )  # fmt: skip  # grouped by meaning


@_call
def _trsm_batched(
    dtype: np.dtype[Any], handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int, alpha: int, a: int,
    lda: int, b: int, ldb: int, batch_count: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of op(a) x = alpha b with each triangular matrix, into b (cublasStrsmBatched)."""
    if side != SideMode.LEFT:
        raise LibraryError(
            Status.NOT_SUPPORTED, "the simulator solves batches of triangular systems only from the left"
        )
    factor = from_host(alpha, dtype)
    triangles, out = Batch(a, batch_count, m, m, lda, dtype), Batch(b, batch_count, m, n, ldb, dtype)
    lower, unit = uplo == FillMode.LOWER, diag == DiagType.UNIT
    turn = {Operation.N: 0, Operation.T: 1, Operation.C: 2}[Operation(trans)]
    letter = next(letter for letter, known in LETTERS.items() if known == dtype)

    def solve() -> None:
        # The BLAS divides by zeros on the diagonal, as the device does.
        trsm = getattr(blas, f"{letter}trsm")
        for triangle, right in zip(triangles, out, strict=True):
            right[...] = trsm(factor, triangle, right, lower=lower, trans_a=turn, diag=unit)

    stream = handles.find(handle).stream
    queue_batches(stream, routine("cublas<t>trsmBatched", dtype), solve, reads=(triangles, out), writes=(out,))


@_call
def gemm_batched_ex(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, aarray: int, atype: int, lda: int,
    barray: int, btype: int, ldb: int, beta: int, carray: int, ctype: int, ldc: int, batch_count: int,
    compute_type: int, algo: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha op(a) op(b) + beta c for matrices at arrays of addresses (cublasGemmBatchedEx)."""
    found = handles.find(handle)
    a, b, c = (DTYPES.get(int(code)) for code in (atype, btype, ctype))
    if a is None or b is None or c is None or not supported(a, b, c, compute_type):
        raise LibraryError(Status.NOT_SUPPORTED, "cublasGemmBatchedEx has no product of these types in this precision")
    factor, rest = found.factors(scale_dtype(a, compute_type), alpha, beta)
    left = Batch(aarray, batch_count, *((m, k) if transa == Operation.N else (k, m)), lda, a)
    right = Batch(barray, batch_count, *((k, n) if transb == Operation.N else (n, k)), ldb, b)
    out = Batch(carray, batch_count, m, n, ldc, c)

    def multiply() -> None:
        for first, second, target in zip(left, right, out, strict=True):
            value = factor * multiplied(turned(first, transa), turned(second, transb), compute_type)
            target[...] = narrowed(value + rest * widened(target) if rest else value, target.dtype)

    reads = (left, right, out) if rest else (left, right)
    queue_batches(found.stream, "cublasGemmBatchedEx", multiply, reads=reads, writes=(out,))


# The functions for each dtype, whose letter begins the name.
_EACH = LETTERS.values()
sgetrf_batched, dgetrf_batched, cgetrf_batched, zgetrf_batched = (functools.partial(_getrf_batched, x) for x in _EACH)
sgetrs_batched, dgetrs_batched, cgetrs_batched, zgetrs_batched = (functools.partial(_getrs_batched, x) for x in _EACH)
sgetri_batched, dgetri_batched, cgetri_batched, zgetri_batched = (functools.partial(_getri_batched, x) for x in _EACH)
sgeqrf_batched, dgeqrf_batched, cgeqrf_batched, zgeqrf_batched = (functools.partial(_geqrf_batched, x) for x in _EACH)
sgels_batched, dgels_batched, cgels_batched, zgels_batched = (functools.partial(_gels_batched, x) for x in _EACH)
strsm_batched, dtrsm_batched, ctrsm_batched, ztrsm_batched = (functools.partial(_trsm_batched, x) for x in _EACH)
