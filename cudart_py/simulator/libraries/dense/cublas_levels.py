"""Norms, rank-1 updates and products with symmetric matrices of cuBLAS, in software."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings.cublas import FillMode, Operation, SideMode, Status

from ..common.calls import queue
from ..common.functions import entry
from ..common.numbers import DTYPES, LETTERS, Numbers, routine, widened
from ..common.operands import Operand, columns, vector
from .cublas_handles import handles

_call = entry(Status.EXECUTION_FAILED)


@_call
def nrm2_ex(
    handle: int, n: int, x: int, x_type: int, incx: int, result: int, result_type: int, execution_type: int
) -> None:
    """Queue the Euclidean norm of a vector, which is written to device memory (cublasNrm2Ex)."""
    _queue_reduction(handle, "cublasNrm2Ex", (n, x, x_type, incx), (result, DTYPES[int(result_type)]), _norm)


@_call
def asum_ex(
    handle: int, n: int, x: int, x_type: int, incx: int, result: int, result_type: int, executiontype: int
) -> None:
    """Queue the sum of absolute values of a vector, which is written to device memory (cublasAsumEx)."""
    _queue_reduction(
        handle, "cublasAsumEx", (n, x, x_type, incx), (result, DTYPES[int(result_type)]), lambda v: _sizes(v).sum()
    )


@_call
def iamax_ex(handle: int, n: int, x: int, x_type: int, incx: int, result: int) -> None:
    """Queue the search for the element with the largest absolute value; its index counts from 1 (cublasIamaxEx)."""
    _queue_reduction(
        handle, "cublasIamaxEx", (n, x, x_type, incx), (result, np.dtype(np.int32)), lambda v: _sizes(v).argmax() + 1
    )


def _norm(numbers: Numbers) -> Any:
    """Return the Euclidean norm, scaled so that no square overflows."""
    most = np.abs(numbers).max(initial=0)
    return most * np.linalg.norm(numbers / most) if most and np.isfinite(most) else most


def _sizes(numbers: Numbers) -> Numbers:
    return np.abs(numbers.real) + np.abs(numbers.imag) if numbers.dtype.kind == "c" else np.abs(numbers)


def _queue_reduction(
    handle: int, name: str, source: tuple[int, int, int, int], result: tuple[int, np.dtype[Any]], reduce: Any
) -> None:
    found = handles.find(handle)
    found.require_results_on_device()
    size, address, code, step = source
    numbers, out = vector(int(address), size, DTYPES[int(code)], step), vector(int(result[0]), 1, result[1])

    def measure() -> None:
        out.elements[0] = reduce(widened(numbers.elements))

    queue(found.stream, name, measure, reads=[numbers], writes=[out])


@_call
def _ger(
    dtype: np.dtype[Any], handle: int, m: int, n: int, alpha: int, x: int, incx: int, y: int, incy: int, a: int,
    lda: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue a = alpha x y^T + a (cublasSger, cublasCgeru and others)."""
    found = handles.find(handle)
    (factor,) = found.factors(dtype, alpha)
    first, second = vector(int(x), m, dtype, incx), vector(int(y), n, dtype, incy)
    matrix = columns(int(a), m, n, lda, dtype)

    def update() -> None:
        matrix.elements[...] += factor * np.multiply.outer(first.elements, second.elements)

    queue(
        found.stream,
        routine("cublas<t>geru" if dtype.kind == "c" else "cublas<t>ger", dtype),
        update,
        reads=[first, second, matrix],
        writes=[matrix],
    )


def _whole(triangle: Numbers, uplo: int) -> Numbers:
    """Return a symmetric matrix from one of its triangles."""
    half = np.tril(triangle) if uplo == FillMode.LOWER else np.triu(triangle)
    return np.asarray(half + half.T - np.diag(np.diag(triangle)))


def _half(matrix: Operand, uplo: int) -> list[Operand]:
    """Return the columns of one triangle, including the diagonal."""
    order, size = matrix.shape[0], matrix.dtype.itemsize
    lower = uplo == FillMode.LOWER
    return [
        vector(
            matrix.address + column * (matrix.strides[1] + size * lower),
            order - column if lower else column + 1,
            matrix.dtype,
        )
        for column in range(order)
    ]


