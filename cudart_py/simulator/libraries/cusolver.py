"""cuSOLVER's dense functions in software, using LAPACK, with the interface of `nvmath.bindings.cusolverDn`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath import bindings
from nvmath.bindings.cublas import FillMode, Operation, SideMode
from nvmath.bindings.cusolver import EigMode, Status

from .common.functions import LibraryError, Objects, entry, missing
from .common.numbers import DTYPES, LETTERS, Numbers, routine
from .common.operands import Operand, columns, vector
from .dense.cusolver_batches import (  # noqa: F401  # functions of this module
    cgesvdj_batched,
    cgesvdj_batched_buffer_size,
    cpotrf_batched,
    create_gesvdj_info,
    destroy_gesvdj_info,
    dgesvdj_batched,
    dgesvdj_batched_buffer_size,
    dpotrf_batched,
    sgesvdj_batched,
    sgesvdj_batched_buffer_size,
    spotrf_batched,
    xsyev_batched,
    xsyev_batched_buffer_size,
    zgesvdj_batched,
    zgesvdj_batched_buffer_size,
    zpotrf_batched,
)
from .dense.refinement import (  # noqa: F401  # functions of this module
    ce_gesv,
    ce_gesv_buffer_size,
    ck_gesv,
    ck_gesv_buffer_size,
    cy_gesv,
    cy_gesv_buffer_size,
    db_gesv,
    db_gesv_buffer_size,
    dh_gesv,
    dh_gesv_buffer_size,
    ds_gesv,
    ds_gesv_buffer_size,
    dx_gesv,
    dx_gesv_buffer_size,
    sb_gesv,
    sb_gesv_buffer_size,
    sh_gesv,
    sh_gesv_buffer_size,
    sx_gesv,
    sx_gesv_buffer_size,
    zc_gesv,
    zc_gesv_buffer_size,
    ze_gesv,
    ze_gesv_buffer_size,
    zk_gesv,
    zk_gesv_buffer_size,
    zy_gesv,
    zy_gesv_buffer_size,
)
from .factorizations import (
    WORKSPACE,
    Handle,
    handles,
    lapack_function,
    matrix_at,
    queue_factorization,
    triangle_of,
)

_call = entry(Status.EXECUTION_FAILED)

_parameters: Objects[str] = Objects(Status.INVALID_VALUE)


def __getattr__(name: str) -> Any:
    return missing(bindings.cusolverDn, Status.NOT_SUPPORTED, name)


def create() -> int:
    """Return a new handle (cusolverDnCreate)."""
    return handles.add(Handle())


def destroy(handle: int) -> None:
    """Destroy a handle (cusolverDnDestroy)."""
    handles.remove(handle)


def set_stream(handle: int, stream_id: int) -> None:
    """Set the stream of later calls (cusolverDnSetStream)."""
    handles.find(handle).stream = int(stream_id)


def create_params() -> int:
    """Return a new set of options (cusolverDnCreateParams)."""
    return _parameters.add("options")


def destroy_params(params: int) -> None:
    """Destroy a set of options (cusolverDnDestroyParams)."""
    _parameters.remove(params)


# -- linear systems ------------------------------------------------------------------------------


@_call
def xpotrf_buffer_size(
    handle: int, params: int, uplo: int, n: int, data_type_a: int, a: int, lda: int, compute_type: int
) -> tuple[int, int]:
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXpotrf_bufferSize)."""
    matrix_at(a, n, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xpotrf(
    handle: int, params: int, uplo: int, n: int, data_type_a: int, a: int, lda: int, compute_type: int,
    buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int, workspace_in_bytes_on_host: int,
    info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the in-place Cholesky factorization of a matrix of which one triangle is stored (cusolverDnXpotrf)."""
    matrix, lower = matrix_at(a, n, n, lda, data_type_a), uplo == FillMode.LOWER
    half = triangle_of(matrix, lower=lower)

    def factor() -> int:
        found, verdict = lapack_function("potrf", matrix)(matrix.elements, lower=lower, clean=False)
        matrix.elements[...] = found
        return int(verdict)

    workspace = buffer_on_device, workspace_in_bytes_on_device
    queue_factorization(handle, "cusolverDnXpotrf", factor, info, reads=half, writes=half, workspace=workspace)


@_call
def xpotrs(
    handle: int, params: int, uplo: int, n: int, nrhs: int, data_type_a: int, a: int, lda: int, data_type_b: int,
    b: int, ldb: int, info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of a system from its Cholesky factor; the solution overwrites b (cusolverDnXpotrs)."""
    matrix, out = matrix_at(a, n, n, lda, data_type_a), matrix_at(b, n, nrhs, ldb, data_type_b)
    lower = uplo == FillMode.LOWER
    half = triangle_of(matrix, lower=lower)

    def solve() -> int:
        out.elements[...], verdict = lapack_function("potrs", matrix)(matrix.elements, out.elements, lower=lower)
        return int(verdict)

    queue_factorization(handle, "cusolverDnXpotrs", solve, info, reads=[*half, out], writes=[out])


@_call
def xgetrf_buffer_size(
    handle: int, params: int, m: int, n: int, data_type_a: int, a: int, lda: int, compute_type: int
) -> tuple[int, int]:
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXgetrf_bufferSize)."""
    matrix_at(a, m, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xgetrf(
    handle: int, params: int, m: int, n: int, data_type_a: int, a: int, lda: int, ipiv: int, compute_type: int,
    buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int, workspace_in_bytes_on_host: int,
    info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the in-place LU factorization with partial pivoting (cusolverDnXgetrf)."""
    matrix, pivots = matrix_at(a, m, n, lda, data_type_a), vector(int(ipiv), min(m, n), np.int64)

    def factor() -> int:
        found, exchanges, verdict = lapack_function("getrf", matrix)(matrix.elements)
        matrix.elements[...], pivots.elements[...] = found, exchanges + 1  # LAPACK counts rows from 1, SciPy from 0
        return int(verdict)

    workspace = buffer_on_device, workspace_in_bytes_on_device
    queue_factorization(
        handle, "cusolverDnXgetrf", factor, info, reads=[matrix], writes=[matrix, pivots], workspace=workspace
    )


@_call
def xgetrs(
    handle: int, params: int, trans: int, n: int, nrhs: int, data_type_a: int, a: int, lda: int, ipiv: int,
    data_type_b: int, b: int, ldb: int, info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of a system from its LU factors; the solution overwrites b (cusolverDnXgetrs)."""
    matrix, out = matrix_at(a, n, n, lda, data_type_a), matrix_at(b, n, nrhs, ldb, data_type_b)
    pivots = vector(int(ipiv), n, np.int64)

    def solve() -> int:
        exchanges = pivots.elements.astype(np.int32) - 1
        out.elements[...], verdict = lapack_function("getrs", matrix)(
            matrix.elements, exchanges, out.elements, trans=int(trans)
        )
        return int(verdict)

    queue_factorization(handle, "cusolverDnXgetrs", solve, info, reads=[matrix, pivots, out], writes=[out])


# -- orthogonal factorizations -------------------------------------------------------------------


@_call
def xgeqrf_buffer_size(
    handle: int, params: int, m: int, n: int, data_type_a: int, a: int, lda: int, data_type_tau: int, tau: int,
    compute_type: int,
) -> tuple[int, int]:  # fmt: skip  # grouped by meaning
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXgeqrf_bufferSize)."""
    matrix_at(a, m, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xgeqrf(
    handle: int, params: int, m: int, n: int, data_type_a: int, a: int, lda: int, data_type_tau: int, tau: int,
    compute_type: int, buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int,
    workspace_in_bytes_on_host: int, info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the in-place QR factorization, with the reflectors below the diagonal (cusolverDnXgeqrf)."""
    matrix, scales = matrix_at(a, m, n, lda, data_type_a), vector(int(tau), min(m, n), DTYPES[int(data_type_tau)])

    def factor() -> int:
        matrix.elements[...], scales.elements[...], _, verdict = lapack_function("geqrf", matrix)(matrix.elements)
        return int(verdict)

    workspace = buffer_on_device, workspace_in_bytes_on_device
    queue_factorization(
        handle, "cusolverDnXgeqrf", factor, info, reads=[matrix], writes=[matrix, scales], workspace=workspace
    )


@_call
def _orgqr_buffer_size(dtype: np.dtype[Any], handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int) -> int:
    """Return the size of the workspace in elements (cusolverDnSorgqr_bufferSize and related functions)."""
    return WORKSPACE


@_call
def _orgqr(
    dtype: np.dtype[Any], handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int, work: int, lwork: int,
    info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the in-place computation of Q from its reflectors (cusolverDnSorgqr and related functions)."""
    matrix, scales = columns(int(a), m, n, lda, dtype), vector(int(tau), k, dtype)
    name = "ungqr" if dtype.kind == "c" else "orgqr"

    def build() -> int:
        matrix.elements[...], _, verdict = lapack_function(name, matrix)(matrix.elements, scales.elements)
        return int(verdict)

    workspace = work, lwork * dtype.itemsize
    queue_factorization(
        handle,
        routine(f"cusolverDn<t>{name}", dtype),
        build,
        info,
        reads=[matrix, scales],
        writes=[matrix],
        workspace=workspace,
    )


@_call
def _ormqr_buffer_size(
    dtype: np.dtype[Any], handle: int, side: int, trans: int, m: int, n: int, k: int, a: int, lda: int, tau: int,
    c: int, ldc: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the workspace in elements (cusolverDnSormqr_bufferSize and related functions)."""
    return WORKSPACE


@_call
def _ormqr(
    dtype: np.dtype[Any], handle: int, side: int, trans: int, m: int, n: int, k: int, a: int, lda: int, tau: int,
    c: int, ldc: int, work: int, lwork: int, dev_info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the product of Q, given by its reflectors, and a matrix, which it overwrites (cusolverDnSormqr etc.)."""
    order = m if side == SideMode.LEFT else n
    reflectors, scales = columns(int(a), order, k, lda, dtype), vector(int(tau), k, dtype)
    out = columns(int(c), m, n, ldc, dtype)
    letters = {Operation.N: "N", Operation.T: "T", Operation.C: "C"}
    name = "unmqr" if dtype.kind == "c" else "ormqr"

    def multiply() -> int:
        sides = "L" if side == SideMode.LEFT else "R", letters[Operation(trans)]
        function = lapack_function(name, out)
        room = max(m, n, 1) * 64
        out.elements[...], _, verdict = function(*sides, reflectors.elements, scales.elements, out.elements, room)
        return int(verdict)

    workspace = work, lwork * dtype.itemsize
    queue_factorization(
        handle,
        routine(f"cusolverDn<t>{name}", dtype),
        multiply,
        dev_info,
        reads=[reflectors, scales, out],
        writes=[out],
        workspace=workspace,
    )


# The functions of the older interface for each dtype, whose letter begins the name.
_SINGLE, _DOUBLE, _COMPLEX, _DOUBLE_COMPLEX = LETTERS.values()
sorgqr, dorgqr = functools.partial(_orgqr, _SINGLE), functools.partial(_orgqr, _DOUBLE)
cungqr, zungqr = functools.partial(_orgqr, _COMPLEX), functools.partial(_orgqr, _DOUBLE_COMPLEX)
sormqr, dormqr = functools.partial(_ormqr, _SINGLE), functools.partial(_ormqr, _DOUBLE)
cunmqr, zunmqr = functools.partial(_ormqr, _COMPLEX), functools.partial(_ormqr, _DOUBLE_COMPLEX)
sorgqr_buffer_size = functools.partial(_orgqr_buffer_size, _SINGLE)
dorgqr_buffer_size = functools.partial(_orgqr_buffer_size, _DOUBLE)
cungqr_buffer_size = functools.partial(_orgqr_buffer_size, _COMPLEX)
zungqr_buffer_size = functools.partial(_orgqr_buffer_size, _DOUBLE_COMPLEX)
sormqr_buffer_size = functools.partial(_ormqr_buffer_size, _SINGLE)
dormqr_buffer_size = functools.partial(_ormqr_buffer_size, _DOUBLE)
cunmqr_buffer_size = functools.partial(_ormqr_buffer_size, _COMPLEX)
zunmqr_buffer_size = functools.partial(_ormqr_buffer_size, _DOUBLE_COMPLEX)


# -- singular values and eigenvalues -------------------------------------------------------------


@_call
def xgesvd_buffer_size(
    handle: int, params: int, jobu: int, jobvt: int, m: int, n: int, data_type_a: int, a: int, lda: int,
    data_type_s: int, s: int, data_type_u: int, u: int, ldu: int, data_type_vt: int, vt: int, ldvt: int,
    compute_type: int,
) -> tuple[int, int]:  # fmt: skip  # grouped by meaning
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXgesvd_bufferSize)."""
    matrix_at(a, m, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xgesvd(
    handle: int, params: int, jobu: int, jobvt: int, m: int, n: int, data_type_a: int, a: int, lda: int,
    data_type_s: int, s: int, data_type_u: int, u: int, ldu: int, data_type_vt: int, vt: int, ldvt: int,
    compute_type: int, buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int,
    workspace_in_bytes_on_host: int, info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the singular value decomposition of a tall matrix, which is overwritten (cusolverDnXgesvd)."""
    if m < n:
        raise LibraryError(Status.INVALID_VALUE, f"the matrix has {m} rows and {n} columns, and must not be wide")
    if (jobu, jobvt) != (ord("S"), ord("S")):
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator computes both sides, with no more columns than needed")
    sides = matrix_at(u, m, n, ldu, data_type_u), matrix_at(vt, n, n, ldvt, data_type_vt)
    matrix, values = matrix_at(a, m, n, lda, data_type_a), vector(int(s), n, DTYPES[int(data_type_s)])
    workspace = buffer_on_device, workspace_in_bytes_on_device
    _decompose(handle, "cusolverDnXgesvd", matrix, values, sides, info, workspace)


@_call
def xgesvdp_buffer_size(
    handle: int, params: int, jobz: int, econ: int, m: int, n: int, data_type_a: int, a: int, lda: int,
    data_type_s: int, s: int, data_type_u: int, u: int, ldu: int, data_type_v: int, v: int, ldv: int,
    compute_type: int,
) -> tuple[int, int]:  # fmt: skip  # grouped by meaning
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXgesvdp_bufferSize)."""
    matrix_at(a, m, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xgesvdp(
    handle: int, params: int, jobz: int, econ: int, m: int, n: int, data_type_a: int, a: int, lda: int,
    data_type_s: int, s: int, data_type_u: int, u: int, ldu: int, data_type_v: int, v: int, ldv: int,
    compute_type: int, buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int,
    workspace_in_bytes_on_host: int, d_info: int,
) -> float:  # fmt: skip  # grouped by meaning
    """Queue an SVD that returns V, not its transpose; return 0.0 as the perturbation (cusolverDnXgesvdp)."""
    if jobz != EigMode.VECTOR or not econ or m < n:
        raise LibraryError(
            Status.NOT_SUPPORTED, "the simulator computes both sides of a tall matrix, with no more columns than needed"
        )
    sides = matrix_at(u, m, n, ldu, data_type_u), matrix_at(v, n, n, ldv, data_type_v)
    matrix, values = matrix_at(a, m, n, lda, data_type_a), vector(int(s), n, DTYPES[int(data_type_s)])
    workspace = buffer_on_device, workspace_in_bytes_on_device
    _decompose(handle, "cusolverDnXgesvdp", matrix, values, sides, d_info, workspace, turned=True)
    return 0.0


def _decompose(
    handle: int, name: str, matrix: Operand, values: Operand, sides: tuple[Operand, Operand], info: int,
    workspace: tuple[int, int], *, turned: bool = False,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue a singular value decomposition; with `turned`, its right side is V instead of its conjugate transpose."""
    left, right = sides

    def decompose() -> int:
        u, s, vt, verdict = lapack_function("gesvd", matrix)(matrix.elements, full_matrices=0)
        left.elements[...], values.elements[...] = u, s
        right.elements[...] = _conjugate_transpose(vt) if turned else vt
        return int(verdict)

    writes = [values, left, right, matrix]
    queue_factorization(handle, name, decompose, info, reads=[matrix], writes=writes, workspace=workspace)


def _conjugate_transpose(matrix: Numbers) -> Numbers:
    return matrix.conj().T


@_call
def xsyevd_buffer_size(
    handle: int, params: int, jobz: int, uplo: int, n: int, data_type_a: int, a: int, lda: int, data_type_w: int,
    w: int, compute_type: int,
) -> tuple[int, int]:  # fmt: skip  # grouped by meaning
    """Return the sizes of the device and host workspaces in bytes (cusolverDnXsyevd_bufferSize)."""
    matrix_at(a, n, n, lda, data_type_a)
    return WORKSPACE, WORKSPACE


@_call
def xsyevd(
    handle: int, params: int, jobz: int, uplo: int, n: int, data_type_a: int, a: int, lda: int, data_type_w: int,
    w: int, compute_type: int, buffer_on_device: int, workspace_in_bytes_on_device: int, buffer_on_host: int,
    workspace_in_bytes_on_host: int, info: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the eigendecomposition of a matrix of which one triangle is stored (cusolverDnXsyevd).

    The eigenvectors overwrite the matrix.
    """
    if jobz != EigMode.VECTOR:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator computes eigenvalues only together with eigenvectors")
    matrix, values = matrix_at(a, n, n, lda, data_type_a), vector(int(w), n, DTYPES[int(data_type_w)])
    lower = uplo == FillMode.LOWER

    def decompose() -> int:
        name = "heevd" if matrix.dtype.kind == "c" else "syevd"
        values.elements[...], matrix.elements[...], verdict = lapack_function(name, matrix)(
            matrix.elements, lower=lower
        )
        return int(verdict)

    workspace = buffer_on_device, workspace_in_bytes_on_device
    queue_factorization(
        handle,
        "cusolverDnXsyevd",
        decompose,
        info,
        reads=triangle_of(matrix, lower=lower),
        writes=[matrix, values],
        workspace=workspace,
    )
