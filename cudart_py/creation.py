"""Creation of arrays: uninitialised, filled, copied from the host, with padded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import arguments
from .allocation import PitchedAllocation
from .array import ArrayView, DeviceArray
from .pool_array import empty
from .stream import Stream, stream_handle

__all__ = ["empty", "empty_like", "empty_pitched", "full", "to_device", "zeros"]


def zeros(shape: Any, dtype: DTypeLike = np.float64, *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array and set all its bytes to zero (cuMemsetD8Async)."""
    from .fills import fill_bytes

    array = _allocate("zeros", shape, dtype, stream)
    fill_bytes(array, 0)
    return array


def full(shape: Any, value: Any, dtype: DTypeLike | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array and set every element to `value`, of any dtype (by default the value's own).

    Raises ValueError if the value does not fit the dtype.
    """
    from .fills import as_element, fill

    if dtype is None:
        dtype = arguments.host_array("full", "value", value).dtype
    kind = arguments.dtype("full", "dtype", dtype)
    element = as_element("full", value, kind)
    array = _allocate("full", shape, kind, stream)
    fill(array, element)
    return array


def empty_like(other: DeviceArray | NDArray[Any], *, stream: Stream | None = None) -> DeviceArray:
    """Allocate a contiguous array of another one's shape and dtype."""
    arguments.instance("empty_like", "other", other, (DeviceArray, np.ndarray), "a DeviceArray or a NumPy array")
    kind = arguments.dtype("empty_like", "other", other.dtype)
    return _allocate("empty_like", other.shape, kind, stream)


def to_device(host: ArrayLike, *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array of the current device and copy a host array into it.

    The copy has C order whatever the source's. Returns when the source may be changed again, except
    when given both a `stream` and a pinned source.
    """
    if isinstance(host, DeviceArray):
        raise arguments.wrong_type("to_device", "host", "an array of the host; use memcpy", host)
    source = arguments.host_array("to_device", "host", host)
    array = _allocate("to_device", source.shape, source.dtype, stream)
    return array.copy_from(source, stream=stream)


def empty_pitched(shape: Any, dtype: DTypeLike = np.float64) -> DeviceArray:
    """Allocate a 2-D array (rows, columns) whose rows start at the pitch the device prefers (cuMemAllocPitch).

    The pitch in bytes is `array.pitch`. Raises ValueError unless the shape has two dimensions.
    """
    sizes = arguments.shape("empty_pitched", "shape", shape)
    kind = arguments.dtype("empty_pitched", "dtype", dtype)
    if len(sizes) != 2:
        raise arguments.wrong_value("empty_pitched", "shape", "one of two dimensions", sizes)
    if 0 in sizes:
        return empty(sizes, kind)
    allocation = PitchedAllocation(sizes[1] * kind.itemsize, sizes[0], kind.itemsize)
    return ArrayView(allocation, sizes, kind, (allocation.pitch, kind.itemsize))


def _allocate(call: str, shape: Any, dtype: Any, stream: Stream | None) -> DeviceArray:
    """Allocate an array after checking the arguments in the name of a call."""
    stream_handle(call, stream)
    return empty(arguments.shape(call, "shape", shape), arguments.dtype(call, "dtype", dtype), stream=stream)
