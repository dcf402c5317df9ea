"""Orthogonal factorizations, least squares and eigenvalues of batches of matrices, with cuBLAS and cuSOLVER."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.cublas_calls import call_cublas
from ..dtypes import KINDS, Kind
from ..failures import dependent_column, not_converged
from .batches import addresses_of, check_batch, one_by_one
from .layout import column_sizes, not_finite, transposed_batch
from .right_hand_sides import check_right_hand_sides, columns_of_batch, rows_of_batch
from .work import TYPES, WITH_VECTORS, Work

Parts = tuple[DeviceArray, DeviceArray, DeviceArray]

# The largest matrices of the batched Jacobi method.
MOST_JACOBI = 32


def _check_tall_batch(call: str, a: DeviceArray, device: Device) -> Kind:
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    view = check_batch(call, "a", a, square=False)
    if view.columns > view.rows:
        raise arguments.unusable(call, "a", "have at least as many rows as columns", f"the shape {a.shape}")
    return kind


def qr_batch(call: str, a: DeviceArray, stream: Stream, device: Device) -> tuple[DeviceArray, DeviceArray]:
    """Return Q and R of each matrix of a batch (cublasSgeqrfBatched, and one cusolverDnSorgqr per matrix)."""
    kind = _check_tall_batch(call, a, device)
    count, m, n = a.shape
    with activated(device):
        factors = transposed_batch(a, stream)
        tau = empty((count, n), a.dtype, stream=stream)
        if not count:
            return empty(a.shape, a.dtype, stream=stream), empty((0, n, n), a.dtype, stream=stream)
        addresses, scalars = addresses_of(factors, stream), addresses_of(tau, stream)
        status = np.zeros(1, np.int32)  # of the arguments, in host memory
        operands = m, n, addresses.pointer, m, scalars.pointer, status.ctypes.data, count
        call_cublas(stream, device, f"{kind.letter}geqrf_batched", *operands)
        upper = transposed_batch(factors, stream, part="upper", rows=n)
        work = Work(stream, device)
        name = f"{kind.letter}{'un' if kind.is_complex else 'or'}gqr"
        matrix, vector = factors.nbytes // count, tau.nbytes // count
        work.run_typed_batch(
            name,
            [(m, n, n, factors.pointer + i * matrix, m, tau.pointer + i * vector) for i in range(count)],
        )
        work.status(name)
        return transposed_batch(factors, stream), upper


def lstsq_batch(call: str, a: DeviceArray, b: DeviceArray, stream: Stream, device: Device) -> DeviceArray:
    """Return the least-squares solutions of a batch of systems with full rank (cublasSgelsBatched)."""
    kind = _check_tall_batch(call, a, device)
    views.check_place(call, device, b=b)
    check_right_hand_sides(call, b, a)
    count, m, n = a.shape
    if not b.size:
        return empty((count, n, *b.shape[2:]), b.dtype, stream=stream)
    with activated(device):
        factors, x = transposed_batch(a, stream), columns_of_batch(b, stream)
        info, status = empty(count, np.int32, stream=stream), np.zeros(1, np.int32)
        none = int(library("cublas").Operation.N)
        operands = addresses_of(factors, stream), addresses_of(x, stream)
        call_cublas(
            stream, device, f"{kind.letter}gels_batched", none, m, n, x.shape[1], operands[0].pointer, m,
            operands[1].pointer, m, status.ctypes.data, info.pointer, count,
        )  # fmt: skip  # grouped by meaning
        check_rank(call, factors, kind, stream)
        return rows_of_batch(x[:, :, :n].copy(stream=stream), b, stream)


def check_rank(call: str, factors: DeviceArray, kind: Kind, stream: Stream) -> None:
    """Raise SingularMatrixError for the first column that depends on the previous ones, to within rounding error.

    `factors` has the R of a matrix, or of each matrix of a batch. Its diagonal elements are the distances of the
    columns from the span of the previous columns, and its columns have the norms of those of `a`.
    """
    distances, norms = column_sizes(factors, kind, stream)
    # Householder's method changes each column by a few eps times the norm of that column (Higham, Accuracy and
    # Stability of Numerical Algorithms, theorem 19.4). As in R's dqrdc2, each distance is compared with the norm of its
    # own column, so the scales of the columns do not matter. The distances of dependent columns of random matrices were
    # at most 15 eps times the norm in LAPACK, for 2 to 300 columns and up to a million rows.
    is_dependent = distances <= 10 * distances.shape[-1] * np.finfo(kind.real).eps * norms
    # LAPACK may set the other columns of a matrix with infinity to zero. Its solution contains NaN.
    dependent = np.argwhere(is_dependent & np.isfinite(norms).all(axis=-1, keepdims=True))
    if dependent.size:
        *index, column = map(int, dependent[0])
        raise dependent_column(call, f"matrix {index[0]} of 'a'" if index else "'a'", column)


def svd_batch(
    call: str,
    a: DeviceArray,
    kind: Kind,
    stream: Stream,
    device: Device,
    single: Callable[[DeviceArray], Parts],
) -> Parts:
    """Return U, s and V^H of each matrix of a batch (cusolverDnSgesvdjBatched).

    cuSOLVER has no such function for larger matrices; `single` decomposes those one by one.
    """
    view = check_batch(call, "a", a, square=False)
    count, rows, columns = a.shape
    least = min(rows, columns)
    if not count:
        shapes = (0, rows, least), (0, least), (0, least, columns)
        u, s, vh = (
            empty(shape, dtype, stream=stream)
            for shape, dtype in zip(shapes, (a.dtype, kind.real, a.dtype), strict=True)
        )
        return u, s, vh
    if max(view.rows, view.columns) > MOST_JACOBI:
        u, s, vh = one_by_one(a, single, stream)
        return u, s, vh
    with activated(device):
        # LAPACK sees the transpose of each matrix: a^T = W diag(s) Z^H, so a = conj(Z) diag(s) W^T.
        matrix = a.copy(stream=stream)
        affected = not_finite(matrix, stream)
        if affected.size:  # an H200's cuSOLVER returned finite numbers for them
            raise not_converged(call, f"the iteration for matrix {affected[0]} of 'a'")
        m, n = columns, rows
        values = empty((count, least), kind.real, stream=stream)
        left, right = (empty((count, order, order), a.dtype, stream=stream) for order in (m, n))
        work = Work(stream, device, count)
        name = f"{kind.letter}gesvdj_batched"
        operands = WITH_VECTORS, m, n, matrix.pointer, m, values.pointer, left.pointer, m, right.pointer, n
        work.run_jacobi(name, *operands)
        _check_converged(call, work, name)
        u = transposed_batch(right[:, :least], stream, conjugate=kind.is_complex)
        return u, values, left[:, :least].copy(stream=stream)


def _check_converged(call: str, work: Work, name: str) -> None:
    failed = np.flatnonzero(work.statuses(name))
    if failed.size:
        raise not_converged(call, f"the iteration for matrix {failed[0]} of 'a'")


def eigh_batch(
    call: str, a: DeviceArray, kind: Kind, stream: Stream, device: Device
) -> tuple[DeviceArray, DeviceArray]:
    """Return the eigenvalues and eigenvectors of a batch of Hermitian matrices (cusolverDnXsyevBatched)."""
    n = check_batch(call, "a", a, square=True).rows
    count = a.shape[0]
    with activated(device):
        vectors = a.copy(stream=stream)
        values = empty((count, n), kind.real, stream=stream)
        if not count:
            return values, vectors
        work = Work(stream, device, count)
        real = KINDS[kind.real].code
        fill = int(library("cublas").FillMode.UPPER)  # column-major LAPACK sees our lower triangles as the upper ones
        operands = WITH_VECTORS, fill, n, kind.code, vectors.pointer, n, real, values.pointer, kind.code
        work.run("xsyev_batched", *operands, last=(count,))
        _check_converged(call, work, "xsyev_batched")
        # LAPACK saw the transposes. For Hermitian matrices these are the conjugates.
        return values, transposed_batch(vectors, stream, conjugate=kind.is_complex)
