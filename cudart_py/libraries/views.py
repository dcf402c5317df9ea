"""Device arrays in the libraries' terms: a pointer, sizes and leading dimensions, checked and without copies.

Every error names the call and the operand, and is raised before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..base import arguments
from ..context.device import Device, current_device
from ..memory.array import DeviceArray
from ..streams.stream import Stream, legacy_default, stream_of
from .dtypes import Kind, kind_of, name_of


class Matrix(NamedTuple):
    """A row-major matrix, or a batch of such matrices.

    `leading` is the distance in elements between neighbouring rows, `stride` the distance in elements between
    neighbouring matrices (0 for a single matrix), and `span` the size in bytes from the first element to the end of the
    last.
    """

    rows: int
    columns: int
    leading: int
    batch: int
    stride: int
    span: int

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes and the distance that a call of the BLAS takes as integers."""
        return self.rows, self.columns, self.leading


class Vector(NamedTuple):
    """A vector: `step` is the stride in elements, `span` the bytes from the first element to the end of the last."""

    size: int
    step: int
    span: int

    @property
    def extents(self) -> tuple[int, ...]:
        """The size and the stride that a call of the BLAS takes as integers."""
        return self.size, self.step


def device_of(call: str, stream: Stream | None) -> tuple[Stream, Device]:
    """Return the stream to use (for None, the legacy default stream) and its device."""
    if stream is None:
        return legacy_default, current_device()
    stream = stream_of(call, stream)
    return stream, stream.device


def check_place(call: str, device: Device, /, **operands: Any) -> list[int]:
    """Return the addresses of operands, after checking that they are open DeviceArrays that a device can access.

    Raises TypeError for anything that is not a DeviceArray, and ValueError for an array that is closed or that the
    device cannot access.
    """
    addresses = []
    for name, operand in operands.items():
        if not isinstance(operand, DeviceArray):
            raise arguments.wrong_type(call, name, "a DeviceArray", operand, _remedy(call, name, operand))
        if operand.closed:
            raise arguments.wrong_value(call, name, "open", operand)
        home = operand.device
        if home is not device and not device.peer_enabled(home):
            raise arguments.unusable(
                call,
                name,
                f"be in memory that device {device.ordinal}, which does the work, can access",
                f"on device {home.ordinal}",
                f"copy it, or call Device({device.ordinal}).enable_peer(Device({home.ordinal}))",
            )
        addresses.append(operand._address)
    return addresses


def extent_of(array: DeviceArray) -> tuple[int, int]:
    """Return the address of an array without negative strides, and its size in bytes with the gaps between elements."""
    if not array.size:
        return array.pointer, 0
    steps = zip(array.shape, array.strides, strict=True)
    return array.pointer, sum((size - 1) * step for size, step in steps) + array.itemsize


# The functions for sparse matrices, keyed by the functions for dense ones.
_INSTEAD_OF_SPARSE = {
    "gemv": "spmv",
    **dict.fromkeys(("gemm", "matmul"), "spmv or spmm"),
    "solve": "SparseSolver",
}


def _remedy(call: str, name: str, operand: Any) -> str:
    """Return the remedy for an operand that is not a DeviceArray."""
    if hasattr(operand, "nnz"):  # a sparse matrix, on the device or SciPy's
        return f"{_INSTEAD_OF_SPARSE.get(call, 'sparse_to_dense')} takes a SparseMatrix"
    if hasattr(operand, "__cuda_array_interface__"):
        return "cudart_py.as_device_array makes one"
    if isinstance(operand, bool) and call in ("spsv", "spsm"):
        return f"pass lower={operand}"
    if not isinstance(operand, list | tuple | np.ndarray):
        return ""
    return f"cudart_py.{'empty' if name == 'out' else 'to_device'} makes one"


def check_apart(call: str, name: str, start: int, nbytes: int, /, **operands: tuple[int, int]) -> None:
    """Raise ValueError if an output overlaps an input. Each is given by its address and its size in bytes."""
    for other, (address, extent) in operands.items():
        if start < address + extent and address < start + nbytes:
            raise arguments.unusable(call, name, f"not overlap {other!r}, which is read while {name!r} is written")


