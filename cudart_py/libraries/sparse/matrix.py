"""Sparse matrices on the device: their arrays, and their cuSPARSE descriptors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, Self

import numpy as np
from numpy.typing import NDArray

from ...base import arguments
from ...base.set_once import SetOnce
from ...context.current import activated
from ...context.device import Device, current_device
from ...context.lifetimes import Handle  # releases descriptors at the right time
from ...driver.calls import library
from ...hints import hinted
from ...memory.array import DeviceArray
from ...memory.creation import to_device
from ...streams.stream import Stream, stream_of
from .. import views
from ..dtypes import Kind
from ..failures import failure
from ..handles import keep, library_handle

Parameters = ParamSpec("Parameters")

TYPES = ("float32", "float64", "complex64", "complex128")
FORMATS = ("csr", "csc", "coo", "sell")
INDEX_DTYPE = np.dtype(np.int32)
# The names in cusparseOperation_t of "N", "T" and "C".
LONG = {"N": "NON_TRANSPOSE", "T": "TRANSPOSE", "C": "CONJUGATE_TRANSPOSE"}
# The functions for dense matrices.
_INSTEAD_OF_DENSE = {
    "spmv": "gemv multiplies a dense matrix",
    "spmm": "gemm multiplies a dense matrix",
    "SparseSolver": "solve takes a dense matrix",
}
_MOST = int(np.iinfo(INDEX_DTYPE).max)


class Description(Handle):
    """A cuSPARSE descriptor, which is in host memory."""

    __slots__ = ("_destroy",)

    def __init__(self, make: str, destroy: str, *parameters: int) -> None:
        self._value, self._owned = None, True
        functions = library("cusparse")
        self._destroy = getattr(functions, destroy)
        try:
            self._value = getattr(functions, make)(*parameters)
        except Exception as error:
            raise failure(f"cusparse {make}", error) from error

    def _release(self, value: Any) -> None:
        self._destroy(value)


class DenseVector(Description):
    """The cuSPARSE descriptor of a dense vector (cusparseCreateDnVec)."""

    __slots__ = ()

    def __init__(self, array: DeviceArray, kind: Kind) -> None:
        super().__init__("create_dn_vec", "destroy_dn_vec", array.shape[0], array.pointer, kind.code)


class DenseMatrix(Description):
    """The cuSPARSE descriptor of a dense row-major matrix (cusparseCreateDnMat)."""

    __slots__ = ()

    def __init__(self, array: DeviceArray, matrix: views.Matrix, kind: Kind) -> None:
        super().__init__(
            "create_dn_mat", "destroy_dn_mat", matrix.rows, matrix.columns, matrix.leading, array.pointer, kind.code,
            int(library("cusparse").Order.ROW),
        )  # fmt: skip  # grouped by meaning


class SparseVector(SetOnce):
    """A vector of `size` elements, which are zero except for `values` at `indices` (int32, in ascending order)."""

    def __init__(self, size: int, indices: DeviceArray, values: DeviceArray) -> None:
        call = "SparseVector"
        views.check_place(call, current_device(), indices=indices, values=values)
        self._kind = views.kind(call, "values", values, TYPES)
        views.require_dtype(call, "indices", indices, INDEX_DTYPE, "as cuSPARSE's index")
        views.vector(call, "values", values)
        arguments.same_shape(call, "indices", indices, values.shape, "like 'values'")
        for name, array in (("indices", indices), ("values", values)):
            arguments.contiguous(call, name, array)
        size = arguments.integer(call, "size", size, 0, _MOST)
        if values.shape[0] > size:
            raise arguments.unusable(call, "values", f"have at most {size} elements, like 'size'", values.shape[0])
        self.size, self.indices, self.values = size, indices, values
        enums = library("cusparse")
        self._description = Description(
            "create_sp_vec", "destroy_sp_vec", size, values.shape[0], indices.pointer, values.pointer,
            int(enums.IndexType.INDEX_32I), int(enums.IndexBase.ZERO), self._kind.code,
        )  # fmt: skip  # grouped by meaning

    def __repr__(self) -> str:
        return f"<SparseVector of {self.size} {self.values.dtype}, {self.values.shape[0]} stored>"


class Analysis:
    """The result of cuSPARSE's analysis of a triangle, with its descriptors and its buffer.

    `family` is "sv" for one right-hand side and "sm" for several, of which there may be `columns`.
    """

    def __init__(self, family: str, description: Description, columns: int) -> None:
        self.family, self.description, self.columns = family, description, columns
        self.state = Description(f"sp_{family}_create_descr", f"sp_{family}_destroy_descr")
        self.buffer: DeviceArray | None = None

    def update(self, matrix: SparseMatrix, stream: Stream, device: Device) -> None:
        """Queue a copy of the matrix's values."""
        enums = library("cusparse")
        part = int(enums.SpSVUpdate.GENERAL if self.family == "sv" else enums.SpSMUpdate.UPDATE_GENERAL)
        with activated(device):
            handle = library_handle("cusparse", stream, device)
            try:
                update = getattr(handle.functions, f"sp_{self.family}_update_matrix")
                update(handle.native, self.state.handle, matrix.values.pointer, part)
            except Exception as error:
                raise failure(f"cusparseSp{self.family.upper()}_updateMatrix", error) from error
        keep(stream, "refresh", matrix.values, self)


