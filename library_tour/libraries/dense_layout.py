"""Matrices between our rows and LAPACK's columns: copies, transposes, triangles and diagonals on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import device_code
from . import views
from .bindings import binding, failure
from .blas import scalar
from .dtypes import Kind
from .handles import library_handle

__all__ = ["copied", "diagonal", "keep_triangle", "transposed"]

WORDS = {4: ("unsigned", np.uint32), 8: ("unsigned long long", np.uint64), 16: ("ulonglong2", np.complex128)}
BLOCK = (32, 8)


def copied(array: cuda.DeviceArray, stream: cuda.Stream) -> cuda.DeviceArray:
    """Return a contiguous copy of a vector or a matrix of adjacent elements."""
    copy = cuda.empty(array.shape, array.dtype, stream=stream)
    if array.is_contiguous:
        cuda.memcpy(copy, array, stream=stream)
    else:
        cuda.memcpy2d(copy, array, stream=stream)
    return copy


def transposed(
    array: cuda.DeviceArray, kind: Kind, stream: cuda.Stream, *, conjugate: bool = False
) -> cuda.DeviceArray:
    """Return the transpose of a matrix of adjacent rows, or the conjugate one (cublasSgeam and its kin).

    The transpose in our order is the matrix itself in LAPACK's, column by column.
    """
    matrix = views.matrix("a", array)
    result = cuda.empty((matrix.columns, matrix.rows), array.dtype, stream=stream)
    if not result.size:
        return result
    operations = binding("cublas").Operation
    one, zero = scalar("alpha", 1.0, kind), scalar("beta", 0.0, kind)
    handle = library_handle("cublas", stream, cuda.current_device())
    turn = int(operations.C if conjugate else operations.T)
    try:
        getattr(handle.functions, f"{kind.letter}geam")(
            handle.native, turn, int(operations.N), matrix.rows, matrix.columns, one.ctypes.data, array.pointer,
            matrix.leading, zero.ctypes.data, result.pointer, matrix.rows, result.pointer, matrix.rows,
        )  # fmt: skip
    except Exception as error:
        raise failure(f"cublas{kind.letter.upper()}geam", error) from error
    return result


def keep_triangle(matrix: cuda.DeviceArray, stream: cuda.Stream, *, lower: bool) -> None:
    """Set a contiguous matrix to zero above its diagonal, or below it."""
    rows, columns = matrix.shape
    if not matrix.size:
        return
    word, dtype = WORDS[matrix.itemsize]
    name = f"keep_triangle<{word}>"
    kernel = device_code.load("solver", names=[name])[name]
    grid = (device_code.blocks_for(columns, BLOCK[0]), device_code.blocks_for(rows, BLOCK[1]))
    kernel[grid, BLOCK, 0, stream](matrix.view(dtype), rows, columns, lower)


def diagonal(matrix: cuda.DeviceArray, stream: cuda.Stream) -> NDArray[Any]:
    """Return the diagonal of a matrix on the host, and wait for it."""
    count, size = min(matrix.shape), matrix.itemsize
    step = matrix.strides[0] + size
    view = cuda.DeviceArray.borrow(
        matrix.pointer, (count, 1), matrix.dtype, strides=(step, size), owner=matrix, device=matrix.device
    )
    host = np.empty((count, 1), matrix.dtype)
    if count:
        cuda.memcpy2d(host, view, stream=stream)
        stream.synchronize()
    return host[:, 0]
