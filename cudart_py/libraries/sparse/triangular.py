"""Triangular systems with sparse matrices, with cuSPARSE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import Scalar, scalar
from ..failures import failure
from ..handles import keep, library_handle, refuse_first_use
from .matrix import LONG, Analysis, DenseMatrix, DenseVector, Description, SparseMatrix, check_matrix

FORMATS = ("csr", "coo")


def spsv(
    a: SparseMatrix,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    lower: bool = True,
    unit: bool = False,
    op: str = "N",
    alpha: Scalar = 1.0,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the solution x of op(a) x = alpha b for a triangle of a sparse matrix and return it (cusparseSpSV).

    The triangle consists of the elements on the diagonal and below it or, with `lower=False`, above it; the others are
    ignored. `unit` means that its diagonal has ones, whatever is stored. `a` is square and has the format "csr" or
    "coo". `b` and `out`, by default a new vector, are contiguous vectors, and `out` may be `b`.

    The first solve with each triangle and `op` analyses the matrix, copies its values and allocates memory, so call it
    once before a capture. After you have changed the values, call `a.refresh()`. Solves with the same triangle and `op`
    share a buffer, so they must not run at the same time. If the triangle has a zero on its diagonal, the result is
    meaningless; the simulator's checks report it. Raises TypeError or ValueError, naming the operand, before anything
    is queued.
    """
    call = "spsv"
    where, device, operation = _checked(call, a, b, lower, unit, op, stream)
    views.vector(call, "b", b)
    arguments.contiguous(call, "b", b)
    arguments.same_shape(call, "b", b, (a.shape[0],), f"for 'a' of shape {a.shape}")
    factor = scalar(call, "alpha", alpha, a.kind)
    out = _output(call, a, b, out, where, device)
    arguments.contiguous(call, "out", out)
    if out.pointer != b.pointer:
        views.check_apart(call, "out", out.pointer, out.nbytes, b=(b.pointer, b.nbytes))
    if not out.size:
        return out
    with activated(device):
        vectors = DenseVector(b, a.kind), DenseVector(out, a.kind)
        handle = library_handle("cusparse", where, device)
        common = vectors[0].handle, vectors[1].handle, a.kind.scalar_code, int(library("cusparse").SpSVAlg.DEFAULT)

        def parameters(description: Description, state: Description) -> tuple[int, ...]:
            return handle.native, operation, factor.address, description.handle, *common, state.handle

        _solve("sv", a, (lower, unit, op), 1, handle, parameters, where, b, out)
    return out