def _refuses_host_matrices(init: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Decorate the constructor of `SparseMatrix`: its error for a SciPy sparse array names `from_host`.

    Without the decorator, the error would only be that the other arguments are missing.
    """

    @functools.wraps(init)
    def call(*parameters: Parameters.args, **named: Parameters.kwargs) -> None:
        if len(parameters) > 1 and hasattr(parameters[1], "tocsr"):
            rule = f"one of {views.one_of(map(repr, FORMATS))}"
            remedy = "SparseMatrix.from_host(matrix) copies a SciPy sparse array"
            raise arguments.wrong_type("SparseMatrix", "format", rule, parameters[1], remedy)
        init(*parameters, **named)

    return call


@hinted
class SparseMatrix(SetOnce):
    """A sparse matrix in one of four formats. Values are float32, float64, complex64 or complex128, indices int32.

    - "csr": `values` and their columns (`indices`), row by row. `offsets` has rows + 1 elements: the index in `values`
      at which each row begins, and the number of values.
    - "csc": as in "csr", with columns and rows exchanged: `indices` are rows, and `offsets` are those of the columns.
    - "coo": as in "csr", except that `offsets` contains the row of each value.
    - "sell" (sliced ELLPACK): slices of `slice_size` rows. Each slice is stored column by column, with as many columns
      as its longest row has values. `offsets` contains the index in `values` at which each slice begins. Unused
      elements have the index -1.

    There are at most 2^31 - 1 rows, columns and values. `count` is the number of stored elements in "sell", by default
    that of all values. Raises TypeError or ValueError, naming the argument.

    `from_host` converts a SciPy sparse array. The matrix refers to the arrays and does not copy them. You may change
    `values` between calls, but not `indices` or `offsets`. After a change, call `refresh` before `spsv` and `spsm`.
    """

    @_refuses_host_matrices
    def __init__(
        self,
        format: str,
        shape: tuple[int, int],
        values: DeviceArray,
        indices: DeviceArray,
        offsets: DeviceArray,
        *,
        slice_size: int = 0,
        count: int | None = None,
    ) -> None:
        call = "SparseMatrix"
        arguments.choice(call, "format", format, FORMATS)
        rows, columns = arguments.integers(call, "shape", shape, 2, least=0)
        shape = rows, columns
        _check_indices(call, "shape", shape)
        slice_size = arguments.integer(call, "slice_size", slice_size, 0, _MOST)
        self.device = current_device()
        views.check_place(call, self.device, values=values, indices=indices, offsets=offsets)
        self._kind = views.kind(call, "values", values, TYPES)
        self.format, self.shape = format, shape
        self.values, self.indices, self.offsets = values, indices, offsets
        self.slice_size = slice_size
        # The number of stored elements. Only in the sliced format, `values` also has unused elements.
        least = 0 if format == "sell" else values.size
        self.count = values.size if count is None else arguments.integer(call, "count", count, least, values.size)
        slices = -(-shape[0] // max(slice_size, 1))
        lengths = {"csr": rows + 1, "csc": columns + 1, "coo": values.size, "sell": slices + 1}
        if format == "sell" and slice_size < 1:
            raise arguments.wrong_value(call, "slice_size", "positive", slice_size)
        if values.size > _MOST:
            raise arguments.unusable(
                call, "values", f"have at most {_MOST} elements, since indices are int32", values.size
            )
        arguments.same_shape(call, "indices", indices, (values.size,), "like 'values'")
        arguments.same_shape(call, "offsets", offsets, (lengths[format],), f"with format={format!r} and shape={shape}")
        for name, array in (("indices", indices), ("offsets", offsets)):
            views.require_dtype(call, name, array, INDEX_DTYPE, "as cuSPARSE's index")
            arguments.contiguous(call, name, array)
        arguments.contiguous(call, "values", values)
        # The shared descriptor, and the results of cuSPARSE's analysis with their buffers, keyed by operation.
        self._prepared: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<SparseMatrix {self.format} {self.shape} {self.values.dtype}, {self.count} stored>"

    @classmethod
    def from_host(cls, matrix: Any, format: str = "csr", *, slice_size: int = 32, stream: Stream | None = None) -> Self:
        """Copy a SciPy sparse array or matrix to the device, and convert it to `format`.

        `slice_size` applies to the format "sell". Raises TypeError for other objects, and ValueError if the matrix has
        more than 2^31 - 1 rows, columns or stored elements, including the unused ones of slices.
        """
        call = "SparseMatrix.from_host"
        if isinstance(matrix, type) or not hasattr(matrix, "tocsr"):
            remedy = "sparse_from_dense converts a dense one" if isinstance(matrix, DeviceArray) else ""
            if isinstance(matrix, np.ndarray):
                remedy = "scipy.sparse.csr_array(matrix) makes one"
            raise arguments.wrong_type(call, "matrix", "a SciPy sparse array", matrix, remedy)
        views.kind(call, "matrix", matrix, TYPES)
        arguments.choice(call, "format", format, FORMATS)
        slice_size = arguments.integer(call, "slice_size", slice_size, 1, _MOST)
        views.device_of(call, stream)
        _check_indices(call, "matrix", matrix.shape)
        rows = matrix.tocsr()
        rows.sum_duplicates()
        stored = _sliced_size(rows.indptr, slice_size) if format == "sell" else rows.nnz
        if stored > _MOST:
            raise arguments.unusable(
                call,
                "matrix",
                f"store at most {_MOST} elements with format={format!r}, since indices are int32",
                stored,
            )
        lines = rows.tocsc() if format == "csc" else rows
        values, indices, offsets = lines.data, lines.indices.astype(INDEX_DTYPE), lines.indptr.astype(INDEX_DTYPE)
        if format == "coo":
            offsets = np.repeat(np.arange(rows.shape[0], dtype=INDEX_DTYPE), np.diff(offsets))
        elif format == "sell":
            values, indices, offsets = _slices(values, indices, offsets, slice_size)
        parts = [to_device(part, stream=stream) for part in (values, indices, offsets)]
        slices = slice_size if format == "sell" else 0
        return cls(format, rows.shape, *parts, slice_size=slices, count=rows.nnz)

    def to_host(self, *, stream: Stream | None = None) -> Any:
        """Return a copy on the host, as a SciPy array in the same format; raises ValueError for "sell".

        Without `stream`, each array is copied in its own stream, as by `DeviceArray.to_host`. If another stream has
        written the values, pass that one.
        """
        from scipy import sparse  # imported late because SciPy is optional

        if stream is not None:
            stream = stream_of("SparseMatrix.to_host", stream)
        parts = self.values, self.indices, self.offsets
        values, indices, offsets = (part.to_host(stream=stream) for part in parts)
        if self.format in ("csr", "csc"):
            kind = sparse.csr_array if self.format == "csr" else sparse.csc_array
            return kind((values, indices, offsets), shape=self.shape)
        if self.format == "coo":
            return sparse.coo_array((values, (offsets, indices)), shape=self.shape)
        raise ValueError("SparseMatrix.to_host: SciPy has no sliced format; keep the original matrix")

    def refresh(self, *, stream: Stream | None = None) -> None:
        """Make later triangular solves use the current `values`, in stream order (cusparseSpSV_updateMatrix).

        `spsv` and `spsm` copy the values when they analyse the matrix. Products use the current values anyway.
        """
        where, device = views.device_of("SparseMatrix.refresh", stream)
        check_matrix("SparseMatrix.refresh", "self", self, device)
        for prepared in self._prepared.values():
            if isinstance(prepared, Analysis):
                prepared.update(self, where, device)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """The number of stored elements, like `count`."""
        return self.count

    @property
    def nbytes(self) -> int:
        """The total size of the three arrays in bytes. A product reads each of them once."""
        return self.values.nbytes + self.indices.nbytes + self.offsets.nbytes

    def _describe_once(self) -> Description:
        """Return the shared descriptor, for calls that do not store anything in it."""
        description: Description | None = self._prepared.get("description")
        if description is None:
            description = self._prepared["description"] = self._describe()
        return description

    def _describe(self) -> Description:
        """Return a new descriptor (cusparseCreateCsr and related functions)."""
        enums = library("cusparse")
        index, base = int(enums.IndexType.INDEX_32I), int(enums.IndexBase.ZERO)
        arrays = self.offsets.pointer, self.indices.pointer, self.values.pointer
        sizes, types, make = [self.count], [index, index], "create_csr"
        if self.format == "csc":
            make = "create_csc"
        elif self.format == "coo":
            types, make = [index], "create_coo"
        elif self.format == "sell":
            sizes, make = [self.count, self.values.size, self.slice_size], "create_sliced_ell"
        with activated(self.device):
            return Description(make, "destroy_sp_mat", *self.shape, *sizes, *arrays, *types, base, self._kind.code)


def check_matrix(call: str, name: str, matrix: Any, device: Device, formats: tuple[str, ...] = FORMATS) -> None:
    """Check a sparse matrix and its format; raise ValueError naming the operand if arrays are closed or elsewhere."""
    if not isinstance(matrix, SparseMatrix):
        remedy = _INSTEAD_OF_DENSE.get(call, "sparse_from_dense makes one") if isinstance(matrix, DeviceArray) else ""
        if hasattr(matrix, "tocsr"):
            remedy = f"SparseMatrix.from_host({name}) makes one"
        raise arguments.wrong_type(call, name, "a SparseMatrix", matrix, remedy)
    if matrix.format not in formats:
        rule = f"have the format {views.one_of(map(repr, formats))}"
        remedy = "" if matrix.format == "sell" else f"sparse_convert({name}, {formats[0]!r}) returns one that has"
        raise arguments.unusable(call, name, rule, repr(matrix.format), remedy)
    parts = {"values": matrix.values, "indices": matrix.indices, "offsets": matrix.offsets}
    views.check_place(call, device, **{f"{name}.{part}": array for part, array in parts.items()})


def extents_of(a: SparseMatrix) -> dict[str, tuple[int, int]]:
    """Return the address and the size in bytes of each array of `a`, to check that an output overlaps none of them."""
    arrays = {"a.values": a.values, "a.indices": a.indices, "a.offsets": a.offsets}
    return {name: (array.pointer, array.nbytes) for name, array in arrays.items()}


def _check_indices(call: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError for a matrix whose rows or columns int32 indices cannot count."""
    if max(shape) > _MOST:
        raise arguments.unusable(call, name, f"have at most {_MOST} rows and columns, since indices are int32", shape)


def _slice_widths(offsets: NDArray[Any], slice_size: int) -> NDArray[np.int64]:
    """Return the number of elements in the longest row of each slice, for the offsets of the rows."""
    lengths = np.diff(offsets)
    widths = np.zeros(-(-len(lengths) // slice_size), np.int64)
    np.maximum.at(widths, np.arange(len(lengths)) // slice_size, lengths)
    return widths


def _sliced_size(offsets: NDArray[Any], slice_size: int) -> int:
    """Return the number of elements of all slices, with unused ones."""
    return int(_slice_widths(offsets, slice_size).sum()) * slice_size


def _slices(
    values: NDArray[Any], indices: NDArray[Any], offsets: NDArray[Any], slice_size: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Convert rows to slices. A slice has the first elements of all its rows, then the second elements, and so on."""
    lengths = np.diff(offsets)
    starts = np.concatenate([[0], np.cumsum(_slice_widths(offsets, slice_size) * slice_size)])
    sliced = np.zeros(starts[-1], values.dtype)
    columns = np.full(starts[-1], -1, INDEX_DTYPE)
    row = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
    target = starts[row // slice_size] + position * slice_size + row % slice_size
    sliced[target], columns[target] = values, indices
    return sliced, columns, starts.astype(INDEX_DTYPE)
