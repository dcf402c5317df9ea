"""Products and conversions with sparse results, with the names and parameters of `nvmath.bindings.cusparse`."""

from __future__ import annotations

from typing import Any

import numpy as np
from nvmath.bindings.cusparse import Status
from scipy import sparse

from ..common.calls import queue
from ..common.functions import LibraryError
from ..common.indices import compressed_rows, within
from ..common.numbers import DTYPES, from_host, to_host
from .descriptors import SparseMatrix, dense, matrices, products
from .handles import WORKSPACE, call, handles, plain, queue_and_wait, workspace


def sp_gemm_work_estimation(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int, external_buffer1: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the first buffer in bytes (cusparseSpGEMM_workEstimation)."""
    return WORKSPACE


@call
def sp_gemm_compute(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int, buffer_size2: int, external_buffer2: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Multiply two sparse matrices or, if there is no buffer, report its required size (cusparseSpGEMM_compute)."""
    plain(op_a, op_b)
    if not external_buffer2:
        to_host(buffer_size2, np.uint64, WORKSPACE)
        return
    kept, dtype = products.find(spgemm_descr), DTYPES[int(compute_type)]
    if from_host(beta, dtype):
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator adds nothing to the product: beta must be 0")
    factor = from_host(alpha, dtype)
    left, right, out = (matrices.find(matrix) for matrix in (mat_a, mat_b, mat_c))

    def multiply() -> None:
        kept.product = _in_order(factor * (left.load() @ right.load()))

    queue_and_wait(handle, "cusparseSpGEMM_compute", multiply, [*left.arrays, *right.arrays], external_buffer2)
    out.count = kept.product.nnz


@call
def sp_gemm_copy(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the copy of the product to the arrays of the result (cusparseSpGEMM_copy)."""
    _queue_store(handle, "cusparseSpGEMM_copy", matrices.find(mat_c), products.find(spgemm_descr).product)


def sp_gemm_reuse_work_estimation(
    handle: int, op_a: int, op_b: int, mat_a: int, mat_b: int, mat_c: int, alg: int, spgemm_descr: int,
    external_buffer1: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the first buffer in bytes (cusparseSpGEMMreuse_workEstimation)."""
    return WORKSPACE


@call
def sp_gemm_reuse_nnz(
    handle: int, op_a: int, op_b: int, mat_a: int, mat_b: int, mat_c: int, alg: int, spgemm_descr: int,
    external_buffer2: int, external_buffer3: int, external_buffer4: int,
) -> tuple[int, int, int]:  # fmt: skip  # grouped by meaning
    """Find the positions of the product or, if there are no buffers, only return their sizes (cusparseSpGEMMreuse_nnz).

    Positions at which the elements cancel out are stored too.
    """
    plain(op_a, op_b)
    if external_buffer2:
        kept = products.find(spgemm_descr)
        left, right, out = (matrices.find(matrix) for matrix in (mat_a, mat_b, mat_c))

        def find() -> None:
            kept.product = _in_order(_pattern(left) @ _pattern(right))

        reads = [left.offsets, left.indices, right.offsets, right.indices]
        queue_and_wait(handle, "cusparseSpGEMMreuse_nnz", find, reads, external_buffer2)
        out.count = kept.product.nnz
    return WORKSPACE, WORKSPACE, WORKSPACE


def _pattern(matrix: SparseMatrix) -> Any:
    """Return a matrix with ones where the given one, in the format CSR, stores an element."""
    indices = matrix.indices.elements
    return compressed_rows(np.ones(len(indices)), indices, matrix.offsets.elements, matrix.shape)


@call
def sp_gemm_reuse_copy(
    handle: int, op_a: int, op_b: int, mat_a: int, mat_b: int, mat_c: int, alg: int, spgemm_descr: int,
    external_buffer5: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Queue the copy of the positions to the arrays of the result, if there is a buffer (cusparseSpGEMMreuse_copy)."""
    out, found = matrices.find(mat_c), products.find(spgemm_descr).product
    if external_buffer5:

        def store() -> None:
            out.offsets.elements[...], out.indices.elements[...] = found.indptr, found.indices

        writes = [out.offsets, out.indices]
        queue(handles.find(handle).stream, "cusparseSpGEMMreuse_copy", store, writes=writes)
    return WORKSPACE


@call
def sp_gemm_reuse_compute(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the values of alpha a b + beta c at the positions that were found (cusparseSpGEMMreuse_compute)."""
    plain(op_a, op_b)
    dtype = DTYPES[int(compute_type)]
    factor, rest = from_host(alpha, dtype), from_host(beta, dtype)
    left, right, out = (matrices.find(matrix) for matrix in (mat_a, mat_b, mat_c))
    found = products.find(spgemm_descr).product

    def multiply() -> None:
        rows = np.repeat(np.arange(out.shape[0]), np.diff(found.indptr))
        product = factor * np.asarray((left.load() @ right.load())[rows, found.indices]).ravel()
        out.values.elements[...] = product + rest * out.values.elements if rest else product

    reads = [*left.arrays, *right.arrays, *((out.values,) if rest else ())]
    queue(handles.find(handle).stream, "cusparseSpGEMMreuse_compute", multiply, reads=reads, writes=[out.values])


def dense_to_sparse_buffer_size(handle: int, mat_a: int, mat_b: int, alg: int) -> int:
    """Return the size of the buffer in bytes (cusparseDenseToSparse_bufferSize)."""
    return WORKSPACE


@call
def dense_to_sparse_analysis(handle: int, mat_a: int, mat_b: int, alg: int, external_buffer: int) -> None:
    """Find and count the nonzero elements (cusparseDenseToSparse_analysis)."""
    source, out = dense.find(mat_a), matrices.find(mat_b)

    def find() -> None:
        out.filled = _in_order(sparse.csr_array(source.elements))

    queue_and_wait(handle, "cusparseDenseToSparse_analysis", find, [source], external_buffer)
    out.count = out.filled.nnz


@call
def dense_to_sparse_convert(handle: int, mat_a: int, mat_b: int, alg: int, external_buffer: int) -> None:
    """Queue the copy of the nonzero elements to the arrays of the result (cusparseDenseToSparse_convert)."""
    out = matrices.find(mat_b)
    _queue_store(handle, "cusparseDenseToSparse_convert", out, out.filled)


def _in_order(matrix: Any) -> Any:
    matrix.sort_indices()
    return matrix


def _queue_store(handle: int, name: str, out: SparseMatrix, result: Any) -> None:
    """Queue the copy of a result to its arrays, which the program must already have set."""
    if result is None or out.format != "csr":
        raise LibraryError(Status.NOT_SUPPORTED, f"{name} must follow the phase that computes the elements, as CSR")
    offsets, indices, values = out.arrays

    def store() -> None:
        offsets.elements[...] = result.indptr
        indices.elements[...] = result.indices
        values.elements[...] = result.data

    queue(handles.find(handle).stream, name, store, writes=out.arrays)


def sddmm_buffer_size(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, buffer_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Write the size of the buffer in bytes to host memory (cusparseSDDMM_bufferSize)."""
    to_host(buffer_size, np.uint64, WORKSPACE)


def sddmm_preprocess(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Do nothing, because preprocessing would not make products faster here (cusparseSDDMM_preprocess)."""
    matrices.find(mat_c)


@call
def sddmm(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha (a b) + beta c, computed only at the positions that c stores (cusparseSDDMM)."""
    plain(op_a, op_b)
    found, dtype = handles.find(handle), DTYPES[int(compute_type)]
    factor, rest = from_host(alpha, dtype), from_host(beta, dtype)
    left, right, out = dense.find(mat_a), dense.find(mat_b), matrices.find(mat_c)
    if out.format != "csr":
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator stores the result only as CSR")

    def multiply() -> None:
        offsets, columns, values = (operand.elements for operand in out.arrays)
        rows, used = np.repeat(np.arange(out.shape[0]), np.diff(offsets)), within(columns, out.shape[1])
        product = factor * np.einsum("ik,ki->i", left.elements[rows], right.elements[:, used])
        values[...] = product + rest * values if rest else product

    reads = [left, right, out.offsets, out.indices, *((out.values,) if rest else ())]
    queue(found.stream, "cusparseSDDMM", multiply, reads=reads, writes=[out.values],
          workspaces=workspace(external_buffer))  # fmt: skip  # grouped by meaning
