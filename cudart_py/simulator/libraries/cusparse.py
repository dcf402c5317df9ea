"""cuSPARSE in software, with the names and parameters of `nvmath.bindings.cusparse`, using SciPy for products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nvmath.bindings import cusparse as bindings
from nvmath.bindings.cusparse import Operation, Status
from scipy import sparse

from ..checks.findings import mode, put_finding
from ..state.streams import complete_stream, find_stream
from .common.calls import queue
from .common.functions import LibraryError, Objects, entry, missing
from .common.numbers import DTYPES, LETTERS, Numbers, from_host, to_host
from .common.operands import Operand, array, columns, vector
from .sparse_descriptors import (
    SparseMatrix,
    create_coo,
    create_csr,
    create_dn_mat,
    create_dn_vec,
    create_sliced_ell,
    create_sp_vec,
    csr_set_pointers,
    dense,
    destroy_dn_mat,
    destroy_dn_vec,
    destroy_sp_mat,
    destroy_sp_vec,
    matrices,
    products,
    sp_gemm_create_descr,
    sp_gemm_destroy_descr,
    sp_mat_get_size,
    sparse_vectors,
)

__all__ = [
    "cgemvi",
    "cgemvi_buffer_size",
    "cgtsv2strided_batch",
    "cgtsv2strided_batch_buffer_size_ext",
    "create",
    "create_coo",
    "create_csr",
    "create_dn_mat",
    "create_dn_vec",
    "create_sliced_ell",
    "create_sp_vec",
    "csr_set_pointers",
    "dense_to_sparse_analysis",
    "dense_to_sparse_buffer_size",
    "dense_to_sparse_convert",
    "destroy",
    "destroy_dn_mat",
    "destroy_dn_vec",
    "destroy_sp_mat",
    "destroy_sp_vec",
    "dgemvi",
    "dgemvi_buffer_size",
    "dgtsv2strided_batch",
    "dgtsv2strided_batch_buffer_size_ext",
    "sddmm",
    "sddmm_buffer_size",
    "sddmm_preprocess",
    "set_stream",
    "sgemvi",
    "sgemvi_buffer_size",
    "sgtsv2strided_batch",
    "sgtsv2strided_batch_buffer_size_ext",
    "sp_gemm_compute",
    "sp_gemm_copy",
    "sp_gemm_create_descr",
    "sp_gemm_destroy_descr",
    "sp_gemm_work_estimation",
    "sp_mat_get_size",
    "sp_mm",
    "sp_mm_buffer_size",
    "sp_mv",
    "sp_mv_buffer_size",
    "sp_mv_preprocess",
    "sp_vv",
    "sp_vv_buffer_size",
    "zgemvi",
    "zgemvi_buffer_size",
    "zgtsv2strided_batch",
    "zgtsv2strided_batch_buffer_size_ext",
]

_call = entry(Status.EXECUTION_FAILED)
# The size of the workspace that the functions request, in bytes.
_WORKSPACE = 64


@dataclass
class _Handle:
    """The state of a handle."""

    stream: int = 0


_handles: Objects[_Handle] = Objects(Status.NOT_INITIALIZED)


def __getattr__(name: str) -> Any:
    return missing(bindings, Status.NOT_SUPPORTED, name)


def create() -> int:
    """Return a new handle (cusparseCreate)."""
    return _handles.add(_Handle())


def destroy(handle: int) -> None:
    """Destroy a handle (cusparseDestroy)."""
    _handles.remove(handle)


def set_stream(handle: int, stream_id: int) -> None:
    """Set the stream of later calls (cusparseSetStream)."""
    _handles.find(handle).stream = int(stream_id)


def _turned(matrix: Any, operation: int) -> Any:
    if operation == Operation.NON_TRANSPOSE:
        return matrix
    return matrix.T if operation == Operation.TRANSPOSE else matrix.conj().T


def _plain(*operations: int) -> None:
    if any(operation != Operation.NON_TRANSPOSE for operation in operations):
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator does not transpose these operands")


def _workspace(address: int) -> list[Operand]:
    return [vector(int(address), _WORKSPACE, np.uint8)]


def _queue_and_wait(handle: int, name: str, compute: Callable[[], None], reads: list[Operand], buffer: int) -> None:
    """Queue a computation whose result the host needs, and wait for it like the library."""
    stream = _handles.find(handle).stream
    queue(stream, name, compute, reads=reads, workspaces=_workspace(buffer) if buffer else [])
    complete_stream(find_stream(stream))


# -- products with dense operands ----------------------------------------------------------------


def sp_mv_buffer_size(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, beta: int, vec_y: int, compute_type: int, alg: int
) -> int:
    """Return the size of the buffer in bytes (cusparseSpMV_bufferSize)."""
    return _WORKSPACE


def sp_mv_preprocess(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, beta: int, vec_y: int, compute_type: int, alg: int,
    external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Do nothing, because preprocessing would not make products faster here (cusparseSpMV_preprocess)."""
    matrices.find(mat_a)


