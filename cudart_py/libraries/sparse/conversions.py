"""Conversions between formats of sparse matrices, transposes and sorting, with cuSPARSE."""

from __future__ import annotations

from typing import Any

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...copies import memcpy, memset
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import keep, library_handle, refuse_capture, scratch
from ..outputs import output_for
from .matrix import INDEX_DTYPE, DenseMatrix, Description, SparseMatrix, check_matrix

FORMATS = ("csr", "csc", "coo")
# In captures, cuSPARSE's conversions fail or damage the graph.
REASON = "cuSPARSE converts or sorts a matrix"
_EXCHANGED = {"csr": "csc", "csc": "csr"}


def sparse_to_dense(a: SparseMatrix, out: DeviceArray | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Queue the conversion of a sparse matrix to a dense one, and return it in `out` (cusparseSparseToDense).

    `a` has the format "csr", "csc" or "coo". Each row of `out`, by default a new matrix, must be contiguous. Raises
    TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "sparse_to_dense"
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device, FORMATS)
    out = output_for(call, out, a.shape, a.values.dtype, (where, device), reason="like 'a'")
    view = views.matrix(call, "out", out)
    if not out.size:
        return out
    with activated(device):
        handle = library_handle("cusparse", where, device)
        dense = DenseMatrix(out, view, a._kind)
        algorithm = int(library("cusparse").SparseToDenseAlg.DEFAULT)
        parameters = handle.native, a._describe_once().handle, dense.handle, algorithm
        try:
            memory = scratch(device).get(handle.functions.sparse_to_dense_buffer_size(*parameters), where)
            handle.functions.sparse_to_dense(*parameters, memory.pointer)
        except Exception as error:
            raise failure("cusparseSparseToDense", error) from error
    keep(where, call, a.values, a.indices, a.offsets, out, memory)
    return out


def sparse_convert(a: SparseMatrix, format: str, *, stream: Stream | None = None) -> SparseMatrix:
    """Queue the conversion of a sparse matrix to the format "csr", "csc" or "coo" and return the new matrix.

    The conversion cannot be captured. The result has its own arrays. Its elements are in the order of `sparse_sort`,
    unless `format` is the format of `a` or a matrix is converted from "csr" to "coo": then their order does not change.
    Raises TypeError or ValueError, naming the argument, before anything is queued (cusparseXcsr2coo, cusparseXcoo2csr,
    cusparseCsr2cscEx2).
    """
    call = "sparse_convert"
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device, FORMATS)
    arguments.choice(call, "format", format, FORMATS)
    refuse_capture(call, where, REASON)
    with activated(device):
        if format == a.format:
            return _copy(a, where)
        # Every conversion goes through CSR, because the library converts only from and to that format.
        rows = a
        if a.format == "csc":
            rows = _exchanged(a, "csr", where, device)
        elif a.format == "coo":
            rows = _compressed(_sorted(a, where, device), where, device)
        if format == "coo":
            return _expanded(rows, where, device)
        return _exchanged(rows, "csc", where, device) if format == "csc" else rows


def sparse_transpose(a: SparseMatrix, *, stream: Stream | None = None) -> SparseMatrix:
    """Queue the transposition of a sparse matrix, and return the new matrix in the same format (cusparseCsr2cscEx2).

    `a` has the format "csr", "csc" or "coo". Raises TypeError or ValueError, naming the operand, before anything is
    queued. The transposition cannot be captured. To multiply or solve with the transpose, pass `op="T"` instead.
    """
    call = "sparse_transpose"
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device, FORMATS)
    refuse_capture(call, where, REASON)
    shape = a.shape[1], a.shape[0]
    with activated(device):
        if a.format == "coo":
            values, columns, rows = (_copied(array, where) for array in (a.values, a.indices, a.offsets))
            return _sorted(SparseMatrix("coo", shape, values, rows, columns), where, device)
        # The columns of a matrix are the rows of its transpose.
        exchanged = _exchanged(a, _EXCHANGED[a.format], where, device)
        return SparseMatrix(a.format, shape, exchanged.values, exchanged.indices, exchanged.offsets)


