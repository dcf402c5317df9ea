"""Conversions between sparse formats and sorting, with the names and parameters of `nvmath.bindings.cusparse`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nvmath.bindings.cusparse import Action, IndexBase, Status

from ..common.calls import queue
from ..common.functions import LibraryError
from ..common.indices import compressed_rows, within
from ..common.numbers import DTYPES, Numbers
from ..common.operands import Operand, vector
from .descriptors import dense, legacy, matrices, sparse_vectors
from .handles import WORKSPACE, call, handles, workspace


def _indices(address: int, count: int) -> Operand:
    return vector(int(address), count, np.int32)


def _from_zero(base: int) -> None:
    if base != IndexBase.ZERO:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator supports only indices that count from 0")


@call
def xcsr2coo(handle: int, csr_sorted_row_ptr: int, nnz: int, m: int, coo_row_ind: int, idx_base: int) -> None:
    """Queue the conversion of row offsets to the row of each element (cusparseXcsr2coo)."""
    _from_zero(idx_base)
    offsets, rows = _indices(csr_sorted_row_ptr, m + 1), _indices(coo_row_ind, nnz)

    def expand() -> None:
        rows.elements[...] = np.repeat(np.arange(m), np.diff(offsets.elements))

    queue(handles.find(handle).stream, "cusparseXcsr2coo", expand, reads=[offsets], writes=[rows])


@call
def xcoo2csr(handle: int, coo_row_ind: int, nnz: int, m: int, csr_sorted_row_ptr: int, idx_base: int) -> None:
    """Queue the conversion of the sorted rows of elements to row offsets (cusparseXcoo2csr)."""
    _from_zero(idx_base)
    rows, offsets = _indices(coo_row_ind, nnz), _indices(csr_sorted_row_ptr, m + 1)

    def compress() -> None:
        offsets.elements[...] = np.searchsorted(rows.elements, np.arange(m + 1))

    queue(handles.find(handle).stream, "cusparseXcoo2csr", compress, reads=[rows], writes=[offsets])


def csr2csc_ex2_buffer_size(
    handle: int, m: int, n: int, nnz: int, csr_val: int, csr_row_ptr: int, csr_col_ind: int, csc_val: int,
    csc_col_ptr: int, csc_row_ind: int, val_type: int, copy_values: int, idx_base: int, alg: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the buffer in bytes (cusparseCsr2cscEx2_bufferSize)."""
    return WORKSPACE


