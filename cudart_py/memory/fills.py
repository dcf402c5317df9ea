"""Fills: setting every element of a device array to one value."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import arguments
from ..context.capture import captures, hold, hold_node
from ..context.current import activated, this_thread
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from ..streams.stream import Stream
from .transfers import transfer

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
    # NumPy stores integers of more than 64 bits as objects, hence the test for int. It would convert a number for
    # dtypes that are not numeric: to every field of a structure, to the digits of a string, to a count of days. These
    # dtypes accept only values of their own dtype.
    is_number = given.dtype.kind in "biufc" or isinstance(value, int)
    takes_numbers = dtype.type is not np.void and dtype.kind not in "SUmM"
    if given.dtype != dtype and not (is_number and takes_numbers):
        raise arguments.wrong_type(call, "value", f"a value of dtype {dtype}", value)
    unfit = arguments.wrong_value(call, "value", f"a value that fits {dtype}", value)
    if given.dtype.kind == "c" and dtype.kind in "biuf":
        raise unfit
    try:
        with np.errstate(over="raise", invalid="ignore"):
            element = given.astype(dtype)
    except (OverflowError, FloatingPointError):
        raise unfit from None
    if dtype.kind in "iub" and element != given:
        raise unfit
    return element


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
