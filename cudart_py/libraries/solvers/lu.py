"""LU factors that solve many systems, and inverses, of one matrix or a batch, with cuSOLVER and cuBLAS."""

from __future__ import annotations

import numpy as np

from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...hints import answers_keywords
from ...host.callers import warn_caller
from ...memory.array import DeviceArray
from ...memory.creation import empty, zeros
from ...streams.stream import Stream
from .. import views
from ..blas.cublas_calls import call_cublas
from ..blas.reductions import nrm2
from ..blas.scalars import operation
from ..dtypes import Kind
from ..failures import IllConditionedWarning
from .batched_linear import check_pivots, factor_batch, solve_factored
from .batches import addresses_of, check_batch
from .layout import by_rows, transposed, transposed_batch
from .linear import check_square, factor_in_place
from .right_hand_sides import (
    check_right_hand_side,
    check_right_hand_sides,
    columns_of,
    columns_of_batch,
    rows_of,
    rows_of_batch,
)
from .work import TYPES, Work


class LuFactors:
    """The LU factors of a matrix, or of each matrix of a batch: row exchanges, L and U with P a = L U.

    `lu_factor` returns them. They solve systems with new right-hand sides without factoring the matrix again.
    """

    def __init__(self, factors: DeviceArray, pivots: DeviceArray, kind: Kind) -> None:
        self._factors, self._kind = factors, kind
        self._pivots = pivots

    def __repr__(self) -> str:
        return f"<LuFactors of shape {self._factors.shape}, {self._factors.dtype}>"

    @property
    def lu(self) -> DeviceArray:
        """U, and below the diagonal L without its diagonal of ones; a view with contiguous columns."""
        shape, strides = self._factors.shape, self._factors.strides
        shape, strides = (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])
        return self._factors._view(shape, self._factors.dtype, strides, 0)

    @property
    def pivots(self) -> DeviceArray:
        """For each row in order, the row with which it was exchanged, counted from 1 as in LAPACK."""
        return self._pivots

    @answers_keywords("LuFactors.solve")
    def solve(self, b: DeviceArray, *, op: str = "N", stream: Stream | None = None) -> DeviceArray:
        """Return x with op(a) x = b, for one or several right-hand sides (cusolverDnXgetrs, cublasSgetrsBatched).

        `b` has the shapes that `solve` takes, and `op` is "N", "T" or "C". Raises TypeError or ValueError, naming the
        argument.
        """
        call = "LuFactors.solve"
        where, device = views.device_of(call, stream)
        views.check_place(call, device, b=b)
        operation_code = operation(call, "op", op)
        factors, kind = self._factors, self._kind
        if factors.ndim == 3:
            check_right_hand_sides(call, b, factors)
            if not b.size:
                return empty(b.shape, b.dtype, stream=where)
            with activated(device):
                x, addresses = columns_of_batch(b, where), addresses_of(factors, where)
                solve_factored(where, device, kind, operation_code, addresses, self._pivots, x)
                return rows_of_batch(x, b, where)
        views.require_dtype(call, "b", b, factors.dtype, "like 'a'")
        b = by_rows(call, "b", b, kind, where, device)
        check_right_hand_side(call, b, factors)
        if not b.size:
            return empty(b.shape, b.dtype, stream=where)
        with activated(device):
            work = Work(where, device)
            x, count = columns_of(b, kind, where)
            n = factors.shape[0]
            matrix = operation_code, n, count, kind.code, factors.pointer, n, self._pivots.pointer
            work.run_plain("xgetrs", *matrix, kind.code, x.pointer, n)
            work.status("xgetrs")
            return rows_of(x, b, kind, where)


@answers_keywords("lu_factor")
def lu_factor(a: DeviceArray, *, stream: Stream | None = None) -> LuFactors:
    """Return the LU factors of a matrix, or of each matrix of a batch (cusolverDnXgetrf, cublasSgetrfBatched).

    Dtypes and layouts are those of `solve`. Raises SingularMatrixError, with the zero pivot, and TypeError or
    ValueError, naming the operand.
    """
    call = "lu_factor"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    if a.ndim == 3:
        check_batch(call, "a", a, square=True)
        with activated(device):
            factors = transposed_batch(a, where)
            _, pivots, info = factor_batch(factors, kind, where, device)
            check_pivots(call, info, where)
            return LuFactors(factors, pivots, kind)
    a = by_rows(call, "a", a, kind, where, device)
    check_square(call, "a", a)
    with activated(device):
        factors = transposed(a, kind, where)
        return LuFactors(factors, factor_in_place(call, factors, kind, where, device), kind)


@answers_keywords("inv")
def inv(a: DeviceArray, *, stream: Stream | None = None) -> DeviceArray:
    """Return the inverse of a matrix, or of each matrix of a batch (cusolverDnXgetrf and Xgetrs, cublasSgetriBatched).

    To solve systems, use `solve`, which is faster and more accurate. Warns with an IllConditionedWarning if the inverse
    of a single matrix has no correct digits: if its condition number in the Frobenius norm exceeds 1 / eps. Dtypes and
    layouts are those of `solve`. Raises SingularMatrixError, with the zero pivot, and TypeError or ValueError, naming
    the operand.
    """
    call = "inv"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    if a.ndim == 3:
        return _inverses(call, a, kind, where, device)
    a = by_rows(call, "a", a, kind, where, device)
    n = check_square(call, "a", a)
    with activated(device):
        # Our rows are LAPACK's columns, so it inverts the transpose, and its columns are the rows of the inverse.
        copy = a.copy(stream=where)
        size = nrm2(copy.reshape(-1), stream=stream)
        pivots = factor_in_place(call, copy, kind, where, device)
        inverse = zeros((n, n), a.dtype, stream=where)
        inverse._view((n,), a.dtype, ((n + 1) * a.itemsize,), 0).fill(1, stream=where)
        work = Work(where, device)
        none = int(library("cublas").Operation.N)
        matrix = none, n, n, kind.code, copy.pointer, n, pivots.pointer, kind.code, inverse.pointer, n
        work.run_plain("xgetrs", *matrix)
        condition = float(size) * float(nrm2(inverse.reshape(-1), stream=stream))
        work.status("xgetrs")
    if not condition * np.finfo(kind.real).eps < 1:
        text = f"its condition number is about {condition:.1e}, so the result may have no correct digits"
        warn_caller(f"{call}: 'a' is ill-conditioned: {text}", IllConditionedWarning)
    return inverse


def _inverses(call: str, a: DeviceArray, kind: Kind, stream: Stream, device: Device) -> DeviceArray:
    n = check_batch(call, "a", a, square=True).rows
    count = a.shape[0]
    with activated(device):
        copy = a.copy(stream=stream)
        inverse = empty(a.shape, a.dtype, stream=stream)
        if not count:
            return inverse
        addresses, pivots, info = factor_batch(copy, kind, stream, device)
        # It reports the same zero pivots, in an array of its own.
        targets, unused = addresses_of(inverse, stream), empty(count, np.int32, stream=stream)
        call_cublas(
            stream, device, f"{kind.letter}getri_batched", n, addresses.pointer, n, pivots.pointer, targets.pointer, n,
            unused.pointer, count,
        )  # fmt: skip  # grouped by meaning
        check_pivots(call, info, stream)
        return inverse
