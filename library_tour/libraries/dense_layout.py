"""Matrices between our rows and LAPACK's columns: copies, transposes, triangles and diagonals on the device."""

from __future__ import annotations

import functools
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

__all__ = ["copied", "diagonal", "transposed", "triangle"]

WORDS = {4: ("unsigned", np.uint32), 8: ("unsigned long long", np.uint64), 16: ("ulonglong2", np.complex128)}
TILE, BLOCK = 32, (32, 8)


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
            handle.native, turn, int(operations.N), matrix.rows, matrix.columns, one.address, array.pointer,
            matrix.leading, zero.address, result.pointer, matrix.rows, result.pointer, matrix.rows,
        )  # fmt: skip  # grouped by meaning
    except Exception as error:
        raise failure(f"cublas{kind.letter.upper()}geam", error) from error
    return result


def triangle(columns: cuda.DeviceArray, rows: int, stream: cuda.Stream, *, lower: bool) -> cuda.DeviceArray:
    """Return a triangle of the first rows of a contiguous matrix that lies column by column, with zeros beside it."""
    width, leading = columns.shape
    result = cuda.empty((rows, width), columns.dtype, stream=stream)
    word, dtype = WORDS[columns.itemsize]
    grid = (device_code.blocks_for(width, TILE), device_code.blocks_for(rows, TILE))
    kernel = _triangle_kernel(cuda.current_device(), word)
    kernel[grid, BLOCK, 0, stream](columns.view(dtype), leading, result.view(dtype), rows, width, lower)
    return result


@functools.cache
def _triangle_kernel(device: cuda.Device, word: str) -> cuda.Kernel:
    # Kept, since compiling looks at the source each time, and loads what the cache has of it. The device is current.
    name = f"take_triangle<{word}>"
    return device_code.load("solver", names=[name])[name]


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
