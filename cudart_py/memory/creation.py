"""Creation of arrays: uninitialised, filled, copied from the host or with padded rows."""

from __future__ import annotations

from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..base import arguments
from ..base.shapes import Shape
from ..hints import answers_keywords, unexpected
from ..streams.stream import Stream, legacy_default
from .allocation import PitchedAllocation
from .array import DeviceArray, allocate_array
from .fills import as_element, fill, fill_bytes
from .pools import MemoryPool


def empty(
    shape: Shape,
    dtype: DTypeLike = np.float64,
    *surplus: Never,
    stream: Stream | None = None,
    pool: MemoryPool | None = None,
    **foreign: Never,
) -> DeviceArray:
    """Allocate an array on the current device without initialising it (cuMemAllocAsync).

    `shape` is an int or a tuple. The array is allocated, and later freed, in the order of `stream`, by default the
    legacy default stream. The memory comes from `pool`, by default the device's current pool (cuMemAllocFromPoolAsync).
    Raises OutOfMemoryError, with the sizes, if there is not enough memory, and ValueError if the pool and the stream
    belong to different devices.
    """
    if surplus or foreign:
        raise unexpected("empty", surplus, foreign)
    return allocate_array("empty", shape, dtype, stream, pool)


def zeros(
    shape: Shape,
    dtype: DTypeLike = np.float64,
    *surplus: Never,
    stream: Stream | None = None,
    pool: MemoryPool | None = None,
    **foreign: Never,
) -> DeviceArray:
    """Allocate an array, like `empty`, and set all its bytes to zero (cuMemsetD8Async)."""
    if surplus or foreign:
        raise unexpected("zeros", surplus, foreign)
    return _zeros("zeros", shape, dtype, stream, pool)


def full(
    shape: Shape,
    value: Any,
    dtype: DTypeLike | None = None,
    *surplus: Never,
    stream: Stream | None = None,
    pool: MemoryPool | None = None,
    **foreign: Never,
) -> DeviceArray:
    """Allocate an array, like `empty`, and set every element to `value`; `dtype` is by default that of `value`.

    Raises ValueError if the value does not fit the dtype.
    """
    if surplus or foreign:
        raise unexpected("full", surplus, foreign)
    if dtype is None:
        dtype = arguments.host_array("full", "value", value).dtype
    kind = arguments.dtype("full", "dtype", dtype)
    element = as_element("full", value, kind)
    array = allocate_array("full", shape, kind, stream, pool)
    fill(array, element, array.stream)
    return array


def empty_like(other: DeviceArray | NDArray[Any], *, stream: Stream | None = None) -> DeviceArray:
    """Allocate a contiguous array with the shape and dtype of another.

    `stream` is by default the stream of `other`, as in `DeviceArray.copy`, or the legacy default stream if that is
    closed or `other` is on the host.
    """
    return allocate_array("empty_like", *_like("empty_like", other, stream))


def zeros_like(other: DeviceArray | NDArray[Any], *, stream: Stream | None = None) -> DeviceArray:
    """Allocate an array, like `empty_like`, and set all its bytes to zero."""
    return _zeros("zeros_like", *_like("zeros_like", other, stream))


def _like(call: str, other: Any, stream: Stream | None) -> tuple[tuple[int, ...], np.dtype[Any], Stream | None]:
    """Return the shape, the dtype and the stream of a new array like `other`."""
    arguments.instance(call, "other", other, (DeviceArray, np.ndarray), "a DeviceArray or a NumPy array")
    if stream is None and isinstance(other, DeviceArray) and not other.stream.closed:
        stream = other.stream
    return other.shape, arguments.dtype(call, "other", other.dtype), stream


def to_device(
    host: ArrayLike,
    dtype: DTypeLike | None = None,
    *surplus: Never,
    stream: Stream | None = None,
    pool: MemoryPool | None = None,
    **foreign: Never,
) -> DeviceArray:
    """Allocate an array on the current device, like `empty`, and copy a host array into it.

    The host first converts the elements to `dtype`, following NumPy's rules. The array is in C order, whatever the
    order of the source. Returns once the source may be changed again, unless both a `stream` and a pinned source are
    given.
    """
    if surplus or foreign:
        raise unexpected("to_device", surplus, foreign)
    if isinstance(host, DeviceArray):
        raise arguments.wrong_type("to_device", "host", "a host array", host, "use DeviceArray.copy for a device array")
    if not isinstance(host, np.ndarray) and hasattr(host, "tocsr"):
        remedy = "cudart_py.libraries.SparseMatrix.from_host copies a sparse one"
        raise arguments.wrong_type("to_device", "host", "a dense host array", host, remedy)
    source = arguments.host_array("to_device", "host", host)
    if dtype is not None:
        source = _converted(source, arguments.dtype("to_device", "dtype", dtype))
    array = allocate_array("to_device", source.shape, source.dtype, stream, pool)
    return array.copy_from(source, stream=stream)


def _converted(source: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        return source.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"to_device: argument 'host' has dtype {source.dtype}, which NumPy cannot convert to {dtype}"
        ) from error


@answers_keywords("empty_pitched")
def empty_pitched(shape: Shape, dtype: DTypeLike = np.float64) -> DeviceArray:
    """Allocate a 2-D array (rows, columns) with the pitch that the device prefers (cuMemAllocPitch).

    The pitch in bytes is `array.pitch`. For planes of rows, use (planes * rows, columns): row y of plane z
    is then row z * rows + y. Raises ValueError unless the shape has two dimensions.
    """
    sizes, kind, nbytes = arguments.layout("empty_pitched", shape, dtype)
    if len(sizes) != 2:
        remedy = "for planes of rows, use (planes * rows, columns)" if len(sizes) == 3 else ""
        raise arguments.unusable("empty_pitched", "shape", "have 2 dimensions", sizes, remedy)
    if 0 in sizes:
        return empty(sizes, kind)
    allocation = PitchedAllocation(sizes[1] * kind.itemsize, sizes[0], kind.itemsize)
    strides = (allocation.pitch, kind.itemsize)
    return DeviceArray(allocation.handle, sizes, kind, nbytes, allocation.device, legacy_default, strides, allocation)


def _zeros(call: str, shape: Shape, dtype: Any, stream: Stream | None, pool: MemoryPool | None = None) -> DeviceArray:
    array = allocate_array(call, shape, dtype, stream, pool)
    fill_bytes(array, 0)
    return array
