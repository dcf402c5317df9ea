"""Systems of linear equations with dense matrices, with cuSOLVER and cuBLAS.

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
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.cublas_calls import call_cublas
from ..blas.scalars import factor, operation
from ..dtypes import Kind
from ..failures import IllConditionedWarning, NotPositiveDefiniteError, SingularMatrixError
from .batched_linear import cholesky_batch, solve_batch
from .layout import by_rows, copied, diagonals, transposed, transposed_batch
from .refined import check_precision, solve_refined
from .right_hand_sides import check_right_hand_side, columns_of, rows_of
from .work import TYPES, Work


def check_square(call: str, name: str, a: DeviceArray) -> int:
    """Return the order of a square matrix; raise ValueError if it is not square or has no rows.

    The function also accepts batches, which are checked elsewhere: the error for a vector says so.
    """
    view = views.matrix(call, name, a, batched=True)
    if view.rows != view.columns or not view.rows:
        raise arguments.unusable(call, name, "be square with at least one row", f"of shape {a.shape}")
    return view.rows


def factor_in_place(call: str, factors: DeviceArray, kind: Kind, stream: Stream, device: Device) -> DeviceArray:
    """Factor a column-major matrix in place and return its pivots; raise SingularMatrixError for a zero pivot."""
    n = factors.shape[0]
    work = Work(stream, device)
    pivots = empty(n, np.int64, stream=stream)
    shape = n, n, kind.code, factors.pointer, n
    work.run("xgetrf", *shape, pivots.pointer, kind.code, sizing=(*shape, kind.code))
    pivot = work.status("xgetrf")
    if pivot:
        raise SingularMatrixError(
            f"{call}: 'a' is singular: pivot {pivot - 1} of its elimination is zero", pivot=pivot - 1, call=call
        )
    return pivots


@answers_keywords("solve")
def solve(
    a: DeviceArray,
    b: DeviceArray,
    *,
    positive: bool = False,
    precision: str | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return x such that a x = b, for a vector or a matrix of right-hand sides (cusolverDnXgetrf and Xgetrs).

    `a` has the shape (n, n), and `b` the shape (n,) or (n, k). If `a` has three dimensions, it is a batch of matrices,
    and `b` has the shape (batch, n) or (batch, n, k) (cublasSgetrfBatched and getrsBatched; with `positive`,
    cusolverDnSpotrfBatched). Both have the same dtype: float32, float64, complex64 or complex128. The rows or the
    columns of a single matrix must be contiguous, and the rows of the matrices of a batch; a single vector must be
    contiguous.

    Uses LU with partial pivoting. With `positive`, which declares the matrix Hermitian and positive definite, uses
    Cholesky (Xpotrf) and reads only the lower triangle.

    `precision` is the precision of the factors of a single matrix: "float32" for double precision, "float16",
    "bfloat16" or "tf32". The solution is refined to the precision of `a` (cusolverDnDSgesv and others), which is faster
    for large, well-conditioned matrices. If the refinement does not converge, the system is solved without it, and an
    IllConditionedWarning is given.

    Raises SingularMatrixError, with the zero pivot, or NotPositiveDefiniteError, with the minor that is not positive.
    Raises TypeError or ValueError, naming the operand. NaNs are not detected: if `a` contains one, the solution
    contains NaNs, unless the factorization stops at the NaN and raises an error.
    """
    call = "solve"
    positive = arguments.flag(call, "positive", positive)
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, b=b)
    kind = views.kind(call, "a", a, TYPES)
    check_precision(call, precision, kind, positive=positive)
    if a.ndim == 3:
        if precision is not None:
            raise arguments.wrong_value(call, "precision", "None for a batch", precision)
        return solve_batch(call, a, b, kind, where, device, positive=positive)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    a, b = by_rows(call, "a", a, kind, where, device), by_rows(call, "b", b, kind, where, device)
    n = check_square(call, "a", a)
    check_right_hand_side(call, b, a)
    if not b.size:
        return empty(b.shape, b.dtype, stream=where)
    with activated(device):
        if precision is not None:
            refined = solve_refined(a, b, kind, precision, where, device)
            if refined is not None:
                return refined
            text = f"the refinement of factors in {precision} did not converge, so the system was solved without it"
            warn_caller(f"{call}: 'a' is ill-conditioned: {text}", IllConditionedWarning)
        work = Work(where, device)
        x, count = columns_of(b, kind, where)
        ends = kind.code, x.pointer, n
        if positive:
            factors = _factor_positive(call, work, a, kind)
            matrix = int(library("cublas").FillMode.LOWER), n, count, kind.code, factors.pointer, n
            work.run_plain("xpotrs", *matrix, *ends)
            work.status("xpotrs")
        else:
            # Our rows are LAPACK's columns, so it factors the transpose of a.
            factors = copied(a, where)
            pivots = factor_in_place(call, factors, kind, where, device)
            matrix = int(library("cublas").Operation.T), n, count, kind.code, factors.pointer, n
            work.run_plain("xgetrs", *matrix, pivots.pointer, *ends)
            work.status("xgetrs")
        return rows_of(x, b, kind, where)


