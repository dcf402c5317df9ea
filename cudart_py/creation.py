"""Creation of arrays: uninitialised, filled, copied from the host, with padded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _shapes
from .allocation import PitchedAllocation
from .array import ArrayView, DeviceArray
from .pool_array import empty
from .stream import Stream

__all__ = ["empty", "empty_like", "empty_pitched", "full", "to_device", "zeros"]


def zeros(shape: Any, dtype: DTypeLike = np.float64, *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array and set all its bytes to zero (cuMemsetD8Async)."""
    from .fills import fill_bytes

    array = empty(shape, dtype, stream=stream)
    fill_bytes(array, 0)
    return array


def full(shape: Any, value: Any, dtype: DTypeLike | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array and set every element to `value`, of any dtype (by default the value's own).

    Raises ValueError if the value does not fit the dtype.
    """
    from .fills import fill

    kind = _shapes.as_dtype(np.asarray(value).dtype if dtype is None else dtype)
    array = empty(shape, kind, stream=stream)
    fill(array, value)
    return array


def empty_like(other: DeviceArray | NDArray[Any], *, stream: Stream | None = None) -> DeviceArray:
    """Allocate a contiguous array of another one's shape and dtype."""
    return empty(other.shape, other.dtype, stream=stream)


def to_device(host: ArrayLike, *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array of the current device and copy a host array into it.

    The copy has C order whatever the source's. Returns when the source may be changed again, except
    when given both a `stream` and a pinned source.
    """
    source = np.asarray(host)
    array = empty(source.shape, source.dtype, stream=stream)
    return array.copy_from(source, stream=stream)


def empty_pitched(shape: Any, dtype: DTypeLike = np.float64) -> DeviceArray:
    """Allocate a 2-D array (rows, columns) whose rows start at the pitch the device prefers (cuMemAllocPitch).

    The pitch in bytes is `array.pitch`. Raises ValueError unless the shape has two dimensions.
    """
    sizes, kind = _shapes.as_shape(shape), _shapes.as_dtype(dtype)
    if len(sizes) != 2:
        raise ValueError(f"a pitched array has two dimensions, not {len(sizes)}: {sizes}")
    if 0 in sizes:
        return empty(sizes, kind)
    allocation = PitchedAllocation(sizes[1] * kind.itemsize, sizes[0], kind.itemsize)
    return ArrayView(allocation, sizes, kind, (allocation.pitch, kind.itemsize))
