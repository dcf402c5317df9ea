"""Batches of matrices for LAPACK's routines: transposes, and the addresses of all matrices in device memory."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import arguments
from ...context.device import Device, current_device
from ...context.resetting import at_reset
from ...launch.kernel import Kernel
from ...launch.loading import compile
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...pointer import Pointer
from ...streams.stream import Stream
from .. import views

SOURCE = Path(__file__).parent / "device_code" / "batches.cu"
ELEMENTS = {"f4": "float", "f8": "double", "c8": "float2", "c16": "double2"}
TILE, BLOCK, THREADS = 32, (32, 8), 256
PARTS = {"all": 0, "lower": 1, "upper": 2}


def transposed_batch(
    array: DeviceArray, stream: Stream, *, part: str = "all", rows: int | None = None, conjugate: bool = False
) -> DeviceArray:
    """Return the transpose of each matrix of a batch, which is the same matrix in column-major order.

    `rows` is the number of rows of the result, by default all. `part` keeps all elements of each result, or its "lower"
    or "upper" triangle, with zeros elsewhere. `conjugate` also conjugates.
    """
    view = views.matrix("transpose", "a", array, batched=True)
    width = view.columns if rows is None else rows
    result = empty((view.batch, width, view.rows), array.dtype, stream=stream)
    if result.size:
        grid = view.batch, -(-width // TILE), -(-view.rows // TILE)
        kernel = _kernel(current_device(), f"transpose_matrices<{ELEMENTS[array.dtype.str[1:]]}>")
        kernel[grid, BLOCK, 0, stream](
            Pointer(array.pointer, array), view.leading, view.stride, result, view.rows, width, PARTS[part], conjugate
        )
    return result


def diagonals(batch: DeviceArray, stream: Stream) -> NDArray[Any]:
    """Copy the diagonals of a batch of matrices to the host, one per row, and wait for the copy."""
    view = views.matrix("diagonals", "a", batch, batched=True)
    count = min(view.rows, view.columns)
    result = empty((view.batch, count), batch.dtype, stream=stream)
    if result.size:
        kernel = _kernel(current_device(), f"take_diagonals<{ELEMENTS[batch.dtype.str[1:]]}>")
        kernel[-(-result.size // THREADS), THREADS, 0, stream](
            Pointer(batch.pointer, batch), view.leading, view.stride, result, count, view.batch
        )
    return result.to_host(stream=stream)


def addresses_of(batch: DeviceArray, stream: Stream) -> DeviceArray:
    """Return an array of the addresses of the items of a contiguous batch, as cuBLAS's batched functions expect it."""
    count = batch.shape[0]
    found = empty(count, np.uint64, stream=stream)
    if count:
        kernel = _kernel(current_device(), "address_matrices")
        kernel[-(-count // THREADS), THREADS, 0, stream](found, batch.pointer, batch.nbytes // count, count)
    return found


@functools.cache
def _kernel(device: Device, name: str) -> Kernel:
    # Cached here, since even a hit in the compile cache reads the source and loads the image. The device is current.
    return compile(SOURCE, names=[name] if "<" in name else [])[name]


at_reset(_kernel.cache_clear)


def check_batch(call: str, name: str, array: DeviceArray, *, square: bool) -> views.Matrix:
    """Return the layout of a batch of matrices; raise ValueError if one has no elements or `square` isn't met."""
    view = views.matrix(call, name, array, batched=True)
    if not view.rows or not view.columns:
        raise arguments.unusable(call, name, "have at least one row and one column", f"the shape {array.shape}")
    if square and view.rows != view.columns:
        raise arguments.unusable(call, name, "have square matrices", f"the shape {array.shape}")
    return view
