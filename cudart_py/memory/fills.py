"""Fills and assignments: setting every element of a device array to one value, or to those of a smaller array."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import arguments, shapes
from ..context.capture import captures, hold, hold_node
from ..context.current import activated, this_thread
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from ..streams.stream import Stream
from .protocols import ArrayProtocols
from .transfers import raw_bytes, transfer, wrong_element_type

if TYPE_CHECKING:
    from .array import DeviceArray

# The driver's fills of one row, and of evenly spaced rows, keyed by the size of a word in bytes.
_ROW = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}
_ROWS = {1: "cuMemsetD2D8Async", 2: "cuMemsetD2D16Async", 4: "cuMemsetD2D32Async"}


def fill_bytes(dst: DeviceArray, value: int) -> None:
    """Set every byte of an array to a value, in the array's own stream."""
    _set(dst, value, 1, dst.stream)


def fill_words(dst: DeviceArray, value: Any, stream: Stream) -> bool:
    """Set every element to a value with driver fills; return False, without doing anything, if none can write it.

    Raises ValueError or TypeError, on behalf of `memset`, for a value that does not fit the dtype.
    """
    if type(value) is int:
        word, width = _pattern_of_int(value, dst.dtype)
    else:
        word, width = pattern_of(as_element("memset", value, dst.dtype))
    if word is None:
        return False
    _set(dst, word, width, stream)
    return True


def fills_at_once(element: np.ndarray[Any, Any]) -> bool:
    """Return whether a driver fill can write an element, because it is a repetition of 8, 16 or 32 bits."""
    return pattern_of(element)[0] is not None


def fill(dst: DeviceArray, element: np.ndarray[Any, Any], stream: Stream) -> None:
    """Set every element of `dst` to `element`, which has the same dtype.

    Unless a driver fill can write the element (`fills_at_once`), `dst` must be contiguous.
    """
    word, width = pattern_of(element)
    if word is not None:
        _set(dst, word, width, stream)
        return
    if not dst.size:
        return
    # No driver fill is that wide: write one element, then double the filled part with copies on the device.
    flat = dst.reshape(dst.size)
    flat[:1].copy_from(element.reshape(1), stream=stream)
    done = 1
    while done < flat.size:
        more = min(done, flat.size - done)
        transfer(flat[done : done + more]._region, flat[:more]._region, stream)
        done += more


