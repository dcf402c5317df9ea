"""Products of sparse and dense operands, with the names and parameters of `nvmath.bindings.cusparse`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings.cusparse import Operation, Status

from ..common.calls import queue
from ..common.functions import LibraryError
from ..common.indices import within
from ..common.numbers import DTYPES, LETTERS, from_host, routine, to_host
from ..common.operands import columns, vector
from .descriptors import dense, matrices, sparse_vectors
from .handles import WORKSPACE, call, handles, plain, queue_and_wait, turned, workspace


def sp_mv_buffer_size(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, beta: int, vec_y: int, compute_type: int, alg: int
) -> int:
    """Return the size of the buffer in bytes (cusparseSpMV_bufferSize)."""
    return WORKSPACE


def sp_mv_preprocess(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, beta: int, vec_y: int, compute_type: int, alg: int,
    external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Do nothing, because preprocessing would not make products faster here (cusparseSpMV_preprocess)."""
    matrices.find(mat_a)


@call
def sp_mv(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, beta: int, vec_y: int, compute_type: int, alg: int,
    external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue y = alpha op(a) x + beta y (cusparseSpMV)."""
    _queue_product("cusparseSpMV", handle, op_a, (alpha, beta), (mat_a, vec_x, vec_y), compute_type, external_buffer)


def sp_mm_buffer_size(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the buffer in bytes (cusparseSpMM_bufferSize)."""
    return WORKSPACE


@call
def sp_mm(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha op(a) b + beta c (cusparseSpMM)."""
    plain(op_b)
    _queue_product("cusparseSpMM", handle, op_a, (alpha, beta), (mat_a, mat_b, mat_c), compute_type, external_buffer)


def _queue_product(
    name: str, handle: int, operation: int, factors: tuple[int, int], operands: tuple[int, int, int],
    compute_type: int, buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    found, dtype = handles.find(handle), DTYPES[int(compute_type)]
    factor, rest = (from_host(address, dtype) for address in factors)
    matrix = matrices.find(operands[0])
    right, out = dense.find(operands[1]), dense.find(operands[2])

    def multiply() -> None:
        result = out.elements
        product = factor * (turned(matrix.load(), operation) @ right.elements)
        result[...] = product + rest * result if rest else product

    reads = [*matrix.arrays, right, *((out,) if rest else ())]
    queue(found.stream, name, multiply, reads=reads, writes=[out], workspaces=workspace(buffer))


def _gemvi_buffer_size(handle: int, trans_a: int, m: int, n: int, nnz: int) -> int:
    """Return the size of the buffer in bytes (cusparseSgemvi_bufferSize and related functions)."""
    return WORKSPACE


@call
def _gemvi(
    dtype: np.dtype[Any], handle: int, trans_a: int, m: int, n: int, alpha: int, a: int, lda: int, nnz: int,
    x_val: int, x_ind: int, beta: int, y: int, idx_base: int, p_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue y = alpha op(a) x + beta y of a dense matrix and a sparse vector (cusparseSgemvi and related functions)."""
    found, factor, rest = handles.find(handle), from_host(alpha, dtype), from_host(beta, dtype)
    if trans_a == Operation.CONJUGATE_TRANSPOSE:
        raise LibraryError(Status.NOT_SUPPORTED, "this function does not conjugate the matrix")
    matrix = columns(int(a), m, n, lda, dtype)
    values, indices = vector(int(x_val), nnz, dtype), vector(int(x_ind), nnz, np.int32)
    out = vector(int(y), m if trans_a == Operation.NON_TRANSPOSE else n, dtype)

    def multiply() -> None:
        result = out.elements
        operand = turned(matrix.elements, trans_a)
        used = operand[:, within(indices.elements - idx_base, operand.shape[1])]
        product = factor * (used @ values.elements)
        result[...] = product + rest * result if rest else product

    reads = [matrix, values, indices, *((out,) if rest else ())]
    queue(
        found.stream,
        routine("cusparse<t>gemvi", dtype),
        multiply,
        reads=reads,
        writes=[out],
        workspaces=workspace(p_buffer),
    )


sgemvi, dgemvi, cgemvi, zgemvi = (functools.partial(_gemvi, dtype) for dtype in LETTERS.values())
sgemvi_buffer_size = dgemvi_buffer_size = cgemvi_buffer_size = zgemvi_buffer_size = _gemvi_buffer_size


def sp_vv_buffer_size(handle: int, op_x: int, vec_x: int, vec_y: int, result: int, compute_type: int) -> int:
    """Return the size of the buffer in bytes (cusparseSpVV_bufferSize)."""
    return WORKSPACE


@call
def sp_vv(handle: int, op_x: int, vec_x: int, vec_y: int, result: int, compute_type: int, external_buffer: int) -> None:
    """Write the dot product of x and y to host memory (cusparseSpVV)."""
    plain(op_x)
    source, other = sparse_vectors.find(vec_x), dense.find(vec_y)

    def multiply() -> None:
        total = source.values.elements @ other.elements[within(source.indices.elements, other.shape[0])]
        to_host(result, DTYPES[int(compute_type)], total)

    queue_and_wait(handle, "cusparseSpVV", multiply, [source.indices, source.values, other], external_buffer)
