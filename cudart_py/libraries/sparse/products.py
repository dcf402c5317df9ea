"""Products with sparse matrices, with cuSPARSE."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import Scalar, check_unread, scalar
from ..failures import failure
from ..handles import allocate_workspace, keep, library_handle, refuse_first_use, scratch
from ..outputs import output_for
from .matrix import LONG, DenseMatrix, DenseVector, Description, SparseMatrix, SparseVector, check_matrix, extents_of


class _Prepared(NamedTuple):
    """The result of cuSPARSE's preprocessing of a matrix, with its descriptor and buffer."""

    description: Description
    buffer: DeviceArray


@answers_keywords("spmv")
def spmv(
    a: SparseMatrix,
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op: str = "N",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha op(a) x + beta out for a dense vector and return `out`, by default a new vector (cusparseSpMV).

    `op` is "N", "T" or "C", and `x` and `out` must be contiguous. The first product of a matrix with each `op` in a
    stream analyses the matrix and allocates memory, so call it once in this stream before a capture. Raises TypeError
    or ValueError, naming the operand, before anything is queued.
    """
    call = "spmv"
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device)
    views.check_place(call, device, x=x)
    views.require_dtype(call, "x", x, a.values.dtype, "like 'a'")
    views.vector(call, "x", x)
    arguments.contiguous(call, "x", x)
    rows, columns = _sizes(call, a, op)
    arguments.same_shape(call, "x", x, (columns,), f"for 'a' of shape {a.shape} with op={op!r}")
    factors = scalar(call, "alpha", alpha, a._kind), scalar(call, "beta", beta, a._kind)
    if out is None:
        check_unread(call, beta)
    reason = f"for 'a' of shape {a.shape} with op={op!r}"
    out = output_for(call, out, (rows,), a.values.dtype, (where, device), reason=reason)
    arguments.contiguous(call, "out", out)
    views.check_apart(call, "out", out.pointer, out.nbytes, x=(x.pointer, x.nbytes), **extents_of(a))
    if not out.size:
        return out
    enums = library("cusparse")
    numbers = factors[0].address, factors[1].address
    with activated(device):
        vector, result = DenseVector(x, a._kind), DenseVector(out, a._kind)
        handle = library_handle("cusparse", where, device)
        ends = int(enums.SpMVAlg.DEFAULT), where
        prepared = a._prepared.get(("mv", op, where.handle))
        try:
            operation = int(enums.Operation[LONG[op]])
            if prepared is None:
                prepared = _prepare(a, op, handle, operation, numbers, vector, result, *ends)
            handle.functions.sp_mv(
                handle.native, operation, numbers[0], prepared.description.handle, vector.handle, numbers[1],
                result.handle, a._kind.scalar_code, ends[0], prepared.buffer.pointer,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure("cusparseSpMV", error) from error
    keep(where, "spmv", x, out, a.values, a.indices, a.offsets, prepared.buffer)
    return out


def _prepare(
    a: SparseMatrix,
    op: str,
    handle: Any,
    operation: int,
    numbers: tuple[int, int],
    vector: DenseVector,
    result: DenseVector,
    algorithm: int,
    stream: Stream,
) -> _Prepared:
    # The descriptor keeps the result of the preprocessing, and later products must use the same buffer. Each operation
    # and each stream has its own: a product in another stream would not wait for the preprocessing.
    description = a._describe()
    functions = handle.functions
    parameters = (
        handle.native, operation, numbers[0], description.handle, vector.handle, numbers[1], result.handle,
        a._kind.scalar_code, algorithm,
    )  # fmt: skip  # grouped by meaning
    refuse_first_use(stream.handle, "a product with this matrix")
    size = functions.sp_mv_buffer_size(*parameters)
    buffer = allocate_workspace(size, stream)
    if a.format == "csr":
        functions.sp_mv_preprocess(*parameters, buffer.pointer)
    a._prepared["mv", op, stream.handle] = prepared = _Prepared(description, buffer)
    return prepared


@answers_keywords("spmm")
def spmm(
    a: SparseMatrix,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op: str = "N",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha op(a) b + beta out for a dense matrix and return `out`, by default a new matrix (cusparseSpMM).

    `a` must have the format "csr", "csc" or "coo". Each row of `b` and `out` must be contiguous. Raises TypeError or
    ValueError, naming the operand, before anything is queued.
    """
    call = "spmm"
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device, formats=("csr", "csc", "coo"))
    views.check_place(call, device, b=b)
    views.require_dtype(call, "b", b, a.values.dtype, "like 'a'")
    right = views.matrix(call, "b", b)
    rows, columns = _sizes(call, a, op)
    if right.rows != columns:
        rule = f"have {columns} rows for 'a' of shape {a.shape} with op={op!r}"
        raise arguments.unusable(call, "b", rule, right.rows)
    factors = scalar(call, "alpha", alpha, a._kind), scalar(call, "beta", beta, a._kind)
    if out is None:
        check_unread(call, beta)
    shape, reason = (rows, right.columns), "for the product of 'a' and 'b'"
    out = output_for(call, out, shape, a.values.dtype, (where, device), reason=reason)
    left = views.matrix(call, "out", out)
    views.check_apart(call, "out", out.pointer, left.span, b=(b.pointer, right.span), **extents_of(a))
    if not out.size:
        return out
    enums = library("cusparse")
    with activated(device):
        dense, result = DenseMatrix(b, right, a._kind), DenseMatrix(out, left, a._kind)
        handle = library_handle("cusparse", where, device)
        description = a._describe_once()
        parameters = (
            handle.native, int(enums.Operation[LONG[op]]), int(enums.Operation.NON_TRANSPOSE),
            factors[0].address, description.handle, dense.handle, factors[1].address, result.handle,
            a._kind.scalar_code, int(enums.SpMMAlg.DEFAULT),
        )  # fmt: skip  # grouped by meaning
        try:
            memory = scratch(device).get(handle.functions.sp_mm_buffer_size(*parameters), where)
            handle.functions.sp_mm(*parameters, memory.pointer)
        except Exception as error:
            raise failure("cusparseSpMM", error) from error
    keep(where, "spmm", b, out, a.values, a.indices, a.offsets, memory)
    return out


