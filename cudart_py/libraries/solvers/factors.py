"""Orthogonal factorizations of dense matrices, least squares and eigenvalues, with cuSOLVER.

Arguments are never modified. Each function returns complete results: the host waits until the library reports success
or failure.
"""

from __future__ import annotations

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...hints import answers_keywords
from ...host.callers import warn_caller
from ...memory.array import DeviceArray
from ...memory.creation import empty, to_device, zeros
from ...streams.stream import Stream
from .. import views
from ..blas.cublas_calls import call_cublas
from ..blas.products import gemm
from ..blas.scalars import factor
from ..dtypes import KINDS, Kind
from ..failures import IllConditionedWarning, not_converged
from .batched_factors import check_rank, eigh_batch, lstsq_batch, qr_batch, svd_batch
from .layout import by_rows, copied, transposed, transposed_batch
from .linear import check_square
from .right_hand_sides import check_right_hand_side, columns_of
from .work import TYPES, WITH_VECTORS, Work


@answers_keywords("qr")
def qr(a: DeviceArray, *, stream: Stream | None = None) -> tuple[DeviceArray, DeviceArray]:
    """Return Q, with orthonormal columns, and the upper triangular R, such that Q R = a (cusolverDnXgeqrf, Xorgqr).

    `a` must have at least as many rows as columns. If it has three dimensions, it is a batch of matrices
    (cublasSgeqrfBatched, and Xorgqr for one matrix after the other). Dtypes and layouts are those of `solve`. Raises
    TypeError or ValueError, naming the operand.
    """
    call = "qr"
    where, device = views.device_of(call, stream)
    if _is_batch(a):
        return qr_batch(call, a, where, device)
    a, kind = _check_tall(call, a, where, device)
    m, n = a.shape
    with activated(device):
        work = Work(where, device)
        factors, tau = _factor(work, a, kind)
        upper = transposed_batch(factors, where, part="upper", rows=n)  # copied before Q overwrites it
        name = _name(kind, "gqr")
        work.run_typed(name, m, n, n, factors.pointer, m, tau.pointer)
        work.status(name)
        return transposed(factors, kind, where), upper