@call
def csr2csc_ex2(
    handle: int, m: int, n: int, nnz: int, csr_val: int, csr_row_ptr: int, csr_col_ind: int, csc_val: int,
    csc_col_ptr: int, csc_row_ind: int, val_type: int, copy_values: int, idx_base: int, alg: int, buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the conversion from rows to columns (cusparseCsr2cscEx2)."""
    _from_zero(idx_base)
    if copy_values != Action.NUMERIC:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator also converts the values")
    dtype = DTYPES[int(val_type)]
    offsets, columns, values = _indices(csr_row_ptr, m + 1), _indices(csr_col_ind, nnz), vector(csr_val, nnz, dtype)
    targets = [_indices(csc_col_ptr, n + 1), _indices(csc_row_ind, nnz), vector(csc_val, nnz, dtype)]

    def turn() -> None:
        given = compressed_rows(values.elements, columns.elements, offsets.elements, (m, n)).tocsc()
        for target, part in zip(targets, (given.indptr, given.indices, given.data), strict=True):
            target.elements[...] = part

    stream = handles.find(handle).stream
    queue(stream, "cusparseCsr2cscEx2", turn, reads=[offsets, columns, values], writes=targets,
          workspaces=workspace(buffer))  # fmt: skip  # grouped by meaning


def sparse_to_dense_buffer_size(handle: int, mat_a: int, mat_b: int, alg: int) -> int:
    """Return the size of the buffer in bytes (cusparseSparseToDense_bufferSize)."""
    return WORKSPACE


@call
def sparse_to_dense(handle: int, mat_a: int, mat_b: int, alg: int, external_buffer: int) -> None:
    """Queue the conversion to a dense matrix (cusparseSparseToDense)."""
    matrix, out = matrices.find(mat_a), dense.find(mat_b)

    def fill() -> None:
        out.elements[...] = matrix.load().toarray()

    stream = handles.find(handle).stream
    queue(stream, "cusparseSparseToDense", fill, reads=list(matrix.arrays), writes=[out],
          workspaces=workspace(external_buffer))  # fmt: skip  # grouped by meaning


# -- sorting -------------------------------------------------------------------------------------


@call
def create_identity_permutation(handle: int, n: int, p: int) -> None:
    """Queue the numbers 0 to n - 1 (cusparseCreateIdentityPermutation)."""
    numbers = _indices(p, n)

    def count() -> None:
        numbers.elements[...] = np.arange(n)

    queue(handles.find(handle).stream, "cusparseCreateIdentityPermutation", count, writes=[numbers])


@call
def gather(handle: int, vec_y: int, vec_x: int) -> None:
    """Queue a copy of the elements of a dense vector at the indices of a sparse one (cusparseGather)."""
    source, target = dense.find(vec_y), sparse_vectors.find(vec_x)

    def copy() -> None:
        target.values.elements[...] = source.elements[within(target.indices.elements, source.shape[0])]

    stream = handles.find(handle).stream
    queue(stream, "cusparseGather", copy, reads=[source, target.indices], writes=[target.values])


def xcoosort_buffer_size_ext(handle: int, m: int, n: int, nnz: int, coo_rows_a: int, coo_cols_a: int) -> int:
    """Return the size of the buffer in bytes (cusparseXcoosort_bufferSizeExt)."""
    return WORKSPACE


@call
def xcoosort_by_row(
    handle: int, m: int, n: int, nnz: int, coo_rows_a: int, coo_cols_a: int, p: int, p_buffer: int
) -> None:
    """Queue the sorting of coordinates by row and column, and of a permutation with them (cusparseXcoosortByRow)."""
    rows, columns = _indices(coo_rows_a, nnz), _indices(coo_cols_a, nnz)
    _queue_sort("cusparseXcoosortByRow", handle, lambda: rows.elements, [rows, columns], _indices(p, nnz), p_buffer)


def xcsrsort_buffer_size_ext(handle: int, m: int, n: int, nnz: int, csr_row_ptr_a: int, csr_col_ind_a: int) -> int:
    """Return the size of the buffer in bytes (cusparseXcsrsort_bufferSizeExt)."""
    return WORKSPACE


@call
def xcsrsort(
    handle: int, m: int, n: int, nnz: int, descr_a: int, csr_row_ptr_a: int, csr_col_ind_a: int, p: int, p_buffer: int
) -> None:
    """Queue the sorting of the columns of each row, and of a permutation with them (cusparseXcsrsort)."""
    legacy.find(descr_a)
    _queue_sort_lines("cusparseXcsrsort", handle, m, nnz, (csr_row_ptr_a, csr_col_ind_a, p), p_buffer)


def xcscsort_buffer_size_ext(handle: int, m: int, n: int, nnz: int, csc_col_ptr_a: int, csc_row_ind_a: int) -> int:
    """Return the size of the buffer in bytes (cusparseXcscsort_bufferSizeExt)."""
    return WORKSPACE


@call
def xcscsort(
    handle: int, m: int, n: int, nnz: int, descr_a: int, csc_col_ptr_a: int, csc_row_ind_a: int, p: int, p_buffer: int
) -> None:
    """Queue the sorting of the rows of each column, and of a permutation with them (cusparseXcscsort)."""
    legacy.find(descr_a)
    _queue_sort_lines("cusparseXcscsort", handle, n, nnz, (csc_col_ptr_a, csc_row_ind_a, p), p_buffer)


def _queue_sort_lines(
    name: str, handle: int, count: int, nnz: int, addresses: tuple[int, int, int], buffer: int
) -> None:
    offsets, indices = _indices(addresses[0], count + 1), _indices(addresses[1], nnz)
    numbers = _indices(addresses[2], nnz)

    def lines() -> Numbers:
        return np.repeat(np.arange(count), np.diff(offsets.elements))

    _queue_sort(name, handle, lines, [indices], numbers, buffer, also_read=[offsets])


def _queue_sort(
    name: str,
    handle: int,
    lines: Callable[[], Numbers],
    sorted_arrays: list[Operand],
    numbers: Operand,
    buffer: int,
    also_read: list[Operand] | None = None,
) -> None:
    """Queue the sorting of arrays by the line of each element, then by the last array, and of `numbers` with them."""
    changed = [*sorted_arrays, numbers]

    def sort() -> None:
        order = np.lexsort((sorted_arrays[-1].elements, lines()))
        for operand in changed:
            operand.elements[...] = operand.elements[order]

    reads = [*changed, *(also_read or [])]
    queue(handles.find(handle).stream, name, sort, reads=reads, writes=changed, workspaces=workspace(buffer))