def _factor_positive(call: str, work: Work, a: DeviceArray, kind: Kind) -> DeviceArray:
    """Factor a positive definite matrix; return L in column-major order, with unrelated numbers above its diagonal.

    The matrix is transposed first, because cuSOLVER is twice as fast with the lower triangle as with the upper one.
    Without the copy, it would see our lower triangle as the upper one.
    """
    factors, n = transposed(a, kind, work.stream), a.shape[0]
    work.run("xpotrf", int(library("cublas").FillMode.LOWER), n, kind.code, factors.pointer, n, kind.code)
    minor = work.status("xpotrf")
    if minor:
        fact = f"its leading minor of order {minor} is not positive"
        raise NotPositiveDefiniteError(f"{call}: 'a' is not positive definite: {fact}", minor=minor, call=call)
    return factors


@answers_keywords("cholesky")
def cholesky(a: DeviceArray, *, stream: Stream | None = None) -> DeviceArray:
    """Return the lower triangular L such that L L^H = a, for a Hermitian positive definite matrix (cusolverDnXpotrf).

    If `a` has three dimensions, it is a batch of matrices (cusolverDnSpotrfBatched). Only the lower triangle of `a` is
    read. Dtypes and layouts are those of `solve`. Raises NotPositiveDefiniteError, with the minor that is not positive,
    and TypeError or ValueError, naming the operand. NaNs are not detected: if `a` contains one, L contains NaNs, unless
    the factorization stops at the NaN and raises an error.
    """
    call = "cholesky"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    if a.ndim == 3:
        return cholesky_batch(call, a, kind, where, device)
    a = by_rows(call, "a", a, kind, where, device)
    check_square(call, "a", a)
    with activated(device):
        factors = _factor_positive(call, Work(where, device), a, kind)
        return transposed_batch(factors, where, part="lower")


@answers_keywords("solve_triangular")
def solve_triangular(
    a: DeviceArray,
    b: DeviceArray,
    *,
    lower: bool = True,
    op: str = "N",
    unit: bool = False,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return x such that op(a) x = b, for a triangular matrix (cublasStrsm and others).

    `a` is a single matrix. The shapes of `b`, the dtypes and the layouts are those of `solve`.

    - `lower`: `a` is lower triangular, otherwise upper; the other triangle is not read. The default is True, whereas
      SciPy's function assumes an upper triangular matrix.
    - `op`: "N", "T" or "C", as for `gemm`.
    - `unit`: assume that all diagonal elements are one, and do not read them.

    Raises SingularMatrixError, with the row, if a diagonal element is zero. Raises TypeError or ValueError, naming the
    operand.
    """
    call = "solve_triangular"
    lower, unit = arguments.flag(call, "lower", lower), arguments.flag(call, "unit", unit)
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, b=b)
    kind = views.kind(call, "a", a, TYPES)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    arguments.dimensions(call, "a", a, 2)
    a, b = by_rows(call, "a", a, kind, where, device), by_rows(call, "b", b, kind, where, device)
    n = check_square(call, "a", a)
    check_right_hand_side(call, b, a)
    operation_code = operation(call, "op", op)
    matrix = views.matrix(call, "a", a)
    with activated(device):
        if not unit:
            zeros = np.flatnonzero(diagonals(a, where) == 0)
            if zeros.size:
                raise SingularMatrixError(
                    f"{call}: 'a' is singular: its diagonal is zero in row {zeros[0]}", pivot=int(zeros[0]), call=call
                )
        x = copied(b, where)
        count = 1 if b.ndim == 1 else b.shape[1]
        if not count:
            return x
        enums = library("cublas")
        fill = enums.FillMode.UPPER if lower else enums.FillMode.LOWER
        diag = enums.DiagType.UNIT if unit else enums.DiagType.NON_UNIT
        one = factor(1.0, kind)
        # cuBLAS is column-major, so it sees the transposed matrices: x^T op(a)^T = b^T.
        call_cublas(
            where, device, f"{kind.letter}trsm", int(enums.SideMode.RIGHT), int(fill), operation_code, int(diag), count,
            n, one.address, a.pointer, matrix.leading, x.pointer, count,
        )  # fmt: skip  # grouped by meaning
        return x
