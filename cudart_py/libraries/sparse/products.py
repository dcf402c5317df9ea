"""Products with sparse matrices: cuSPARSE on DeviceArrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arguments import describe
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import Scalar, check_unread, scalar
from ..failures import failure
from ..handles import keep, library_handle, scratch
from .matrix import DenseMatrix, DenseVector, Description, SparseMatrix, SparseVector

__all__ = ["gemvi", "spdot", "spmm", "spmv"]


class _Prepared(NamedTuple):
    """What cuSPARSE found out about a matrix for one operation: it belongs to this descriptor and this buffer."""

    description: Description
    buffer: DeviceArray


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
    """Queue out = alpha op(a) x + beta out for a dense vector and return `out`, new unless given (cusparseSpMV).

    `op` is "N", "T" or "C". The first product of a matrix with an `op` prepares it, which allocates: before a
    capture, call it once. Raises TypeError and ValueError naming the operand; nothing is queued then.
    """
    where, device = views.device_of(stream)
    _check_matrix("a", a, device)
    views.check_place(device, x=x)
    views.require_dtype("x", x, a.values.dtype, "a")
    views.vector("x", x)
    views.require_contiguous("x", x)
    rows, columns = _turned(a, op)
    views.require_shape("x", x, (columns,), f"a of shape {a.shape} with op={op!r}")
    if out is None:
        out = _new((rows,), a, beta, where, device)
    views.check_place(device, out=out)
    views.require_dtype("out", out, a.values.dtype, "a")
    views.require_shape("out", out, (rows,), f"a of shape {a.shape} with op={op!r}")
    views.require_contiguous("out", out)
    views.check_apart("out", out.pointer, out.nbytes, x=(x.pointer, x.nbytes))
    factors = scalar("alpha", alpha, a.kind), scalar("beta", beta, a.kind)
    if not out.size:
        return out
    enums = library("cusparse")
    numbers = factors[0].address, factors[1].address
    with activated(device):
        vector, result = DenseVector(x, a.kind), DenseVector(out, a.kind)
        handle = library_handle("cusparse", where, device)
        ends = int(enums.SpMVAlg.DEFAULT), where
        prepared = a.prepared.get(("mv", op))
        try:
            operation = int(enums.Operation[_LONG[op]])
            if prepared is None:
                prepared = _prepare(a, op, handle, operation, numbers, vector, result, *ends)
            handle.functions.sp_mv(
                handle.native, operation, numbers[0], prepared.description.handle, vector.handle, numbers[1],
                result.handle, a.kind.scalar_code, ends[0], prepared.buffer.pointer,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure("cusparseSpMV", error) from error
    keep(where, "spmv", x, out, a.values, a.indices, a.offsets, prepared.buffer)
    return out


_LONG = {"N": "NON_TRANSPOSE", "T": "TRANSPOSE", "C": "CONJUGATE_TRANSPOSE"}


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
    # Every operation has a descriptor of its own, which keeps the result of the preparation. Every product must then
    # come with the same buffer.
    description = a.describe()
    functions = handle.functions
    arguments = (
        handle.native, operation, numbers[0], description.handle, vector.handle, numbers[1], result.handle,
        a.kind.scalar_code, algorithm,
    )  # fmt: skip  # grouped by meaning
    size = functions.sp_mv_buffer_size(*arguments)
    buffer = empty(max(size, 1), np.uint8, stream=stream)
    if a.format == "csr":
        functions.sp_mv_preprocess(*arguments, buffer.pointer)
    a.prepared["mv", op] = prepared = _Prepared(description, buffer)
    return prepared


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
    """Queue out = alpha op(a) b + beta out for a dense matrix and return `out`, new unless given (cusparseSpMM).

    `b` and `out` have rows of adjacent elements; `a` has the format "csr" or "coo". Raises TypeError and
    ValueError naming the operand; nothing is queued then.
    """
    where, device = views.device_of(stream)
    _check_matrix("a", a, device, formats=("csr", "coo"))
    views.check_place(device, b=b)
    views.require_dtype("b", b, a.values.dtype, "a")
    right = views.matrix("b", b)
    rows, columns = _turned(a, op)
    if right.rows != columns:
        raise ValueError(f"b has {right.rows} rows; a of shape {a.shape} with op={op!r} makes it {columns}")
    if out is None:
        out = _new((rows, right.columns), a, beta, where, device)
    views.check_place(device, out=out)
    views.require_dtype("out", out, a.values.dtype, "a")
    views.require_shape("out", out, (rows, right.columns), "the product of a and b")
    left = views.matrix("out", out)
    views.check_apart("out", out.pointer, left.span, b=(b.pointer, right.span))
    factors = scalar("alpha", alpha, a.kind), scalar("beta", beta, a.kind)
    if not out.size:
        return out
    enums = library("cusparse")
    with activated(device):
        dense, result = DenseMatrix(b, right, a.kind), DenseMatrix(out, left, a.kind)
        handle = library_handle("cusparse", where, device)
        description = a.describe_once()
        arguments = (
            handle.native, int(enums.Operation[_LONG[op]]), int(enums.Operation.NON_TRANSPOSE),
            factors[0].address, description.handle, dense.handle, factors[1].address, result.handle,
            a.kind.scalar_code, int(enums.SpMMAlg.DEFAULT),
        )  # fmt: skip  # grouped by meaning
        try:
            memory = scratch(device).get(handle.functions.sp_mm_buffer_size(*arguments), where)
            handle.functions.sp_mm(*arguments, memory.pointer)
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

    `a` has rows of adjacent elements, `out` is a dense vector, new unless given, and `op` is "N" or "T". Raises
    TypeError and ValueError naming the operand; nothing is queued then.
    """
    where, device = views.device_of(stream)
    _check_vector("x", x)
    views.check_place(device, a=a, **{"x.indices": x.indices, "x.values": x.values})
    views.require_dtype("a", a, x.values.dtype, "x")
    matrix = views.matrix("a", a)
    if not isinstance(op, str) or op not in ("N", "T"):
        raise ValueError(f"op is one of 'N', 'T', not {describe(op)}")
    rows, columns = (matrix.rows, matrix.columns) if op == "N" else (matrix.columns, matrix.rows)
    if x.size != columns:
        raise ValueError(f"x has size {x.size}; a of shape {a.shape} with op={op!r} makes it {columns}")
    if out is None:
        check_unread(beta)
        with activated(device):
            out = empty(rows, a.dtype, stream=where)
    views.check_place(device, out=out)
    views.require_dtype("out", out, a.dtype, "a")
    views.require_shape("out", out, (rows,), f"a of shape {a.shape} with op={op!r}")
    views.require_contiguous("out", out)
    views.check_apart("out", out.pointer, out.nbytes, a=(a.pointer, matrix.span), x=(x.values.pointer, x.values.nbytes))
    factors = scalar("alpha", alpha, x.kind), scalar("beta", beta, x.kind)
    if not rows:
        return out
    enums, letter, count = library("cusparse"), x.kind.letter, x.values.size
    # cuSPARSE sees the transpose of the matrix: adjacent columns.
    turn = int(enums.Operation[_LONG["T" if op == "N" else "N"]])
    sizes = turn, matrix.columns, matrix.rows
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
    """Return the sum of x[i] y[i] of a sparse and a dense vector, and wait for it (cusparseSpVV).

    Raises TypeError and ValueError naming the operand; nothing is queued then.
    """
    where, device = views.device_of(stream)
    _check_vector("x", x)
    views.check_place(device, y=y, **{"x.indices": x.indices, "x.values": x.values})
    views.require_dtype("y", y, x.values.dtype, "x")
    views.require_shape("y", y, (x.size,), "x")
    views.require_contiguous("y", y)
    result = np.zeros(1, x.values.dtype)
    enums = library("cusparse")
    with activated(device):
        dense = DenseVector(y, x.kind)
        handle = library_handle("cusparse", where, device)
        arguments = (
            handle.native, int(enums.Operation.NON_TRANSPOSE), x.description.handle, dense.handle,
            result.ctypes.data, x.kind.scalar_code,
        )  # fmt: skip  # grouped by meaning
        try:
            memory = scratch(device).get(handle.functions.sp_vv_buffer_size(*arguments), where)
            handle.functions.sp_vv(*arguments, memory.pointer)
        except Exception as error:
            raise failure("cusparseSpVV", error) from error
        where.synchronize()
    value: Scalar = result[0].item()
    return value


def _check_matrix(name: str, a: Any, device: Device, formats: tuple[str, ...] = ("csr", "coo", "sell")) -> None:
    if not isinstance(a, SparseMatrix):
        raise TypeError(f"{name} must be a SparseMatrix, not {type(a).__name__}")
    if a.format not in formats:
        raise ValueError(f"{name} has the format {a.format!r}; this takes {', '.join(formats)}")
    a.check_open(name, device)


def _check_vector(name: str, x: Any) -> None:
    if not isinstance(x, SparseVector):
        raise TypeError(f"{name} must be a SparseVector, not {type(x).__name__}")


def _turned(a: SparseMatrix, op: str) -> tuple[int, int]:
    if not isinstance(op, str) or op not in _LONG:
        raise ValueError(f"op is one of 'N', 'T', 'C', not {describe(op)}")
    return a.shape if op == "N" else (a.shape[1], a.shape[0])


def _new(shape: tuple[int, ...], a: SparseMatrix, beta: Scalar, stream: Stream, device: Device) -> DeviceArray:
    check_unread(beta)
    with activated(device):
        return empty(shape, a.values.dtype, stream=stream)