@_call
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
    return _WORKSPACE


@_call
def sp_mm(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha op(a) b + beta c (cusparseSpMM)."""
    _plain(op_b)
    _queue_product("cusparseSpMM", handle, op_a, (alpha, beta), (mat_a, mat_b, mat_c), compute_type, external_buffer)


def _queue_product(
    name: str, handle: int, operation: int, factors: tuple[int, int], operands: tuple[int, int, int],
    compute_type: int, buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    found, dtype = _handles.find(handle), DTYPES[int(compute_type)]
    factor, rest = (from_host(address, dtype) for address in factors)
    matrix = matrices.find(operands[0])
    right, out = dense.find(operands[1]), dense.find(operands[2])

    def multiply() -> None:
        result = out.elements
        with np.errstate(all="ignore"):  # infinities and NaNs propagate, as on the device
            product = factor * (_turned(matrix.load(), operation) @ right.elements)
            result[...] = product + rest * result if rest else product

    reads = [*matrix.arrays, right, *((out,) if rest else ())]
    queue(found.stream, name, multiply, reads=reads, writes=[out], workspaces=_workspace(buffer))


def _gemvi_buffer_size(handle: int, trans_a: int, m: int, n: int, nnz: int) -> int:
    """Return the size of the buffer in bytes (cusparseSgemvi_bufferSize and related functions)."""
    return _WORKSPACE


@_call
def _gemvi(
    dtype: np.dtype[Any], handle: int, trans_a: int, m: int, n: int, alpha: int, a: int, lda: int, nnz: int,
    x_val: int, x_ind: int, beta: int, y: int, idx_base: int, p_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue y = alpha op(a) x + beta y of a dense matrix and a sparse vector (cusparseSgemvi and related functions)."""
    found, factor, rest = _handles.find(handle), from_host(alpha, dtype), from_host(beta, dtype)
    if trans_a == Operation.CONJUGATE_TRANSPOSE:
        raise LibraryError(Status.NOT_SUPPORTED, "this function does not conjugate the matrix")
    matrix = columns(int(a), m, n, lda, dtype)
    values, indices = vector(int(x_val), nnz, dtype), vector(int(x_ind), nnz, np.int32)
    out = vector(int(y), m if trans_a == Operation.NON_TRANSPOSE else n, dtype)

    def multiply() -> None:
        result = out.elements
        with np.errstate(all="ignore"):  # infinities and NaNs propagate, as on the device
            used = _turned(matrix.elements, trans_a)[:, indices.elements - idx_base]
            product = factor * (used @ values.elements)
            result[...] = product + rest * result if rest else product

    reads = [matrix, values, indices, *((out,) if rest else ())]
    queue(found.stream, "cusparse<t>gemvi", multiply, reads=reads, writes=[out], workspaces=_workspace(p_buffer))


sgemvi, dgemvi, cgemvi, zgemvi = (functools.partial(_gemvi, dtype) for dtype in LETTERS.values())
sgemvi_buffer_size = dgemvi_buffer_size = cgemvi_buffer_size = zgemvi_buffer_size = _gemvi_buffer_size


def sp_vv_buffer_size(handle: int, op_x: int, vec_x: int, vec_y: int, result: int, compute_type: int) -> int:
    """Return the size of the buffer in bytes (cusparseSpVV_bufferSize)."""
    return _WORKSPACE


@_call
def sp_vv(handle: int, op_x: int, vec_x: int, vec_y: int, result: int, compute_type: int, external_buffer: int) -> None:
    """Write the dot product of x and y to host memory (cusparseSpVV)."""
    _plain(op_x)
    source, other = sparse_vectors.find(vec_x), dense.find(vec_y)

    def multiply() -> None:
        with np.errstate(all="ignore"):  # infinities and NaNs propagate, as on the device
            total = source.values.elements @ other.elements[source.indices.elements]
        to_host(result, DTYPES[int(compute_type)], total)

    _queue_and_wait(handle, "cusparseSpVV", multiply, [source.indices, source.values, other], external_buffer)


# -- products and conversions with sparse results ------------------------------------------------


def sp_gemm_work_estimation(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int, external_buffer1: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the first buffer in bytes (cusparseSpGEMM_workEstimation)."""
    return _WORKSPACE


@_call
def sp_gemm_compute(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int, buffer_size2: int, external_buffer2: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Multiply two sparse matrices or, if there is no buffer, report its required size (cusparseSpGEMM_compute)."""
    _plain(op_a, op_b)
    if not external_buffer2:
        to_host(buffer_size2, np.uint64, _WORKSPACE)
        return
    kept, dtype = products.find(spgemm_descr), DTYPES[int(compute_type)]
    if from_host(beta, dtype):
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator adds nothing to the product: beta must be 0")
    factor = from_host(alpha, dtype)
    left, right, out = (matrices.find(matrix) for matrix in (mat_a, mat_b, mat_c))

    def multiply() -> None:
        kept.product = _in_order(factor * (left.load() @ right.load()))

    _queue_and_wait(handle, "cusparseSpGEMM_compute", multiply, [*left.arrays, *right.arrays], external_buffer2)
    out.count = kept.product.nnz


@_call
def sp_gemm_copy(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, spgemm_descr: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the copy of the product to the arrays of the result (cusparseSpGEMM_copy)."""
    _queue_store(handle, "cusparseSpGEMM_copy", matrices.find(mat_c), products.find(spgemm_descr).product)


def dense_to_sparse_buffer_size(handle: int, mat_a: int, mat_b: int, alg: int) -> int:
    """Return the size of the buffer in bytes (cusparseDenseToSparse_bufferSize)."""
    return _WORKSPACE


@_call
def dense_to_sparse_analysis(handle: int, mat_a: int, mat_b: int, alg: int, external_buffer: int) -> None:
    """Find and count the nonzero elements (cusparseDenseToSparse_analysis)."""
    source, out = dense.find(mat_a), matrices.find(mat_b)

    def find() -> None:
        out.filled = _in_order(sparse.csr_array(source.elements))

    _queue_and_wait(handle, "cusparseDenseToSparse_analysis", find, [source], external_buffer)
    out.count = out.filled.nnz


@_call
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

    queue(_handles.find(handle).stream, name, store, writes=out.arrays)


def sddmm_buffer_size(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, buffer_size: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Write the size of the buffer in bytes to host memory (cusparseSDDMM_bufferSize)."""
    to_host(buffer_size, np.uint64, _WORKSPACE)


def sddmm_preprocess(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Do nothing, because preprocessing would not make products faster here (cusparseSDDMM_preprocess)."""
    matrices.find(mat_c)


@_call
def sddmm(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, beta: int, mat_c: int, compute_type: int,
    alg: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue c = alpha (a b) + beta c, computed only at the positions that c stores (cusparseSDDMM)."""
    _plain(op_a, op_b)
    found, dtype = _handles.find(handle), DTYPES[int(compute_type)]
    factor, rest = from_host(alpha, dtype), from_host(beta, dtype)
    left, right, out = dense.find(mat_a), dense.find(mat_b), matrices.find(mat_c)
    if out.format != "csr":
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator stores the result only as CSR")

    def multiply() -> None:
        offsets, columns, values = (operand.elements for operand in out.arrays)
        rows = np.repeat(np.arange(out.shape[0]), np.diff(offsets))
        with np.errstate(all="ignore"):  # infinities and NaNs propagate, as on the device
            product = factor * np.einsum("ik,ki->i", left.elements[rows], right.elements[:, columns])
            values[...] = product + rest * values if rest else product

    reads = [left, right, out.offsets, out.indices, *((out.values,) if rest else ())]
    queue(found.stream, "cusparseSDDMM", multiply, reads=reads, writes=[out.values],
          workspaces=_workspace(external_buffer))  # fmt: skip  # grouped by meaning


# -- tridiagonal systems ---------------------------------------------------------------------------


def _gtsv2strided_batch_buffer_size_ext(
    dtype: np.dtype[Any], handle: int, m: int, dl: int, d: int, du: int, x: int, batch_count: int, batch_stride: int
) -> int:
    """Return the size of the buffer in bytes (cusparseXgtsv2StridedBatch_bufferSizeExt)."""
    _check_systems(m, batch_count, batch_stride)
    return _WORKSPACE


@_call
def _gtsv2strided_batch(
    dtype: np.dtype[Any], handle: int, m: int, dl: int, d: int, du: int, x: int, batch_count: int, batch_stride: int,
    p_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of tridiagonal systems; it overwrites the right-hand sides (cusparseXgtsv2StridedBatch)."""
    found = _handles.find(handle)
    _check_systems(m, batch_count, batch_stride)
    *diagonals, right = (
        array(int(address), (batch_count, m), dtype, (batch_stride, 1)) for address in (dl, d, du, x)
    )  # each system is a row

    def solve() -> None:
        if mode() != "off":
            _check_corners(*(operand.elements for operand in diagonals))
        with np.errstate(all="ignore"):  # infinities and NaNs propagate, as on the device
            right.elements[...] = _solved(*(operand.elements for operand in (*diagonals, right)))

    name = "cusparseXgtsv2StridedBatch"
    reads = [*diagonals, right]
    queue(found.stream, name, solve, reads=reads, writes=[right], workspaces=_workspace(p_buffer))


def _check_systems(m: int, batch_count: int, batch_stride: int) -> None:
    if m < 3 or batch_count < 1 or batch_stride < m:
        raise LibraryError(
            Status.INVALID_VALUE, f"{batch_count} systems of {m} unknowns, {batch_stride} apart; at least 3 are needed"
        )


def _check_corners(lower: Numbers, _: Numbers, upper: Numbers) -> None:
    """Report elements outside the matrices that are not zero, as the library requires; `_solved` ignores them."""
    for name, place, corners in (("dl", "first", lower[:, 0]), ("du", "last", upper[:, -1])):
        systems = np.flatnonzero(corners)
        if systems.size:
            put_finding(
                "argument",
                f"cusparseXgtsv2StridedBatch: the {place} element of each system in {name} must be zero, but that of "
                f"system {systems[0]} is {corners[systems[0]]}",
            )


def _solved(lower: Numbers, middle: Numbers, upper: Numbers, right: Numbers) -> Numbers:
    """Return the solutions of systems, one per row, by elimination without pivoting."""
    upper, solution = upper.copy(), right.copy()
    upper[:, 0] /= middle[:, 0]
    solution[:, 0] /= middle[:, 0]
    for i in range(1, middle.shape[1]):
        pivot = middle[:, i] - lower[:, i] * upper[:, i - 1]
        upper[:, i] /= pivot
        solution[:, i] = (solution[:, i] - lower[:, i] * solution[:, i - 1]) / pivot
    for i in range(middle.shape[1] - 2, -1, -1):
        solution[:, i] -= upper[:, i] * solution[:, i + 1]
    return solution


_SINGLE, _DOUBLE, _COMPLEX, _DOUBLE_COMPLEX = LETTERS.values()
sgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _SINGLE)
dgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _DOUBLE)
cgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _COMPLEX)
zgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _DOUBLE_COMPLEX)
sgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _SINGLE)
dgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _DOUBLE)
cgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _COMPLEX)
zgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _DOUBLE_COMPLEX)