def as_element(call: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a call's argument `value` as a 0-d array of a dtype; TypeError or ValueError if it does not fit."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):
        raise arguments.wrong_type(call, "value", "a single value", value) from None
    if given.ndim:
        raise arguments.wrong_type(call, "value", "a single value", value)
    return _converted(call, value, given, dtype)


def _converted(call: str, value: Any, given: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert the host array of a call's argument `value` to a dtype; TypeError or ValueError if it does not fit."""
    # NumPy stores integers of more than 64 bits as objects, hence the test for int. It would convert a number for
    # dtypes that are not numeric: to every field of a structure, to the digits of a string, to a count of days. These
    # dtypes accept only values of their own dtype.
    is_number = given.dtype.kind in "biufc" or isinstance(value, int)
    takes_numbers = dtype.type is not np.void and dtype.kind not in "SUmM"
    if given.dtype != dtype and not (is_number and takes_numbers):
        values = "a value" if not given.ndim else "values"
        raise arguments.wrong_type(call, "value", f"{values} of dtype {dtype}", value)
    one = not given.ndim
    unfit = arguments.wrong_value(call, "value", f"{'a value that fits' if one else 'values that fit'} {dtype}", value)
    if given.dtype.kind == "c" and dtype.kind in "biuf":
        raise unfit
    try:
        with np.errstate(all="ignore", over="raise"):
            elements = given.astype(dtype, copy=False)
    except (OverflowError, FloatingPointError):
        raise unfit from None
    if dtype.kind in "iub" and np.any(elements != given):
        raise unfit
    return elements


def assign(view: DeviceArray, value: Any) -> None:
    """Set the elements of a view to `value`, which is broadcast by NumPy's rules."""
    call = "DeviceArray.__setitem__"
    if isinstance(value, ArrayProtocols):
        _assign_array(view, arguments.opened(call, "value", value, type(view)))
        return
    if view.dtype.names and isinstance(value, tuple | list):
        value = _structures(value, view.dtype)
    host = arguments.host_array(call, "value", raw_bytes(call, "value", value, view.shape, view.dtype))
    source, first, repeated = _without_repetition(call, view, host)
    elements = _converted(call, value, source, view.dtype)
    if not host.ndim:
        view.fill(elements[(0,) * elements.ndim])
    elif view.nbytes:
        first.copy_from(elements)
        _spread(view, repeated)


def _assign_array(view: DeviceArray, value: DeviceArray) -> None:
    call = "DeviceArray.__setitem__"
    if value.dtype != view.dtype:
        raise wrong_element_type(call, "value", value, view.dtype)
    source, first, repeated = _without_repetition(call, view, value)
    if not view.nbytes:
        return
    same = first._region[:3] == source._region[:3]
    if not same and _overlap(view, source):
        source = source.copy(stream=view.stream)
    first.copy_from(source)
    _spread(view, repeated)


def _structures(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a tuple, or a list of tuples, as structures."""
    try:
        return np.array(value, dtype)
    except (TypeError, ValueError):
        rule = f"a tuple of {len(dtype.names or ())} values, or a list of such tuples, for {dtype}"
        raise arguments.wrong_value("DeviceArray.__setitem__", "value", rule, value) from None


def _without_repetition(call: str, view: DeviceArray, source: Any) -> tuple[Any, DeviceArray, list[int]]:
    """Return `source` with the dimensions of `view`, the part of `view` that it fills, and the axes of repetition.

    The part has one element along each axis along which the source is repeated.
    """
    sizes = source.shape
    while len(sizes) > view.ndim and sizes[0] == 1:  # NumPy ignores these axes in an assignment
        sizes = sizes[1:]
    missing = view.ndim - len(sizes)
    padded = (1,) * missing + sizes
    if missing < 0 or any(size not in (1, whole) for size, whole in zip(padded, view.shape, strict=True)):
        rule = f"have a shape that NumPy can broadcast to {view.shape}"
        raise arguments.unusable(call, "value", rule, f"the shape {source.shape}")
    repeated = [axis for axis, (size, whole) in enumerate(zip(padded, view.shape, strict=True)) if size != whole]
    first = view[tuple(slice(0, 1) if axis in repeated else slice(None) for axis in range(view.ndim))]
    leading = (0,) * (len(source.shape) - len(sizes)) + (None,) * missing + (...,)
    return source[leading], first, repeated


def _spread(view: DeviceArray, axes: list[int]) -> None:
    """Repeat the first elements of a view along axes, in copies on the device that double the part that is set."""
    for number, axis in enumerate(axes):
        later = axes[number + 1 :]

        def part(start: int, stop: int, axis: int = axis, later: list[int] = later) -> Any:
            index = [slice(None)] * view.ndim
            index[axis] = slice(start, stop)
            for other in later:
                index[other] = slice(0, 1)
            return view[tuple(index)]._region

        done = 1
        while done < view.shape[axis]:
            more = min(done, view.shape[axis] - done)
            transfer(part(done, done + more), part(0, more), view.stream)
            done += more


def _overlap(a: DeviceArray, b: DeviceArray) -> bool:
    """Return whether the extents of two arrays overlap; their elements may nevertheless be distinct."""
    ends = []
    for array in (a._forward, b._forward):
        region = array._region
        ends.append((region.address, region.address + shapes.span(region.shape, region.strides, array.itemsize)))
    (a_start, a_end), (b_start, b_end) = ends
    return a_start < b_end and b_start < a_end


def pattern_of(element: np.ndarray[Any, Any]) -> tuple[int | None, int]:
    """Return the word whose repetition is the element, or None if there is none, and the width of the word in bytes."""
    raw, itemsize = element.tobytes(), element.itemsize
    width = min(itemsize, 4)
    if itemsize == 3 or (itemsize > 4 and raw != raw[:4] * (len(raw) // 4)):
        same = raw == raw[:1] * len(raw)
        return (raw[0], 1) if same else (None, width)
    return int.from_bytes(raw[:width], "little"), width


@functools.lru_cache(maxsize=128)
def _pattern_of_int(value: int, dtype: np.dtype[Any]) -> tuple[int | None, int]:
    """Return the pattern of an int in a dtype, cached: ints recur, and unlike floats, equal ints have equal bits."""
    return pattern_of(as_element("memset", value, dtype))


def _set(dst: DeviceArray, word: int, width: int, stream: Stream) -> None:
    """Set every word of an open array."""
    pointer, nbytes, native = dst._address, dst.nbytes, stream._queue
    # A default stream is the default stream of the array's device.
    device = dst.device if stream._device is None else stream._device
    if device is not dst.device and not device.peer_enabled(dst.device):
        raise ValueError(
            f"the array is on device {dst.device.ordinal}, but the stream belongs to device {device.ordinal}, which "
            f"has no access: call Device({device.ordinal}).enable_peer(Device({dst.device.ordinal})), or use a stream "
            "of the array's device"
        )
    # Fast path for the most common fill: a contiguous array, an open stream, the device current, and no capture.
    if dst.is_contiguous and nbytes and native is not None and this_thread.device is device and not captures:
        (status,) = getattr(raw, _ROW[width])(pointer, word, nbytes // width, native)
        if status:
            raise failure(status, _ROW[width])
        return
    if not nbytes:
        return
    dst = dst._forward  # a fill sets the same elements in any order, and the driver's fills only go forward
    pointer = dst._address
    columns, shape, strides = row_of(dst, width)
    fills = 1
    with activated(device):
        if not shape:
            getattr(api, _ROW[width])(pointer, word, columns, stream.native)
        else:
            height, pitch = shape.pop(), strides.pop()
            fills = math.prod(shape)
            for position in itertools.product(*map(range, shape)):
                offset = sum(place * step for place, step in zip(position, strides, strict=True))
                getattr(api, _ROWS[width])(pointer + offset, pitch, word, columns, height, stream.native)
    if captures:
        (hold_node if fills == 1 else hold)(stream.handle, "a fill", (dst,))


def row_of(dst: DeviceArray, width: int) -> tuple[int, list[int], list[int]]:
    """Return the length of a contiguous row in words of `width` bytes, and the shape and strides of these rows."""
    # An element may consist of several words.
    columns, gap = dst.itemsize // width, dst.itemsize
    shape, strides = list(dst.shape), list(dst.strides)
    while shape and (shape[-1] == 1 or strides[-1] == gap):
        columns *= shape[-1]
        gap *= shape.pop()
        strides.pop()
    return columns, shape, strides
