"""The simulator's memory as NumPy arrays, for the libraries in software: its device addresses are the host's."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

# By cudaDataType.
TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128}


def array(
    address: int, shape: int | tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Return the elements at an address; strides are in elements. What is queued is done first."""
    cuda.current_device().synchronize()
    shape = (shape,) if isinstance(shape, int) else shape
    kind = np.dtype(dtype)
    if strides is None:
        strides = tuple(int(np.prod(shape[axis + 1 :], dtype=int)) for axis in range(len(shape)))
    if 0 in shape:
        return np.zeros(shape, kind)
    last = sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    buffer = (ctypes.c_char * ((last + 1) * kind.itemsize)).from_address(address)
    return np.ndarray(shape, kind, buffer, strides=tuple(step * kind.itemsize for step in strides))


def columns(address: int, rows: int, count: int, leading: int, dtype: Any) -> NDArray[Any]:
    """Return a matrix that lies column by column."""
    return array(address, (rows, count), dtype, (1, leading))


def host(address: int, dtype: Any) -> NDArray[Any]:
    """Return the one number at an address of the host, to be read or written."""
    kind = np.dtype(dtype)
    return np.ndarray(1, kind, (ctypes.c_char * kind.itemsize).from_address(address))


def number(address: int, dtype: Any) -> Any:
    """Return the number at an address of the host."""
    return host(address, dtype)[0]
