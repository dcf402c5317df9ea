"""Device arrays as the libraries see them: a pointer, sizes and leading dimensions, checked and with no copy.

Every error names the operand, and comes before anything is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..context.device import Device, current_device
from ..memory.array import DeviceArray
from ..streams.stream import Stream, legacy_default
from .dtypes import Kind, kind_of, name_of

__all__ = [
    "Matrix",
    "Vector",
    "check_apart",
    "check_flags",
    "check_open",
    "check_place",
    "device_of",
    "kind",
    "matrix",
    "require_contiguous",
    "require_dtype",
    "require_shape",
    "vector",
]


class Matrix(NamedTuple):
    """A matrix, or a batch of them, of rows that lie one behind the other.

    `leading` is the elements from a row to the next, `stride` those from a matrix to the next (0 of a single
    one), `span` the bytes from the first element to the last.
    """

    rows: int
    columns: int
    leading: int
    batch: int
    stride: int
    span: int


class Vector(NamedTuple):
    """A vector: `step` elements from one to the next, `span` bytes from the first to the last."""

    size: int
    step: int
    span: int


def device_of(stream: Stream | None) -> tuple[Stream, Device]:
    """Return the stream to use, the legacy default one for None, and the device that it runs on."""
    if stream is None:
        return legacy_default, current_device()
    if not isinstance(stream, Stream):
        raise TypeError(f"stream must be a cudart_py Stream or None, not {type(stream).__name__}")
    stream.handle  # noqa: B018  # raises when closed
    return stream, stream.device


def check_place(device: Device, **operands: Any) -> list[int]:
    """Return the addresses of operands, after checking that they are open DeviceArrays which a device can reach.

    Raises TypeError for what is no DeviceArray, ValueError for one that is closed or on another device.
    """
    addresses = []
    for name, operand in operands.items():
        if not isinstance(operand, DeviceArray):
            remedy = "as_device_array" if hasattr(operand, "__cuda_array_interface__") else "to_device"
            raise TypeError(f"{name} must be a DeviceArray, not {type(operand).__name__}; cudart_py.{remedy} makes one")
        if operand.closed:
            raise ValueError(f"{name} is closed: its memory is given back")
        home = operand.device
        if home is not device and not device.peer_enabled(home):
            raise ValueError(
                f"{name} is on device {home.ordinal}, and the work on device {device.ordinal}, which has no access: "
                f"copy it, or call Device({device.ordinal}).enable_peer(Device({home.ordinal}))"
            )
        addresses.append(operand._address)
    return addresses


def check_flags(**flags: Any) -> None:
    """Raise TypeError, naming it, for what is no bool: whatever is not empty would count as true."""
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name} must be a bool, not {type(flag).__name__}")


def check_open(**operands: DeviceArray) -> None:
    """Raise ValueError, naming it, for an operand that is closed."""
    for name, operand in operands.items():
        if operand.closed:
            raise ValueError(f"{name} is closed: its memory is given back")


def check_apart(name: str, start: int, nbytes: int, **operands: tuple[int, int]) -> None:
    """Raise ValueError if the bytes of an output overlap those of an input: each is an address and so many bytes."""
    for other, (address, extent) in operands.items():
        if start < address + extent and address < start + nbytes:
            raise ValueError(f"{name} overlaps {other}, which is read while {name} is written")


def kind(name: str, array: DeviceArray, allowed: tuple[str, ...]) -> Kind:
    """Return what the libraries know of an operand's dtype; TypeError for one that is not allowed."""
    found = kind_of(array.dtype)
    if found is None or found.name not in allowed:
        raise TypeError(f"{name} has dtype {name_of(array.dtype)}; the library takes {', '.join(allowed)}")
    return found


def _elements(name: str, stride: int, itemsize: int) -> int:
    if stride % itemsize:
        raise ValueError(f"{name} has a stride of {stride} bytes, no multiple of its {itemsize}-byte elements")
    return stride // itemsize


def matrix(name: str, array: DeviceArray, *, batched: bool = False) -> Matrix:
    """Describe a matrix whose rows are contiguous and may be padded, and with `batched` also three dimensions.

    Raises ValueError for another number of dimensions and for strides that BLAS has no name for.
    """
    shape, strides, itemsize = array.shape, array.strides, array.dtype.itemsize
    if len(shape) != 2 and not (batched and len(shape) == 3):
        raise ValueError(f"{name} has shape {shape}; it must have {'2 or 3' if batched else '2'} dimensions")
    rows, columns = shape[-2:]
    step, leading = _elements(name, strides[-1], itemsize), _elements(name, strides[-2], itemsize)
    if columns > 1 and step != 1:
        raise ValueError(
            f"{name} has {strides[-1]} bytes from column to column; the library takes rows whose elements lie "
            f"one behind the other, {itemsize} bytes apart"
        )
    if rows <= 1:  # the stride of one row means nothing
        leading = max(columns, 1)
    if rows > 1 and leading < columns:
        raise ValueError(f"{name} has rows of {columns} elements that begin {leading} elements apart: they overlap")
    batch, stride = 1, 0
    if len(shape) == 3:
        batch, stride = shape[0], _elements(name, strides[0], itemsize)
    span = 0
    if batch and rows and columns:
        span = ((batch - 1) * stride + (rows - 1) * leading + columns) * itemsize
    return Matrix(rows, columns, max(leading, 1), batch, stride, span)


def vector(name: str, array: DeviceArray) -> Vector:
    """Describe a vector, which may have gaps of equal length; ValueError for other numbers of dimensions."""
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; it must have 1 dimension")
    size, step = array.shape[0], _elements(name, array.strides[0], array.itemsize)
    if size > 1 and step < 1:
        raise ValueError(f"{name} has a stride of {step} elements: all of them are the same one")
    step = max(step, 1)
    return Vector(size, step, ((size - 1) * step + 1) * array.itemsize if size else 0)


def require_contiguous(name: str, array: DeviceArray) -> None:
    """Raise ValueError for an array with gaps, or in another order than C's."""
    if not array.is_contiguous:
        raise ValueError(f"{name} has strides {array.strides}; the library takes a contiguous array")


def require_dtype(name: str, array: DeviceArray, dtype: np.dtype[Any], like: str) -> None:
    """Raise TypeError for an operand of another dtype than the one that it goes with."""
    if array.dtype != dtype:
        raise TypeError(f"{name} has dtype {name_of(array.dtype)}, and {like} {name_of(dtype)}; they must be the same")


def require_shape(name: str, array: DeviceArray, shape: tuple[int, ...], why: str) -> None:
    """Raise ValueError for an operand of another shape than the one that follows from the others."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; {why} makes it {shape}")
