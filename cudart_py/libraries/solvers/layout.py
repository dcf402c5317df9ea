"""Conversions between row-major arrays and LAPACK's column-major ones: copies, transposes, triangles, diagonals."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...context.current import activated
from ...context.device import Device, current_device
from ...context.resetting import at_reset
from ...copies import memcpy, memcpy2d
from ...driver.calls import library
from ...launch.kernel import Kernel
from ...launch.loading import compile
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import factor
from ..dtypes import Kind
from ..failures import failure
from ..handles import library_handle

WORDS = {4: ("unsigned", np.uint32), 8: ("unsigned long long", np.uint64), 16: ("ulonglong2", np.complex128)}
TILE, BLOCK = 32, (32, 8)
SOURCE = Path(__file__).parent / "device_code" / "triangle.cu"


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
    handle = library_handle("cublas", stream, current_device())
    turn = int(operations.C if conjugate else operations.T)
    try:
        getattr(handle.functions, f"{kind.letter}geam")(
            handle.native, turn, int(operations.N), matrix.rows, matrix.columns, one.address, array.pointer,
            matrix.leading, zero.address, result.pointer, matrix.rows, result.pointer, matrix.rows,
        )  # fmt: skip  # grouped by meaning
    except Exception as error:
        raise failure(f"cublas{kind.letter.upper()}geam", error) from error
    return result


def by_rows(call: str, name: str, array: DeviceArray, kind: Kind, stream: Stream, device: Device) -> DeviceArray:
    """Return a matrix with contiguous rows: `array` itself, or a copy of one with contiguous columns, such as `a.T`.

    Arrays of other dimensions are returned as they are. Raises ValueError if neither are contiguous.
    """
    if array.ndim != 2:
        return array
    _, turned = views.oriented(call, name, array)
    if not turned:
        return array
    with activated(device):
        return transposed(array.T, kind, stream)


def triangle(columns: DeviceArray, rows: int, stream: Stream, *, lower: bool) -> DeviceArray:
    """Return a row-major triangle of the first rows of a contiguous column-major matrix; the rest is zeros."""
    width, leading = columns.shape
    result = empty((rows, width), columns.dtype, stream=stream)
    word, dtype = WORDS[columns.itemsize]
    grid = -(-width // TILE), -(-rows // TILE)
    kernel = _triangle_kernel(current_device(), word)
    kernel[grid, BLOCK, 0, stream](columns.view(dtype), leading, result.view(dtype), rows, width, lower)
    return result


@functools.cache
def _triangle_kernel(device: Device, word: str) -> Kernel:
    # Cached here, since even a hit in the compile cache reads the source and loads the image. The device is current.
    name = f"take_triangle<{word}>"
    return compile(SOURCE, names=[name])[name]


at_reset(_triangle_kernel.cache_clear)


def diagonal(matrix: DeviceArray, stream: Stream) -> NDArray[Any]:
    """Copy the diagonal of a matrix to the host and wait for the copy."""
    count, size = min(matrix.shape), matrix.itemsize
    step = matrix.strides[0] + size
    view = DeviceArray.borrow(
        matrix.pointer, (count, 1), matrix.dtype, strides=(step, size), owner=matrix, device=matrix.device
    )
    host = np.empty((count, 1), matrix.dtype)
    if count:
        memcpy2d(host, view, stream=stream)
        stream.synchronize()
    return host[:, 0]