def kind(call: str, name: str, array: Any, allowed: tuple[str, ...]) -> Kind:
    """Return the `Kind` of an operand's dtype; raise TypeError for a dtype that is not allowed."""
    result = kind_of(array.dtype)
    if result is None or result.name not in allowed:
        remedy = converted(name, array, next((word for word in ("float64", *allowed) if word in allowed), ""))
        raise arguments.wrong_dtype(call, name, one_of(allowed), name_of(array.dtype), remedy)
    return result


# The names of NumPy's own dtypes, to which NumPy converts.
_PLAIN = ("float32", "float64", "complex64", "complex128", "float16", "int32", "int8")


def converted(name: str, array: Any, wanted: str) -> str:
    """Return how to convert an input, on the device or on the host, to a dtype of NumPy.

    The result is "" for other dtypes, for outputs, and for complex elements that would lose their imaginary parts.
    """
    if name == "out" or wanted not in _PLAIN or array.dtype.fields is not None:
        return ""
    if array.dtype.kind == "c" and not wanted.startswith("complex"):
        return ""
    if not hasattr(array, "to_host"):
        return f"{name}.astype(np.{wanted}) converts it"
    return f"to_device({name}.to_host().astype(np.{wanted})) converts it"


def one_of(words: Iterable[str]) -> str:
    """Return words as a list for a sentence: "a, b or c"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def require_dtype(call: str, name: str, array: Any, dtype: np.dtype[Any], reason: str) -> None:
    """Raise TypeError unless an operand has the dtype that is required for a reason, such as "like 'a'"."""
    if array.dtype != dtype:
        rule, remedy = f"{name_of(dtype)} {reason}", converted(name, array, name_of(dtype))
        other = reason.removeprefix("like ")
        if not remedy and name != "out" and other.startswith("'") and name_of(array.dtype) in _PLAIN:
            remedy = f"convert {other} to {name_of(array.dtype)}"
        raise arguments.wrong_dtype(call, name, rule, name_of(array.dtype), remedy)


# The functions for operands with another number of dimensions, keyed by the function that was called and that number.
_FOR_DIMENSIONS = {
    ("dot", 2): "matmul multiplies matrices, and gemv a matrix by a vector",
    ("gemm", 1): "matmul and gemv multiply a matrix by a vector",
    ("gemv", 2): "gemm multiplies matrices",
    ("spmm", 1): "spmv multiplies by a vector",
    ("spmv", 2): "spmm multiplies by a matrix",
    ("spsm", 1): "spsv solves for a vector",
    ("spsv", 2): "spsm solves for the columns of a matrix",
    ("symm", 1): "symv multiplies by a vector",
    ("symv", 2): "symm multiplies by a matrix",
}


def _dimensions(call: str, name: str, array: DeviceArray, *counts: int) -> None:
    """Check the number of dimensions of an operand; the error names the function for the actual number."""
    is_input, is_line = name != "out", array.size == max(array.shape, default=1)
    remedy = _FOR_DIMENSIONS.get((call.removesuffix(".plan"), array.ndim), "") if is_input else ""
    if is_input and counts == (1,) and (is_line or not remedy):  # a matrix of one row or column
        remedy = f"pass {name}.reshape(-1)"
    arguments.dimensions(call, name, array, *counts, remedy=remedy)


def _elements(call: str, name: str, stride: int, itemsize: int) -> int:
    if stride < 0:
        rule = "have strides that are not negative"
        raise arguments.unusable(call, name, rule, f"{stride} bytes", arguments.copy_of(name))
    if stride % itemsize:
        raise arguments.unusable(
            call, name, f"have strides that are multiples of its {itemsize}-byte elements", f"{stride} bytes"
        )
    return stride // itemsize


def matrix(call: str, name: str, array: DeviceArray, *, batched: bool = False) -> Matrix:
    """Return the layout of a matrix whose rows are contiguous and may be padded; `batched` allows three dimensions.

    Raises ValueError for another number of dimensions and for strides that BLAS cannot express.
    """
    _dimensions(call, name, array, *((2, 3) if batched else (2,)))
    return _matrix(call, name, array, array.shape, array.strides, "rows")


def oriented(
    call: str, name: str, array: DeviceArray, *, batched: bool = False, by_columns: bool = False
) -> tuple[Matrix, bool]:
    """Return the layout of a matrix with contiguous rows or columns, and whether the columns are the contiguous ones.

    For contiguous columns, as in `a.T`, the layout is that of the transpose, which has contiguous rows. A matrix of one
    row or column has both; `by_columns` says that its columns count as the contiguous ones. Raises ValueError as
    `matrix` does.
    """
    _dimensions(call, name, array, *((2, 3) if batched else (2,)))
    shape, strides = array.shape, array.strides
    (rows, columns), size = shape[-2:], array.itemsize
    has_rows, has_columns = columns <= 1 or strides[-1] == size, rows <= 1 or strides[-2] == size
    transposes = has_columns and (by_columns or not has_rows)
    if transposes:
        shape, strides = (*shape[:-2], columns, rows), (*strides[:-2], strides[-1], strides[-2])
    return _matrix(call, name, array, shape, strides, "rows or columns"), transposes


def _matrix(
    call: str, name: str, array: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...], lines: str
) -> Matrix:
    itemsize = array.dtype.itemsize
    rows, columns = shape[-2:]
    step, leading = _elements(call, name, strides[-1], itemsize), _elements(call, name, strides[-2], itemsize)
    if columns > 1 and step != 1:
        raise arguments.unusable(
            call, name, f"have {lines} of adjacent elements", f"elements that begin {strides[-1]} bytes apart, each of "
            f"{itemsize} bytes", arguments.copy_of(name),
        )  # fmt: skip  # grouped by meaning
    if rows <= 1:  # the stride of a single row has no meaning
        leading = max(columns, 1)
    if rows > 1 and leading < columns:
        raise arguments.unusable(
            call, name, "have rows that do not overlap", f"rows of {columns} elements that begin {leading} apart"
        )
    batch, stride = 1, 0
    if len(shape) == 3:
        batch, stride = shape[0], _elements(call, name, strides[0], itemsize)
    span = 0
    if batch and rows and columns:
        span = ((batch - 1) * stride + (rows - 1) * leading + columns) * itemsize
    return Matrix(rows, columns, max(leading, 1), batch, stride, span)


def contiguous_matrix(shape: tuple[int, ...], itemsize: int) -> Matrix:
    """Return the layout of a contiguous array with 2 or 3 dimensions, before the array is allocated."""
    rows, columns = shape[-2:]
    batch = shape[0] if len(shape) == 3 else 1
    stride = rows * columns if len(shape) == 3 else 0
    return Matrix(rows, columns, max(columns, 1), batch, stride, batch * rows * columns * itemsize)


def vector(call: str, name: str, array: DeviceArray) -> Vector:
    """Return the layout of a vector, which may have a stride; raise ValueError for other numbers of dimensions."""
    _dimensions(call, name, array, 1)
    size, step = array.shape[0], _elements(call, name, array.strides[0], array.itemsize)
    if size > 1 and step < 1:
        raise arguments.unusable(call, name, "have elements that do not overlap", f"a stride of {step} elements")
    step = max(step, 1)
    return Vector(size, step, ((size - 1) * step + 1) * array.itemsize if size else 0)


def check_product(call: str, b: tuple[str, int], a: tuple[str, int]) -> None:
    """Raise ValueError if the rows of factor `b` differ from the columns of factor `a` before it.

    Each factor is given by its name and that number.
    """
    (name, rows), (before, columns) = b, a
    if rows != columns:
        raise arguments.unusable(call, name, f"have {columns} rows, since {before!r} has {columns} columns", rows)