def sparse_sort(a: SparseMatrix, *, stream: Stream | None = None) -> SparseMatrix:
    """Queue the sorting of the elements of a sparse matrix, and return the new matrix (cusparseXcsrsort).

    In the formats "csr" and "csc", the elements of each row or column are sorted by their index. In the format "coo",
    they are sorted by row, then by column. Elements at the same place are kept, in any order. The sorting cannot be
    captured. Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "sparse_sort"
    where, device = views.device_of(call, stream)
    check_matrix(call, "a", a, device, FORMATS)
    refuse_capture(call, where, REASON)
    with activated(device):
        return _sorted(a, where, device)


def _copied(array: DeviceArray, stream: Stream) -> DeviceArray:
    copy = empty(array.shape, array.dtype, stream=stream)
    memcpy(copy, array, stream=stream)
    return copy


def _copy(a: SparseMatrix, stream: Stream) -> SparseMatrix:
    parts = (_copied(array, stream) for array in (a.values, a.indices, a.offsets))
    return SparseMatrix(a.format, a.shape, *parts)


def _expanded(a: SparseMatrix, stream: Stream, device: Device) -> SparseMatrix:
    """Return a matrix in the format "csr" in the format "coo"."""
    values, columns = _copied(a.values, stream), _copied(a.indices, stream)
    rows = empty(a.count, INDEX_DTYPE, stream=stream)
    if a.count:
        parameters = a.offsets.pointer, a.count, a.shape[0], rows.pointer, int(library("cusparse").IndexBase.ZERO)
        _call("cusparseXcsr2coo", "xcsr2coo", stream, device, *parameters)
    return SparseMatrix("coo", a.shape, values, columns, rows)


def _compressed(a: SparseMatrix, stream: Stream, device: Device) -> SparseMatrix:
    """Return a sorted matrix in the format "coo" in the format "csr"."""
    offsets = empty(a.shape[0] + 1, INDEX_DTYPE, stream=stream)
    if a.count:
        parameters = a.offsets.pointer, a.count, a.shape[0], offsets.pointer, int(library("cusparse").IndexBase.ZERO)
        _call("cusparseXcoo2csr", "xcoo2csr", stream, device, *parameters)
    else:
        memset(offsets, 0, stream=stream)
    return SparseMatrix("csr", a.shape, a.values, a.indices, offsets)


def _exchanged(a: SparseMatrix, format: str, stream: Stream, device: Device) -> SparseMatrix:
    """Return rows as columns, or columns as rows: the columns of a matrix are the rows of its transpose."""
    lines, others = a.shape if a.format == "csr" else a.shape[::-1]
    values, indices = empty(a.count, a.values.dtype, stream=stream), empty(a.count, INDEX_DTYPE, stream=stream)
    offsets = empty(others + 1, INDEX_DTYPE, stream=stream)
    if a.count:
        enums = library("cusparse")
        parameters = (
            lines, others, a.count, a.values.pointer, a.offsets.pointer, a.indices.pointer, values.pointer,
            offsets.pointer, indices.pointer, a._kind.code, int(enums.Action.NUMERIC), int(enums.IndexBase.ZERO),
            int(enums.Csr2CscAlg.DEFAULT),
        )  # fmt: skip  # grouped by meaning
        _call("cusparseCsr2cscEx2", "csr2csc_ex2", stream, device, *parameters, size="csr2csc_ex2_buffer_size")
    else:
        memset(offsets, 0, stream=stream)
    return SparseMatrix(format, a.shape, values, indices, offsets)


def _sorted(a: SparseMatrix, stream: Stream, device: Device) -> SparseMatrix:
    """Return a matrix with sorted elements: sort the indices and their permutation, then gather the values."""
    values = empty(a.count, a.values.dtype, stream=stream)
    indices, offsets = (_copied(array, stream) for array in (a.indices, a.offsets))
    result = SparseMatrix(a.format, a.shape, values, indices, offsets)
    if not a.count:
        return result
    permutation = empty(a.count, INDEX_DTYPE, stream=stream)
    _call(
        "cusparseCreateIdentityPermutation", "create_identity_permutation", stream, device, a.count, permutation.pointer
    )
    sizes, arrays = (*a.shape, a.count), (offsets.pointer, indices.pointer)
    parameters: tuple[int, ...]
    if a.format == "coo":
        name, symbol, size = "xcoosort_by_row", "XcoosortByRow", "xcoosort_buffer_size_ext"
        parameters = *sizes, *arrays, permutation.pointer
    else:
        name, symbol, size = f"x{a.format}sort", f"X{a.format}sort", f"x{a.format}sort_buffer_size_ext"
        kind = Description("create_mat_descr", "destroy_mat_descr")
        parameters = *sizes, kind.handle, *arrays, permutation.pointer
    _call(f"cusparse{symbol}", name, stream, device, *parameters, size=size, sized=(*sizes, *arrays))
    enums = library("cusparse")
    source = Description("create_dn_vec", "destroy_dn_vec", a.count, a.values.pointer, a._kind.code)
    target = Description(
        "create_sp_vec", "destroy_sp_vec", a.count, a.count, permutation.pointer, values.pointer,
        int(enums.IndexType.INDEX_32I), int(enums.IndexBase.ZERO), a._kind.code,
    )  # fmt: skip  # grouped by meaning
    _call("cusparseGather", "gather", stream, device, source.handle, target.handle)
    return result


def _call(
    symbol: str,
    name: str,
    stream: Stream,
    device: Device,
    *parameters: int,
    size: str = "",
    sized: tuple[int, ...] = (),
) -> None:
    """Queue a call of cuSPARSE, with a workspace if there is a function for its `size`, whose arguments are `sized`."""
    handle = library_handle("cusparse", stream, device)
    functions: Any = handle.functions
    try:
        memory = []
        if size:
            memory = [scratch(device).get(getattr(functions, size)(handle.native, *(sized or parameters)), stream)]
        getattr(functions, name)(handle.native, *parameters, *(each.pointer for each in memory))
    except Exception as error:
        raise failure(symbol, error) from error
