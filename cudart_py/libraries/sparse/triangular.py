"""Triangular systems with sparse matrices, with cuSPARSE."""

from __future__ import annotations

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import Factor, Scalar, scalar
from ..failures import failure
from ..handles import allocate_workspace, keep, library_handle, refuse_first_use
from ..outputs import output_for
from .matrix import LONG, Analysis, DenseMatrix, DenseVector, Description, SparseMatrix, check_matrix, extents_of

FORMATS = ("csr", "coo")


@answers_keywords("spsv")
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
    ignored. With `unit`, all diagonal elements are taken as ones, whatever values are stored. `a` is square and has the
    format "csr" or "coo". `b` and `out`, by default a new vector, are contiguous vectors, and `out` may be `b`.

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
    factor = scalar(call, "alpha", alpha, a._kind)
    out = output_for(call, out, b.shape, b.dtype, (where, device), reason="like 'b'")
    arguments.contiguous(call, "out", out)
    right = {"b": (b.pointer, b.nbytes)} if out.pointer != b.pointer else {}
    views.check_apart(call, "out", out.pointer, out.nbytes, **right, **extents_of(a))
    if not out.size:
        return out
    with activated(device):
        operands = DenseVector(b, a._kind), DenseVector(out, a._kind)
        _queue("sv", a, (lower, unit, op), (operation,), factor, operands, 1, where, device)
    keep(where, call, b, out)
    return out


@answers_keywords("spsm")
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
    factor = scalar(call, "alpha", alpha, a._kind)
    out = output_for(call, out, b.shape, b.dtype, (where, device), reason="like 'b'")
    left = views.matrix(call, "out", out)
    in_place = out.pointer == b.pointer and left == right
    other = {} if in_place else {"b": (b.pointer, right.span)}
    views.check_apart(call, "out", out.pointer, left.span, **other, **extents_of(a))
    if not out.size:
        return out
    with activated(device):
        operands = DenseMatrix(b, right, a._kind), DenseMatrix(out, left, a._kind)
        operations = operation, int(library("cusparse").Operation.NON_TRANSPOSE)
        _queue("sm", a, (lower, unit, op), operations, factor, operands, right.columns, where, device)
    keep(where, call, b, out)
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
    effective = "T" if op == "C" and not a._kind.is_complex else op
    return where, device, int(library("cusparse").Operation[LONG[effective]])


def _queue(
    family: str,
    a: SparseMatrix,
    triangle: tuple[bool, bool, str],
    operations: tuple[int, ...],
    factor: Factor,
    operands: tuple[Description, Description],
    columns: int,
    stream: Stream,
    device: Device,
) -> None:
    """Queue a solve by SpSV ("sv") or SpSM ("sm"); the device must be current.

    If there was no analysis for the triangle and as many right-hand sides, it is queued before.
    """
    enums, handle = library("cusparse"), library_handle("cusparse", stream, device)
    algorithm = int(enums.SpSVAlg.DEFAULT if family == "sv" else enums.SpSMAlg.DEFAULT)
    ends = operands[0].handle, operands[1].handle, a._kind.scalar_code, algorithm

    def call(phase: str, analysis: Analysis, *buffer: int) -> int:
        function = getattr(handle.functions, f"sp_{family}_{phase}")
        matrix, state = analysis.description.handle, analysis.state.handle
        size: int = function(handle.native, *operations, factor.address, matrix, *ends, state, *buffer)
        return size

    analysis: Analysis | None = a._prepared.get((family, *triangle))
    try:
        if analysis is None or analysis.columns < columns:
            refuse_first_use(stream.handle, "a solve with this matrix")
            analysis = Analysis(family, _triangle(a, lower=triangle[0], unit=triangle[1]), columns)
            analysis.buffer = allocate_workspace(call("buffer_size", analysis), stream)
            call("analysis", analysis, analysis.buffer.pointer)
            a._prepared[family, *triangle] = analysis
        call("solve", analysis)
    except Exception as error:
        raise failure(f"cusparseSp{family.upper()}", error) from error
    keep(stream, f"sp{family}", a.values, a.indices, a.offsets, analysis)


def _triangle(a: SparseMatrix, *, lower: bool, unit: bool) -> Description:
    """Return a descriptor of a triangle of a matrix (cusparseSpMatSetAttribute)."""
    enums = library("cusparse")
    description = a._describe()
    for attribute, value in (
        (enums.SpMatAttribute.FILL_MODE, enums.FillMode.LOWER if lower else enums.FillMode.UPPER),
        (enums.SpMatAttribute.DIAG_TYPE, enums.DiagType.UNIT if unit else enums.DiagType.NON_UNIT),
    ):
        number = np.array([int(value)], np.int32)
        enums.sp_mat_set_attribute(description.handle, int(attribute), number.ctypes.data, number.nbytes)
    return description
