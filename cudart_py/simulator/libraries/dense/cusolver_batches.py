"""cuSOLVER's functions for batches in software, with LAPACK."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings.cublas import FillMode
from nvmath.bindings.cusolver import EigMode, Status

from ..common.calls import queue
from ..common.functions import LibraryError, Objects, entry
from ..common.numbers import DTYPES, LETTERS, routine
from ..common.operands import array, vector
from ..factorizations import WORKSPACE, handles, lapack_for, matrix_at
from .batches import Batch, queue_batches

_call = entry(Status.EXECUTION_FAILED)
_MOST_JACOBI = 32

_jacobi: Objects[str] = Objects(Status.INVALID_VALUE)


def create_gesvdj_info() -> int:
    """Return new options of the Jacobi method (cusolverDnCreateGesvdjInfo)."""
    return _jacobi.add("options")


def destroy_gesvdj_info(info: int) -> None:
    """Destroy options of the Jacobi method (cusolverDnDestroyGesvdjInfo)."""
    _jacobi.remove(info)


@_call
def _potrf_batched(
    dtype: np.dtype[Any], handle: int, uplo: int, n: int, aarray: int, lda: int, info_array: int, batch_size: int
) -> None:
    """Queue the in-place Cholesky factorization of each matrix (cusolverDnSpotrfBatched)."""
    matrices, verdicts = Batch(aarray, batch_size, n, n, lda, dtype), vector(int(info_array), batch_size, np.int32)
    lower = uplo == FillMode.LOWER

    def factor() -> None:
        for index, matrix in enumerate(matrices):
            matrix[...], verdicts.elements[index] = lapack_for("potrf", dtype)(matrix, lower=lower, clean=False)

    stream = handles.find(handle).stream
    queue_batches(
        stream, routine("cusolverDn<t>potrfBatched", dtype), factor,
        reads=(matrices,), writes=(matrices,), outputs=(verdicts,),
    )  # fmt: skip  # grouped by meaning


def _gesvdj_batched_buffer_size(
    dtype: np.dtype[Any], handle: int, jobz: int, m: int, n: int, a: int, lda: int, s: int, u: int, ldu: int, v: int,
    ldv: int, params: int, batch_size: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the workspace in elements (cusolverDnSgesvdjBatched_bufferSize)."""
    if max(m, n) > _MOST_JACOBI:
        raise LibraryError(Status.INVALID_VALUE, f"matrices of {m} x {n}: they may have at most {_MOST_JACOBI} rows")
    return WORKSPACE


@_call
def _gesvdj_batched(
    dtype: np.dtype[Any], handle: int, jobz: int, m: int, n: int, a: int, lda: int, s: int, u: int, ldu: int, v: int,
    ldv: int, work: int, lwork: int, info: int, params: int, batch_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the singular value decomposition of each matrix; the result has V, not V^H (cusolverDnSgesvdjBatched)."""
    _jacobi.find(params)
    if jobz != EigMode.VECTOR:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator computes singular values only together with vectors")
    real = np.empty(0, dtype).real.dtype
    matrices = array(int(a), (batch_size, m, n), dtype, (lda * n, 1, lda))
    left = array(int(u), (batch_size, m, m), dtype, (ldu * m, 1, ldu))
    right = array(int(v), (batch_size, n, n), dtype, (ldv * n, 1, ldv))
    values, verdicts = array(int(s), (batch_size, min(m, n)), real), vector(int(info), batch_size, np.int32)

    def decompose() -> None:
        for index, matrix in enumerate(matrices.elements):
            found, sizes, turned, verdicts.elements[index] = lapack_for("gesvd", dtype)(matrix, full_matrices=1)
            left.elements[index], values.elements[index] = found, sizes
            right.elements[index] = turned.conj().T

    writes = [left, right, values, verdicts, matrices]
    workspaces = [vector(int(work), lwork * np.dtype(dtype).itemsize, np.uint8)]
    stream = handles.find(handle).stream
    queue(
        stream,
        routine("cusolverDn<t>gesvdjBatched", dtype),
        decompose,
        reads=[matrices],
        writes=writes,
        workspaces=workspaces,
    )


@_call
def xsyev_batched_buffer_size(
    handle: int, params: int, jobz: int, uplo: int, n: int, data_type_a: int, a: int, lda: int, data_type_w: int,
    w: int, compute_type: int, batch_size: int,
) -> tuple[int, int]:  # fmt: skip  # grouped by meaning
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXsyevBatched_bufferSize)."""
    matrix_at(a, n, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xsyev_batched(
    handle: int, params: int, jobz: int, uplo: int, n: int, data_type_a: int, a: int, lda: int, data_type_w: int,
    w: int, compute_type: int, buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int,
    workspace_in_bytes_on_host: int, info: int, batch_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the eigendecomposition of each matrix; the eigenvectors overwrite it (cusolverDnXsyevBatched)."""
    if jobz != EigMode.VECTOR:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator computes eigenvalues only together with eigenvectors")
    dtype = matrix_at(a, n, n, lda, data_type_a).dtype
    matrices = array(int(a), (batch_size, n, n), dtype, (lda * n, 1, lda))
    values = array(int(w), (batch_size, n), DTYPES[int(data_type_w)])
    verdicts = vector(int(info), batch_size, np.int32)
    lower, name = uplo == FillMode.LOWER, "heevd" if dtype.kind == "c" else "syevd"

    def decompose() -> None:
        for index, matrix in enumerate(matrices.elements):
            found = lapack_for(name, dtype)(matrix, lower=lower)
            values.elements[index], matrix[...], verdicts.elements[index] = found

    workspaces = [vector(int(buffer_on_device), int(workspace_in_bytes_on_device), np.uint8)]
    stream, writes = handles.find(handle).stream, [matrices, values, verdicts]
    queue(stream, "cusolverDnXsyevBatched", decompose, reads=[matrices], writes=writes, workspaces=workspaces)


# The functions for each dtype, whose letter begins the name.
_EACH = LETTERS.values()
spotrf_batched, dpotrf_batched, cpotrf_batched, zpotrf_batched = (functools.partial(_potrf_batched, x) for x in _EACH)
sgesvdj_batched, dgesvdj_batched, cgesvdj_batched, zgesvdj_batched = (
    functools.partial(_gesvdj_batched, x) for x in _EACH
)
(
    sgesvdj_batched_buffer_size,
    dgesvdj_batched_buffer_size,
    cgesvdj_batched_buffer_size,
    zgesvdj_batched_buffer_size,
) = (functools.partial(_gesvdj_batched_buffer_size, x) for x in _EACH)