@_call
def _symv(
    dtype: np.dtype[Any], handle: int, uplo: int, n: int, alpha: int, a: int, lda: int, x: int, incx: int, beta: int,
    y: int, incy: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue y = alpha a x + beta y for a symmetric a (cublasSsymv and others)."""
    found = handles.find(handle)
    factor, rest = found.factors(dtype, alpha, beta)
    matrix = columns(int(a), n, n, lda, dtype)
    source, out = vector(int(x), n, dtype, incx), vector(int(y), n, dtype, incy)

    def multiply() -> None:
        result = factor * (_whole(matrix.elements, uplo) @ source.elements)
        out.elements[...] = result + rest * out.elements if rest else result

    reads = [*_half(matrix, uplo), source, *((out,) if rest else ())]
    queue(found.stream, routine("cublas<t>symv", dtype), multiply, reads=reads, writes=[out])


@_call
def _symm(
    dtype: np.dtype[Any], handle: int, side: int, uplo: int, m: int, n: int, alpha: int, a: int, lda: int, b: int,
    ldb: int, beta: int, c: int, ldc: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha a b + beta c, or alpha b a + beta c, for a symmetric a (cublasSsymm and others)."""
    found = handles.find(handle)
    factor, rest = found.factors(dtype, alpha, beta)
    order = m if side == SideMode.LEFT else n
    matrix, other = columns(int(a), order, order, lda, dtype), columns(int(b), m, n, ldb, dtype)
    out = columns(int(c), m, n, ldc, dtype)

    def multiply() -> None:
        whole = _whole(matrix.elements, uplo)
        result = factor * (whole @ other.elements if side == SideMode.LEFT else other.elements @ whole)
        out.elements[...] = result + rest * out.elements if rest else result

    reads = [*_half(matrix, uplo), other, *((out,) if rest else ())]
    queue(found.stream, routine("cublas<t>symm", dtype), multiply, reads=reads, writes=[out])


@_call
def _syrk(
    dtype: np.dtype[Any], handle: int, uplo: int, trans: int, n: int, k: int, alpha: int, a: int, lda: int, beta: int,
    c: int, ldc: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue one triangle of c = alpha op(a) op(a)^T + beta c (cublasSsyrk and others)."""
    found = handles.find(handle)
    factor, rest = found.factors(dtype, alpha, beta)
    matrix = columns(int(a), *((n, k) if trans == Operation.N else (k, n)), lda, dtype)
    out = columns(int(c), n, n, ldc, dtype)

    def multiply() -> None:
        turned = matrix.elements if trans == Operation.N else matrix.elements.T
        kept = np.tril(np.ones((n, n), bool)) if uplo == FillMode.LOWER else np.triu(np.ones((n, n), bool))
        result = factor * (turned @ turned.T)
        target = out.elements
        target[kept] = (result + rest * target if rest else result)[kept]

    half = _half(out, uplo)
    queue(found.stream, routine("cublas<t>syrk", dtype), multiply, reads=[matrix, *(half if rest else ())], writes=half)


# The functions for each dtype, whose letter begins the name.
_SINGLE, _DOUBLE, _COMPLEX, _DOUBLE_COMPLEX = LETTERS.values()
sger, dger = functools.partial(_ger, _SINGLE), functools.partial(_ger, _DOUBLE)
cgeru, zgeru = functools.partial(_ger, _COMPLEX), functools.partial(_ger, _DOUBLE_COMPLEX)
ssymv, dsymv, csymv, zsymv = (functools.partial(_symv, dtype) for dtype in LETTERS.values())
ssymm, dsymm, csymm, zsymm = (functools.partial(_symm, dtype) for dtype in LETTERS.values())
ssyrk, dsyrk, csyrk, zsyrk = (functools.partial(_syrk, dtype) for dtype in LETTERS.values())
