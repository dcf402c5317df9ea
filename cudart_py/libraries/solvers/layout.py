"""Conversions between row-major arrays and LAPACK's column-major ones: copies, transposes, triangles, diagonals.

Also norms of columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.pointer import Pointer
from ...context.current import activated
from ...context.device import Device, current_device
from ...copies import memcpy, memcpy2d
from ...driver.calls import library
from ...launch.kernel import Kernel
from ...memory.array import DeviceArray
from ...memory.creation import empty, zeros
from ...streams.stream import Stream
from .. import views
from ..blas.cublas_calls import call_cublas
from ..blas.scalars import factor
from ..device_code import kernel_of
from ..dtypes import KINDS, Kind

SOURCE = Path(__file__).parent / "device_code" / "layout.cu"
# The C++ types of elements, keyed by their dtype without the byte order.
ELEMENTS = {"f4": "float", "f8": "double", "c8": "float2", "c16": "double2"}
TILE, BLOCK, THREADS = 32, (32, 8), 256
PARTS = {"all": 0, "lower": 1, "upper": 2}


def copied(array: DeviceArray, stream: Stream) -> DeviceArray:
    """Return a contiguous copy of a vector, or of a matrix whose rows have adjacent elements."""
    copy = empty(array.shape, array.dtype, stream=stream)
    if array.is_contiguous:
        memcpy(copy, array, stream=stream)
    else:
        memcpy2d(copy, array, stream=stream)
    return copy


def transposed(array: DeviceArray, kind: Kind, stream: Stream, *, conjugate: bool = False) -> DeviceArray:
    """Return the transpose, or the conjugate transpose, of a matrix (cublasSgeam and related functions).

    The rows of the matrix have adjacent elements. Its row-major transpose is the same matrix in column-major order, as
    LAPACK expects it.
    """
    matrix = views.matrix("transpose", "a", array)
    result = empty((matrix.columns, matrix.rows), array.dtype, stream=stream)
    if not result.size:
        return result
    operations = library("cublas").Operation
    one, zero = factor(1.0, kind), factor(0.0, kind)
    operation = int(operations.C if conjugate else operations.T)
    call_cublas(
        stream, current_device(), f"{kind.letter}geam", operation, int(operations.N), matrix.rows, matrix.columns,
        one.address, array.pointer, matrix.leading, zero.address, result.pointer, matrix.rows, result.pointer,
        matrix.rows,
    )  # fmt: skip  # grouped by meaning
    return result


def transposed_batch(
    array: DeviceArray, stream: Stream, *, part: str = "all", rows: int | None = None, conjugate: bool = False
) -> DeviceArray:
    """Return the transpose of each matrix of a batch, or of a single matrix, by a kernel of this package.

    The transpose is the same matrix in column-major order. `rows` is the number of rows of the result, by default all.
    `part` keeps all elements of each result, or its "lower" or "upper" triangle, with zeros elsewhere. `conjugate` also
    conjugates.
    """
    view = views.matrix("transpose", "a", array, batched=True)
    height = view.columns if rows is None else rows
    result = empty((*array.shape[:-2], height, view.rows), array.dtype, stream=stream)
    if result.size:
        grid = view.batch, -(-height // TILE), -(-view.rows // TILE)
        kernel = _kernel("transpose_matrices", array)
        kernel[grid, BLOCK, 0, stream](
            Pointer(array.pointer, array), view.leading, view.stride, result, view.rows, height, PARTS[part], conjugate
        )
    return result


def by_rows(call: str, name: str, array: DeviceArray, kind: Kind, stream: Stream, device: Device) -> DeviceArray:
    """Return a matrix with contiguous rows: `array` itself, or a copy of one with contiguous columns, such as `a.T`.

    Arrays of other dimensions are returned as they are. Raises ValueError if neither are contiguous.
    """
    if array.ndim != 2:
        return array
    _, by_columns = views.oriented(call, name, array)
    if not by_columns:
        return array
    with activated(device):
        return transposed(array.T, kind, stream)


def diagonals(matrices: DeviceArray, stream: Stream) -> NDArray[Any]:
    """Copy the diagonal of a matrix, or of each matrix of a batch, to the host, and wait for the copy."""
    view = views.matrix("diagonals", "a", matrices, batched=True)
    count = min(view.rows, view.columns)
    result = empty((*matrices.shape[:-2], count), matrices.dtype, stream=stream)
    if result.size:
        kernel = _kernel("take_diagonals", matrices)
        kernel[-(-result.size // THREADS), THREADS, 0, stream](
            Pointer(matrices.pointer, matrices), view.leading, view.stride, result, count, view.batch
        )
    return result.to_host(stream=stream)


def column_sizes(factors: DeviceArray, kind: Kind, stream: Stream) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the absolute diagonal elements and the column norms of R, relative to the largest element of each column.

    `factors` has R in the upper triangle of a column-major matrix, or of each matrix of a batch, with at least one
    column. Waits for the results.
    """
    view = views.matrix("column_sizes", "a", factors, batched=True)
    columns = view.batch * view.rows
    results = empty((2, *factors.shape[:-1]), kind.real, stream=stream)
    _kernel("measure_columns", factors)[-(-columns * 32 // THREADS), THREADS, 0, stream](
        Pointer(factors.pointer, factors), view.leading, view.stride, results[0], results[1], view.rows, view.batch
    )
    diagonals, norms = results.to_host(stream=stream)
    return diagonals, norms


def not_finite(matrices: DeviceArray, stream: Stream) -> NDArray[Any]:
    """Return the indices of the matrices of a contiguous batch that contain NaN or infinity, and wait for them."""
    numbers = matrices.view(KINDS[matrices.dtype].real)
    marks = zeros(len(matrices), np.int32, stream=stream)
    if numbers.size:
        kernel = _kernel("mark_not_finite", numbers)
        kernel[-(-numbers.size // THREADS), THREADS, 0, stream](numbers, numbers.size // len(marks), marks, len(marks))
    return np.flatnonzero(marks.to_host(stream=stream))


def _kernel(name: str, array: DeviceArray) -> Kernel:
    """Return a kernel for the elements of an array; the device must be current."""
    return kernel_of(SOURCE, f"{name}<{ELEMENTS[array.dtype.str[1:]]}>", current_device())