def gemvi(
    a: DeviceArray,
    x: SparseVector,
    out: DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op: str = "N",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha op(a) x + beta out for a dense matrix and a sparse vector and return `out` (cusparseSgemvi).

    Each row of `a` must be contiguous. `out` is a dense vector, by default a new one, and `op` is "N" or "T". Raises
    TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "gemvi"
    where, device = views.device_of(call, stream)
    _check_vector(call, "x", x, device)
    views.check_place(call, device, a=a)
    views.require_dtype(call, "a", a, x.values.dtype, "like 'x'")
    matrix = views.matrix(call, "a", a)
    arguments.choice(call, "op", op, ("N", "T"))
    rows, columns = (matrix.rows, matrix.columns) if op == "N" else (matrix.columns, matrix.rows)
    if x.size != columns:
        rule = f"have size {columns} for 'a' of shape {a.shape} with op={op!r}"
        raise arguments.unusable(call, "x", rule, x.size)
    factors = scalar(call, "alpha", alpha, x._kind), scalar(call, "beta", beta, x._kind)
    if out is None:
        check_unread(call, beta)
    reason = f"for 'a' of shape {a.shape} with op={op!r}"
    out = output_for(call, out, (rows,), a.dtype, (where, device), reason=reason)
    arguments.contiguous(call, "out", out)
    views.check_apart(
        call, "out", out.pointer, out.nbytes, a=(a.pointer, matrix.span), x=(x.values.pointer, x.values.nbytes)
    )
    if not rows:
        return out
    enums, letter, count = library("cusparse"), x._kind.letter, x.values.size
    # cuSPARSE expects a column-major matrix here, so it sees the transpose.
    operation = int(enums.Operation[LONG["T" if op == "N" else "N"]])
    sizes = operation, matrix.columns, matrix.rows
    with activated(device):
        handle = library_handle("cusparse", where, device)
        functions = handle.functions
        try:
            needed = getattr(functions, f"{letter}gemvi_buffer_size")(handle.native, *sizes, count)
            memory = scratch(device).get(needed, where)
            getattr(functions, f"{letter}gemvi")(
                handle.native, *sizes, factors[0].address, a.pointer, matrix.leading, count, x.values.pointer,
                x.indices.pointer, factors[1].address, out.pointer, int(enums.IndexBase.ZERO), memory.pointer,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure(f"cusparse{letter.upper()}gemvi", error) from error
    keep(where, "gemvi", a, x.values, x.indices, out, memory)
    return out


def spdot(x: SparseVector, y: DeviceArray, *, stream: Stream | None = None) -> Scalar:
    """Return the sum of x[i] y[i] for a sparse and a dense vector, without conjugation (cusparseSpVV).

    `y` is contiguous, with the size and the dtype of `x`. The host waits for the result. Raises TypeError or
    ValueError, naming the operand, before anything is queued.
    """
    call = "spdot"
    where, device = views.device_of(call, stream)
    _check_vector(call, "x", x, device)
    views.check_place(call, device, y=y)
    views.require_dtype(call, "y", y, x.values.dtype, "like 'x'")
    arguments.same_shape(call, "y", y, (x.size,), "like 'x'")
    arguments.contiguous(call, "y", y)
    result = np.zeros(1, x.values.dtype)
    enums = library("cusparse")
    with activated(device):
        dense = DenseVector(y, x._kind)
        handle = library_handle("cusparse", where, device)
        parameters = (
            handle.native, int(enums.Operation.NON_TRANSPOSE), x._description.handle, dense.handle,
            result.ctypes.data, x._kind.scalar_code,
        )  # fmt: skip  # grouped by meaning
        try:
            memory = scratch(device).get(handle.functions.sp_vv_buffer_size(*parameters), where)
            handle.functions.sp_vv(*parameters, memory.pointer)
        except Exception as error:
            raise failure("cusparseSpVV", error) from error
        where.synchronize()
    value: Scalar = result[0].item()
    return value


def _check_vector(call: str, name: str, x: Any, device: Device) -> None:
    arguments.instance(call, name, x, SparseVector)
    views.check_place(call, device, **{f"{name}.indices": x.indices, f"{name}.values": x.values})


def _sizes(call: str, a: SparseMatrix, op: str) -> tuple[int, int]:
    arguments.choice(call, "op", op, LONG)
    return a.shape if op == "N" else (a.shape[1], a.shape[0])
