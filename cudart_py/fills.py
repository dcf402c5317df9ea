"""Fills: setting every element of a device array to one value."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from . import arguments, errors
from ._driver import api, raw
from .array import DeviceArray
from .capture import captures, hold
from .copies import memcpy
from .device import _thread as this_thread
from .device import activated
from .stream import Stream, legacy_default, stream_handle

__all__ = ["as_element", "fill", "fill_bytes", "memset"]


def memset(dst: DeviceArray, value: Any, *, stream: Stream | None = None) -> None:
    """Set every element to `value`, by 8, 16 or 32 bits as the dtype has (cuMemsetD8Async and its kin).

    2-D arrays with padded rows and slices of them are filled in one call (cuMemsetD2D8Async and its
    kin). Wider dtypes take only values whose 32-bit words are all equal, such as 0; for others use
    `full`. Without `stream` the fill goes to the legacy default stream, and like cudaMemset returns
    before it is done. Raises ValueError if the value does not fit the dtype, TypeError for other types.
    """
    # The commonest fill in the fewest steps: of a whole array, with an int as often before, in a stream of its device
    # or with that current, outside of captures. What is different lacks an attribute or is not in the table, or is
    # seen not to be so.
    where = legacy_default if stream is None else stream
    try:
        word, width = _int_patterns[dst.dtype][value]
        native, home = where._queue, dst.home
        nbytes = dst._flat
        if (
            nbytes
            and native is not None
            and type(value) is int
            and (where._device is home or this_thread.device is home)
            and not captures
        ):
            if width == 4:
                (status,) = raw.cuMemsetD32Async(dst._native, word, nbytes // 4, native)
            elif width == 2:
                (status,) = raw.cuMemsetD16Async(dst._native, word, nbytes // 2, native)
            else:
                (status,) = raw.cuMemsetD8Async(dst._native, word, nbytes, native)
            if not status:
                return
            # With no device current yet a driver may refuse.
            if this_thread.device is not None:
                raise errors.failure(status, f"cuMemsetD{8 * width}Async")
    except (AttributeError, KeyError, TypeError):
        pass
    _set_carefully(dst, value, stream)


def _set_carefully(dst: DeviceArray, value: Any, stream: Stream | None) -> None:
    arguments.opened("memset", "dst", dst, DeviceArray)
    stream_handle("memset", stream)
    word, width = _pattern(as_element("memset", value, dst.dtype))
    if word is None:
        raise ValueError(
            f"memset: argument 'value' is written by 8, 16 or 32 bits at a time, and {value!r} as {dst.dtype} does not "
            "repeat after 32; use cudart_py.full or copy_from"
        )
    _set(dst, word, width, stream)
    (legacy_default if stream is None else stream).native  # noqa: B018  # made at the first time, and there the next
    # Two floats may be equal and not the same, as 0.0 and -0.0; so only ints are kept.
    if type(value) is int:
        if len(_int_patterns) > _KEPT_PATTERNS or len(_int_patterns[dst.dtype]) > _KEPT_PATTERNS:
            _int_patterns.clear()
        _int_patterns[dst.dtype][value] = word, width


def fill_bytes(dst: DeviceArray, value: int) -> None:
    """Set every byte of the array, in its own stream."""
    native = dst.stream._queue
    if native is None or captures or not dst._flat or this_thread.device is not dst.home:
        _set(dst, value, 1, dst.stream)
        return
    (status,) = raw.cuMemsetD8Async(dst._native, value, dst._flat, native)
    if status:
        raise errors.failure(status, "cuMemsetD8Async")


def fill(dst: DeviceArray, element: np.ndarray[Any, Any]) -> None:
    """Set every element of a contiguous array to one of its dtype, in the array's own stream."""
    word, width = _pattern(element)
    if word is not None:
        _set(dst, word, width, dst.stream)
        return
    # No fill is that wide: start from one element and double it by copies within the device.
    flat = dst.reshape(dst.size)
    flat[:1].copy_from(element.reshape(1))
    done = 1
    while done < flat.size:
        more = min(done, flat.size - done)
        memcpy(flat[done : done + more], flat[:more], stream=dst.stream)
        done += more


def as_element(call: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the argument `value` of a call as a 0-d array of a dtype; ValueError if it does not fit."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):
        raise arguments.wrong_type(call, "value", "a single value", value) from None
    if given.ndim:
        raise arguments.wrong_type(call, "value", "a single value", value)
    # NumPy has integers above 64 bits as objects. It would put a number into every field of a structure, spell it for a
    # text and count days with it.
    is_number = given.dtype.kind in "biufc" or isinstance(value, int)
    takes_numbers = dtype.type is not np.void and dtype.kind not in "SUmM"
    if given.dtype != dtype and not (is_number and takes_numbers):
        raise arguments.wrong_type(call, "value", f"a value of {dtype}", value)
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


def _pattern(element: np.ndarray[Any, Any]) -> tuple[int | None, int]:
    """Return the word (None: there is none) whose repetition is the element, and its width in bytes."""
    raw, itemsize = element.tobytes(), element.itemsize
    width = min(itemsize, 4)
    if itemsize == 3 or (itemsize > 4 and raw != raw[:4] * (len(raw) // 4)):
        same = raw == raw[:1] * len(raw)
        return (raw[0], 1) if same else (None, width)
    return int.from_bytes(raw[:width], "little"), width


# The words and widths of ints that were asked for, by dtype; to look them up takes half as long as by both together.
_int_patterns: defaultdict[np.dtype[Any], dict[int, tuple[int, int]]] = defaultdict(dict)
_KEPT_PATTERNS = 100


def _set(dst: DeviceArray, word: int, width: int, stream: Stream | None) -> None:
    handle = stream_handle("memset", stream)
    pointer = dst.pointer
    if not dst.size:
        return
    if captures:
        hold(handle, "a fill", (dst,))
    # One element may be several words.
    columns, gap = dst.itemsize // width, dst.itemsize
    shape, strides = list(dst.shape), list(dst.strides)
    while shape and (shape[-1] == 1 or strides[-1] == gap):
        columns *= shape[-1]
        gap *= shape.pop()
        strides.pop()
    with activated(dst.device):
        _set_rows(pointer, shape, strides, (word, width, columns), handle)


def _set_rows(pointer: int, shape: list[int], strides: list[int], row: tuple[int, int, int], stream: int) -> None:
    word, width, columns = row
    bits = 8 * width
    if not shape:
        getattr(api, f"cuMemsetD{bits}Async")(pointer, word, columns, stream)
    elif len(shape) == 1:
        getattr(api, f"cuMemsetD2D{bits}Async")(pointer, strides[0], word, columns, shape[0], stream)
    else:
        for position in range(shape[0]):
            _set_rows(pointer + position * strides[0], shape[1:], strides[1:], row, stream)