def spsm(
    a: SparseMatrix,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    lower: bool = True,
    unit: bool = False,
    op: str = "N",
    alpha: Scalar = 1.0,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the solutions x of op(a) x = alpha b for the columns of a dense matrix, and return them (cusparseSpSM).

    Each row of `b` and `out` must be contiguous. Everything else is as in `spsv`. A matrix with more columns than any
    before it is analysed again.
    """
    call = "spsm"
    where, device, operation = _checked(call, a, b, lower, unit, op, stream)
    right = views.matrix(call, "b", b)
    if right.rows != a.shape[0]:
        raise arguments.unusable(call, "b", f"have {a.shape[0]} rows for 'a' of shape {a.shape}", right.rows)
    factor = scalar(call, "alpha", alpha, a.kind)
    out = _output(call, a, b, out, where, device)
    left = views.matrix(call, "out", out)
    if out.pointer != b.pointer or left != right:
        views.check_apart(call, "out", out.pointer, left.span, b=(b.pointer, right.span))
    if not out.size:
        return out
    enums = library("cusparse")
    with activated(device):
        matrices = DenseMatrix(b, right, a.kind), DenseMatrix(out, left, a.kind)
        handle = library_handle("cusparse", where, device)
        common = matrices[0].handle, matrices[1].handle, a.kind.scalar_code, int(enums.SpSMAlg.DEFAULT)
        operations = operation, int(enums.Operation.NON_TRANSPOSE)

        def parameters(description: Description, state: Description) -> tuple[int, ...]:
            return handle.native, *operations, factor.address, description.handle, *common, state.handle

        _solve("sm", a, (lower, unit, op), right.columns, handle, parameters, where, b, out)
    return out


def _checked(
    call: str, a: SparseMatrix, b: DeviceArray, lower: bool, unit: bool, op: str, stream: Stream | None
) -> tuple[Stream, Device, int]:
    """Check the arguments that both functions have; return the stream, its device and the cusparseOperation_t."""
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device, FORMATS)
    if a.shape[0] != a.shape[1]:
        raise arguments.unusable(call, "a", "be square", f"of shape {a.shape}")
    views.check_place(call, device, b=b)
    views.require_dtype(call, "b", b, a.values.dtype, "like 'a'")
    arguments.flag(call, "lower", lower)
    arguments.flag(call, "unit", unit)
    arguments.choice(call, "op", op, LONG)
    # A real matrix has no conjugate transpose in cuSPARSE.
    turn = "T" if op == "C" and not a.kind.is_complex else op
    return where, device, int(library("cusparse").Operation[LONG[turn]])


def _output(
    call: str, a: SparseMatrix, b: DeviceArray, out: DeviceArray | None, stream: Stream, device: Device
) -> DeviceArray:
    if out is None:
        with activated(device):
            return empty(b.shape, b.dtype, stream=stream)
    if isinstance(out, bool):
        raise arguments.wrong_type(call, "out", "a DeviceArray", out, f"pass lower={out}")
    views.check_place(call, device, out=out)
    views.require_dtype(call, "out", out, a.values.dtype, "like 'a'")
    arguments.same_shape(call, "out", out, b.shape, "like 'b'")
    return out


def _solve(
    family: str,
    a: SparseMatrix,
    triangle: tuple[bool, bool, str],
    columns: int,
    handle: Any,
    parameters: Callable[[Description, Description], tuple[int, ...]],
    stream: Stream,
    b: DeviceArray,
    out: DeviceArray,
) -> None:
    """Queue a solve, and before it the analysis if there was none for the triangle and as many columns."""
    functions, name = handle.functions, f"cusparseSp{family.upper()}"
    analysis: Analysis | None = a.prepared.get((family, *triangle))
    try:
        if analysis is None or analysis.columns < columns:
            refuse_first_use(stream.handle, "a solve with this matrix")
            analysis = Analysis(family, _triangle(a, lower=triangle[0], unit=triangle[1]), columns)
            given = parameters(analysis.description, analysis.state)
            size = getattr(functions, f"sp_{family}_buffer_size")(*given)
            analysis.buffer = empty(max(size, 1), np.uint8, stream=stream)
            getattr(functions, f"sp_{family}_analysis")(*given, analysis.buffer.pointer)
            a.prepared[family, *triangle] = analysis
        getattr(functions, f"sp_{family}_solve")(*parameters(analysis.description, analysis.state))
    except Exception as error:
        raise failure(name, error) from error
    keep(stream, f"sp{family}", b, out, a.values, a.indices, a.offsets, analysis)


def _triangle(a: SparseMatrix, *, lower: bool, unit: bool) -> Description:
    """Return a descriptor of a triangle of a matrix (cusparseSpMatSetAttribute)."""
    enums = library("cusparse")
    description = a.describe()
    for attribute, value in (
        (enums.SpMatAttribute.FILL_MODE, enums.FillMode.LOWER if lower else enums.FillMode.UPPER),
        (enums.SpMatAttribute.DIAG_TYPE, enums.DiagType.UNIT if unit else enums.DiagType.NON_UNIT),
    ):
        number = np.array([int(value)], np.int32)
        enums.sp_mat_set_attribute(description.handle, int(attribute), number.ctypes.data, number.nbytes)
    return description
