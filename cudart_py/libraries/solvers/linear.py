"""Systems of linear equations with dense matrices, with cuSOLVER and cuBLAS.

Arguments are never modified. Each function returns complete results: the host waits until the library reports success
or failure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import arguments
from ...context.current import activated
from ...context.device import Device
from ...context.lifetimes import Handle  # releases the parameters at the right time
from ...driver.calls import library
from ...errors import InvalidValueError
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import factor, operation
from ..dtypes import Kind
from ..failures import NotPositiveDefiniteError, SingularMatrixError, failure
from ..handles import library_handle, thread_cache
from .layout import copied, diagonal, transposed, triangle

TYPES = ("float32", "float64", "complex64", "complex128")


class _Parameters(Handle):
    """The cusolverDnParams_t that the 64-bit functions require. Its defaults are never changed."""

    __slots__ = ()

    def __init__(self) -> None:
        self._owned = True
        self._value = library("cusolverDn").create_params()

    def _release(self, value: Any) -> None:
        library("cusolverDn").destroy_params(value)


def _symbol(name: str) -> str:
    """Return the name of a cuSOLVER function from that of its binding: "cusolverDnXgetrf" for "xgetrf"."""
    return f"cusolverDn{name[:1].upper()}{name[1:]}"


class Work:
    """One use of cuSOLVER: its handle, its stream, and the status (`info`) that it writes to device memory."""

    def __init__(self, stream: Stream, device: Device) -> None:
        self.stream = stream
        handle = library_handle("cusolverDn", stream, device)
        self.handle, self.functions = handle.native, handle.functions
        cache = thread_cache("cusolverDn")
        if "parameters" not in cache:
            cache["parameters"] = _Parameters()
        self.parameters = cache["parameters"].handle
        self.info = empty(1, np.int32, stream=stream)
        self._held: list[Any] = []

    def run(self, name: str, *operands: Any, sizing: tuple[Any, ...] | None = None) -> None:
        """Call a function of the 64-bit interface, "xgetrf" for cusolverDnXgetrf, with the workspaces that it needs.

        `sizing` has the arguments of the function that returns the workspace sizes, if they differ from `operands`.
        """
        functions = self.functions
        try:
            ask = getattr(functions, f"{name}_buffer_size")
            sizes = ask(self.handle, self.parameters, *(operands if sizing is None else sizing))
            device_bytes, host_bytes = int(sizes[0]), int(sizes[1])
            memory = empty(max(device_bytes, 1), np.uint8, stream=self.stream)
            host = np.empty(max(host_bytes, 1), np.uint8)
            self._held.append(host)  # kept alive until `verdict` has waited
            getattr(functions, name)(
                self.handle, self.parameters, *operands, memory.pointer, device_bytes, host.ctypes.data, host_bytes,
                self.info.pointer,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def run_typed(self, name: str, *operands: Any) -> None:
        """Call a function of the older interface, "dormqr" for cusolverDnDormqr, with the workspace that it needs."""
        functions = self.functions
        try:
            count = int(getattr(functions, f"{name}_buffer_size")(self.handle, *operands))
            # The count is in elements, which have at most 16 bytes.
            memory = empty(max(count, 1), np.complex128, stream=self.stream)
            getattr(functions, name)(self.handle, *operands, memory.pointer, count, self.info.pointer)
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def run_plain(self, name: str, *operands: Any) -> None:
        """Call a function of the 64-bit interface that needs no workspace."""
        try:
            getattr(self.functions, name)(self.handle, self.parameters, *operands, self.info.pointer)
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def verdict(self, name: str) -> int:
        """Wait and return the status of a function, "xgetrf" for cusolverDnXgetrf: 0 for success, or a positive number.

        It is the failed pivot, counted from 1, the order of the minor that is not positive, or the number of values
        that did not converge. Raises InvalidValueError for a negative status.
        """
        info = int(self.info.to_host(stream=self.stream)[0])
        self._held.clear()
        if info < 0:
            symbol = _symbol(name)
            raise InvalidValueError(f"{symbol}: argument {-info} of the library's function is wrong", call=symbol)
        return info


def check_square(call: str, name: str, a: DeviceArray) -> int:
    """Return the order of a square matrix; raise ValueError if it is not square or has no rows."""
    view = views.matrix(call, name, a)
    if view.rows != view.columns or not view.rows:
        raise arguments.unusable(call, name, "be square with at least one row", f"of shape {a.shape}")
    return view.rows


def check_right_hand_side(call: str, b: DeviceArray, a: DeviceArray) -> None:
    """Check the right-hand sides for a matrix: a vector, or a matrix with one column per system."""
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        rule = f"have shape ({a.shape[0]},) or ({a.shape[0]}, n) for 'a' of shape {a.shape}"
        raise arguments.unusable(call, "b", rule, b.shape)
    if b.ndim == 2:
        views.matrix(call, "b", b)
    else:
        arguments.contiguous(call, "b", b)


def columns_of(b: DeviceArray, kind: Kind, stream: Stream) -> tuple[DeviceArray, int]:
    """Return a column-major copy of right-hand sides, and their number."""
    return (copied(b, stream), 1) if b.ndim == 1 else (transposed(b, kind, stream), b.shape[1])


def rows_of(x: DeviceArray, like: DeviceArray, kind: Kind, stream: Stream) -> DeviceArray:
    """Return column-major solutions in the row-major layout of the right-hand sides `like`."""
    return x if like.ndim == 1 else transposed(x, kind, stream)


def solve(a: DeviceArray, b: DeviceArray, *, positive: bool = False, stream: Stream | None = None) -> DeviceArray:
    """Return x such that a x = b, for a vector or a matrix of right-hand sides (cusolverDnXgetrf and Xgetrs).

    Uses LU with partial pivoting. With `positive`, which declares the matrix Hermitian and positive definite, uses
    Cholesky (Xpotrf) and reads only the lower triangle. Raises SingularMatrixError, with the zero pivot, or
    NotPositiveDefiniteError, with the minor that is not positive. Raises TypeError or ValueError, naming the operand.
    There is no check for NaNs: if `a` contains one, the solution contains NaNs, unless the factorization stops at the
    NaN and raises an error.
    """
    call = "solve"
    positive = arguments.flag(call, "positive", positive)
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, b=b)
    kind = views.kind(call, "a", a, TYPES)
    n = check_square(call, "a", a)
    check_right_hand_side(call, b, a)
    if not b.size:
        return empty(b.shape, b.dtype, stream=where)
    with activated(device):
        work = Work(where, device)
        x, count = columns_of(b, kind, where)
        ends = kind.code, x.pointer, n
        if positive:
            factors = _factor_positive(call, work, a, kind)
            matrix = int(library("cublas").FillMode.LOWER), n, count, kind.code, factors.pointer, n
            work.run_plain("xpotrs", *matrix, *ends)
            work.verdict("xpotrs")
        else:
            # Our rows are LAPACK's columns, so it factors the transpose of a.
            factors = copied(a, where)
            pivots = empty(n, np.int64, stream=where)
            shape = n, n, kind.code, factors.pointer, n
            work.run("xgetrf", *shape, pivots.pointer, kind.code, sizing=(*shape, kind.code))
            pivot = work.verdict("xgetrf")
            if pivot:
                raise SingularMatrixError(
                    f"{call}: 'a' is singular: pivot {pivot - 1} of its elimination is zero", pivot=pivot - 1, call=call
                )
            matrix = int(library("cublas").Operation.T), n, count, kind.code, factors.pointer, n
            work.run_plain("xgetrs", *matrix, pivots.pointer, *ends)
            work.verdict("xgetrs")
        return rows_of(x, b, kind, where)


def _factor_positive(call: str, work: Work, a: DeviceArray, kind: Kind) -> DeviceArray:
    """Factor a positive definite matrix; return L in column-major order, with unrelated numbers above its diagonal.

    The matrix is transposed first, because cuSOLVER is twice as fast with the lower triangle as with the upper one.
    Without the copy, it would see our lower triangle as the upper one.
    """
    factors, n = transposed(a, kind, work.stream), a.shape[0]
    work.run("xpotrf", int(library("cublas").FillMode.LOWER), n, kind.code, factors.pointer, n, kind.code)
    minor = work.verdict("xpotrf")
    if minor:
        fact = f"its leading minor of order {minor} is not positive"
        raise NotPositiveDefiniteError(f"{call}: 'a' is not positive definite: {fact}", minor=minor, call=call)
    return factors


def cholesky(a: DeviceArray, *, stream: Stream | None = None) -> DeviceArray:
    """Return the lower triangular L such that L L^H = a, for a Hermitian positive definite matrix (cusolverDnXpotrf).

    Only the lower triangle of `a` is read. Raises NotPositiveDefiniteError, with the minor that is not positive, and
    TypeError or ValueError, naming the operand. There is no check for NaNs: if `a` contains one, L contains NaNs,
    unless the factorization stops at the NaN and raises an error.
    """
    call = "cholesky"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    n = check_square(call, "a", a)
    with activated(device):
        return triangle(_factor_positive(call, Work(where, device), a, kind), n, where, lower=True)


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
    n = check_square(call, "a", a)
    check_right_hand_side(call, b, a)
    turn = operation(call, "op", op)
    matrix = views.matrix(call, "a", a)
    with activated(device):
        if not unit:
            zeros = np.flatnonzero(diagonal(a, where) == 0)
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
        handle = library_handle("cublas", where, device)
        # cuBLAS is column-major, so it sees the transposed matrices: x^T op(a)^T = b^T.
        try:
            getattr(handle.functions, f"{kind.letter}trsm")(
                handle.native, int(enums.SideMode.RIGHT), int(fill), turn, int(diag), count, n, one.address,
                a.pointer, matrix.leading, x.pointer, count,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure(f"cublas{kind.letter.upper()}trsm", error) from error
        return x