@answers_keywords("lstsq")
def lstsq(
    a: DeviceArray,
    b: DeviceArray,
    *,
    method: str = "qr",
    rcond: float | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return the x that minimises the norm of a x - b, for one or several right-hand sides (cusolverDnXgeqrf, Sormqr).

    With `method="qr"`, the fastest, `a` must have at least as many rows as columns, and full rank. If `a` has three
    dimensions, it is a batch of matrices, and `b` has the shape (batch, m) or (batch, m, k) (cublasSgelsBatched).

    With `method="svd"`, `a` is a single matrix of any shape and rank, and x the solution with the smallest norm, as
    `numpy.linalg.lstsq` returns it (cusolverDnXgesvd). Singular values of at most `rcond` times the largest count as
    zero; the default of `rcond` is max(m, n) eps. If some do, an IllConditionedWarning gives the rank.

    Dtypes and layouts are those of `solve`. With `method="qr"`, raises SingularMatrixError, with the column, if a
    column depends on the previous ones, whatever the scales of the columns: if its distance from their span is at most
    10 n eps times its norm, for n columns. With `method="svd"`, raises NotConvergedError, a LinAlgError as in NumPy, if
    `a` contains NaN or infinity. Raises TypeError or ValueError, naming the operand.
    """
    call = "lstsq"
    arguments.choice(call, "method", method, ("qr", "svd"))
    if rcond is not None:
        rcond = arguments.number(call, "rcond", rcond, 0.0, 1.0)
        if method == "qr":
            raise arguments.wrong_value(call, "rcond", "None with method='qr'", rcond, "pass method='svd'")
    where, device = views.device_of(call, stream)
    if method == "svd":
        return _least_norm(call, a, b, rcond, where, device)
    if _is_batch(a):
        return lstsq_batch(call, a, b, where, device)
    a, kind = _check_tall(call, a, where, device)
    views.check_place(call, device, b=b)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    b = by_rows(call, "b", b, kind, where, device)
    check_right_hand_side(call, b, a)
    m, n = a.shape
    if not b.size:
        return empty((n, *b.shape[1:]), b.dtype, stream=where)
    with activated(device):
        work = Work(where, device)
        factors, tau = _factor(work, a, kind)
        check_rank(call, factors, kind, where)
        x, count = columns_of(b, kind, where)
        enums = library("cublas")
        operation = int(enums.Operation.C if kind.is_complex else enums.Operation.T)
        sizes = int(enums.SideMode.LEFT), operation, m, count, n
        name = _name(kind, "mqr")
        work.run_typed(name, *sizes, factors.pointer, m, tau.pointer, x.pointer, m)
        one = factor(1.0, kind)
        call_cublas(
            where, device, f"{kind.letter}trsm", int(enums.SideMode.LEFT), int(enums.FillMode.UPPER),
            int(enums.Operation.N), int(enums.DiagType.NON_UNIT), n, count, one.address, factors.pointer, m, x.pointer,
            m,
        )  # fmt: skip  # grouped by meaning
        work.status(name)
        if b.ndim == 1:
            return copied(x[:n], where)
        return transposed(x[:, :n], kind, where)


def _least_norm(
    call: str, a: DeviceArray, b: DeviceArray, rcond: float | None, stream: Stream, device: Device
) -> DeviceArray:
    """Return the least-squares solution with the smallest norm, V diag(1 / s) U^H b, from the values that count."""
    views.check_place(call, device, a=a, b=b)
    kind = views.kind(call, "a", a, TYPES)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    if a.ndim == 3:
        rule = "be a single matrix with method='svd'"
        raise arguments.unusable(call, "a", rule, f"of shape {a.shape}", "pass one matrix after the other")
    a, b = by_rows(call, "a", a, kind, stream, device), by_rows(call, "b", b, kind, stream, device)
    views.matrix(call, "a", a)
    check_right_hand_side(call, b, a)
    if not a.size or not b.size:
        name, array = ("a", a) if not a.size else ("b", b)
        raise arguments.unusable(call, name, "have at least one element", f"the shape {array.shape}")
    u, s, vh = _decomposed(call, a, kind, "qr", stream, device)
    values = s.to_host(stream=stream)
    missing = int(np.count_nonzero(~np.isfinite(values)))
    if missing:
        raise not_converged(call, f"{missing} of {len(values)} singular values of 'a'")
    with np.errstate(all="ignore"):
        least = (max(a.shape) * np.finfo(kind.real).eps if rcond is None else rcond) * values[0]
    rank = int(np.count_nonzero(~(values <= least)))  # NaNs count, so that the solution has NaNs too
    if rank < len(values):
        text = f"{call}: 'a' has the rank {rank}, not {len(values)}: x is the solution with the smallest norm"
        warn_caller(text, IllConditionedWarning)
    right = b.reshape(b.size, 1) if b.ndim == 1 else b
    columns = right.shape[1]
    with activated(device):
        x = zeros((a.shape[1], columns), a.dtype, stream=stream)
        if rank:
            parts = gemm(u[:, :rank], right, op_a="C", stream=stream).to_host(stream=stream)
            with np.errstate(all="ignore"):
                scaled = (parts / values[:rank, None]).astype(a.dtype)
            gemm(vh[:rank], to_device(scaled, stream=stream), x, op_a="C", stream=stream)
    return x.reshape(x.shape[0]) if b.ndim == 1 else x


@answers_keywords("svd")
def svd(
    a: DeviceArray, *, method: str = "qr", stream: Stream | None = None
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Return U, the singular values s in descending order, and V^H, such that U diag(s) V^H = a, in reduced form.

    `method` is "qr" (cusolverDnXgesvd) or "polar" (cusolverDnXgesvdp), which is faster and finds singular values below
    eps times the largest less accurately. If `a` has three dimensions, it is a batch of matrices: those of at most 32
    rows and columns are decomposed together by the Jacobi method (cusolverDnSgesvdjBatched), and larger ones one after
    another. For `a` of shape (m, n), U has the shape (m, min(m, n)) and V^H (min(m, n), n). Dtypes and layouts are
    those of `solve`; s is real. Raises NotConvergedError if the iteration does not converge, and TypeError or
    ValueError, naming the operand.
    """
    call = "svd"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    arguments.choice(call, "method", method, ("qr", "polar"))
    if a.ndim == 3:
        return svd_batch(call, a, kind, where, device, lambda matrix: svd(matrix, method=method, stream=stream))
    a = by_rows(call, "a", a, kind, where, device)
    views.matrix(call, "a", a, batched=True)
    if not a.size:
        raise arguments.unusable(call, "a", "have at least one row and one column", f"the shape {a.shape}")
    return _decomposed(call, a, kind, method, where, device)


def _decomposed(
    call: str, a: DeviceArray, kind: Kind, method: str, stream: Stream, device: Device
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Return U, the singular values and V^H of a row-major matrix."""
    m, n = a.shape
    with activated(device):
        # cuSOLVER requires tall, column-major matrices. A row-major matrix is the column-major transpose. So a wide or
        # square matrix already is a tall one in its present layout, and U and V^H exchange roles.
        is_wide = m <= n
        matrix = copied(a, stream) if is_wide else transposed(a, kind, stream)
        first, values, second = _svd_of_columns(call, matrix, kind, method, stream, device)
        if is_wide:
            return second, values, first
        return transposed(first, kind, stream), values, transposed(second, kind, stream)


def _svd_of_columns(
    call: str, matrix: DeviceArray, kind: Kind, method: str, stream: Stream, device: Device
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Decompose a tall column-major matrix; return U, the singular values and V^H, with U and V^H column-major."""
    n, m = matrix.shape
    left = empty((n, m), matrix.dtype, stream=stream)
    right = empty((n, n), matrix.dtype, stream=stream)
    values = empty(n, kind.real, stream=stream)
    work = Work(stream, device)
    code, real = kind.code, KINDS[kind.real].code
    ends = code, matrix.pointer, m, real, values.pointer, code, left.pointer, m, code, right.pointer, n, code
    if method == "qr":
        name, modes = "xgesvd", (ord("S"), ord("S"))
    else:
        name, modes = "xgesvdp", (WITH_VECTORS, 1)  # with the thin factors
    work.run(name, *modes, m, n, *ends)
    failed = work.status(name)
    if failed:
        raise not_converged(call, f"{failed} of {n} singular values of 'a'")
    if method == "polar":
        right = transposed(right, kind, stream, conjugate=kind.is_complex)
    return left, values, right


@answers_keywords("eigh")
def eigh(a: DeviceArray, *, stream: Stream | None = None) -> tuple[DeviceArray, DeviceArray]:
    """Return the eigenvalues of a Hermitian matrix, in ascending order, and its eigenvectors, as columns.

    Only the lower triangle of `a` is read (cusolverDnXsyevd). If `a` has three dimensions, it is a batch of matrices
    (cusolverDnXsyevBatched). Dtypes and layouts are those of `solve`; the eigenvalues are real. Raises
    NotConvergedError if the iteration does not converge, and TypeError or ValueError, naming the operand.
    """
    call = "eigh"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    if a.ndim == 3:
        return eigh_batch(call, a, kind, where, device)
    a = by_rows(call, "a", a, kind, where, device)
    n = check_square(call, "a", a)
    with activated(device):
        vectors = copied(a, where)
        values = empty(n, kind.real, stream=where)
        work = Work(where, device)
        real = KINDS[kind.real].code
        fill = int(library("cublas").FillMode.UPPER)  # column-major LAPACK sees our lower triangle as the upper one
        work.run("xsyevd", WITH_VECTORS, fill, n, kind.code, vectors.pointer, n, real, values.pointer, kind.code)
        failed = work.status("xsyevd")
        if failed:
            raise not_converged(call, f"{failed} of {n} eigenvalues of 'a'")
        # LAPACK saw the transpose. For a Hermitian matrix this is the conjugate, so the eigenvectors are conjugated.
        return values, transposed(vectors, kind, where, conjugate=kind.is_complex)


def _is_batch(a: object) -> bool:
    return isinstance(a, DeviceArray) and a.ndim == 3


# The remedy for a matrix that has more columns than rows.
_FOR_WIDE = {
    "lstsq": "pass method='svd'",
    "qr": "Q is that of qr(a[:, :len(a)]), and R is gemm(Q, a, op_a='C')",
}


def _check_tall(call: str, a: DeviceArray, stream: Stream, device: Device) -> tuple[DeviceArray, Kind]:
    """Return a matrix with contiguous rows, and its kind; raise ValueError if it has more columns than rows."""
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    a = by_rows(call, "a", a, kind, stream, device)
    view = views.matrix(call, "a", a, batched=True)
    if not 0 < view.columns <= view.rows:
        raise arguments.unusable(
            call,
            "a",
            "have at least one column, and at least as many rows as columns",
            f"the shape {a.shape}",
            _FOR_WIDE[call] if a.size else "",
        )
    return a, kind


def _name(kind: Kind, what: str) -> str:
    return f"{kind.letter}{'un' if kind.is_complex else 'or'}{what}"


def _factor(work: Work, a: DeviceArray, kind: Kind) -> tuple[DeviceArray, DeviceArray]:
    """Factor a tall matrix; return R with the Householder reflectors, column-major, and the scalars tau."""
    m, n = a.shape
    factors = transposed(a, kind, work.stream)
    tau = empty(n, a.dtype, stream=work.stream)
    work.run("xgeqrf", m, n, kind.code, factors.pointer, m, kind.code, tau.pointer, kind.code)
    return factors, tau
