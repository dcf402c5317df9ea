"""Fills: setting every element of a device array to one value."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import errors
from ._driver import api, raw
from .array import DeviceArray
from .capture import captures, hold
from .copies import memcpy
from .device import activated, is_current
from .stream import Stream, legacy_default, stream_handle

__all__ = ["fill", "fill_bytes", "memset"]

_NAMES = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}


def memset(dst: DeviceArray, value: Any, *, stream: Stream | None = None) -> None:
    """Set every element to `value`, by 8, 16 or 32 bits as the dtype has (cuMemsetD8Async and its kin).

    2-D arrays with padded rows and slices of them are filled in one call (cuMemsetD2D8Async and its
    kin). Wider dtypes take only values whose 32-bit words are all equal, such as 0; for others use
    `full`. Without `stream` the fill goes to the legacy default stream, and like cudaMemset returns
    before it is done. Raises ValueError if the value does not fit the dtype, TypeError for other types.
    """
    if not isinstance(dst, DeviceArray):
        raise TypeError(f"dst is a DeviceArray, not {type(dst).__name__}")
    # Two floats may be equal and not the same, as 0.0 and -0.0; ints are kept.
    word, width = _int_pattern(dst.dtype, value) if value.__class__ is int else _pattern(dst.dtype, value)
    if word is None:
        raise ValueError(
            f"memset writes 8, 16 or 32 bits at a time, and {value!r} as {dst.dtype} does not repeat after 32; "
            "use cudart_py.full or copy_from"
        )
    _set(dst, word, width, stream)


def _set_plain(dst: DeviceArray, word: int, width: int, stream: Stream | None) -> bool:
    """Make the commonest fill in the fewest steps; return False, with nothing done, for all that is different."""
    where = legacy_default if stream is None else stream
    if not isinstance(where, Stream) or where._value is None or captures:
        return False
    if not dst._flat or dst._allocation._value is None or not is_current(dst._allocation.device):
        return False
    name = _NAMES[width]
    native = where._native if where._native is not None else where.native
    (status,) = getattr(raw, name)(dst._pointer, word, dst._flat // width, native)
    if status:
        raise errors.failure(status, name)
    return True


def fill_bytes(dst: DeviceArray, value: int) -> None:
    """Set every byte of the array, in its own stream."""
    _set(dst, value, 1, dst.stream)


def fill(dst: DeviceArray, value: Any) -> None:
    """Set every element of a contiguous array of any dtype, in its own stream."""
    word, width = _pattern(dst.dtype, value)
    if word is not None:
        _set(dst, word, width, dst.stream)
        return
    # No fill is that wide: start from one element and double it by copies within the device.
    flat = dst.reshape(dst.size)
    flat[:1].copy_from(_element(dst.dtype, value).reshape(1))
    done = 1
    while done < flat.size:
        more = min(done, flat.size - done)
        memcpy(flat[done : done + more], flat[:more], stream=dst.stream)
        done += more


def _element(dtype: np.dtype[Any], value: Any) -> np.ndarray[Any, Any]:
    """Return the value as a 0-d array of the dtype; ValueError if it does not fit, TypeError if it cannot."""
    try:
        with np.errstate(over="raise"):
            given = np.asarray(value)
            element = given.astype(dtype)
    except (OverflowError, FloatingPointError) as error:
        raise ValueError(f"{value!r} does not fit {dtype}") from error
    if given.ndim:
        raise TypeError(f"the value is a single one, not an array of shape {given.shape}")
    if given.dtype.kind == "O" and dtype.kind in "iu" and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
        raise ValueError(f"{value!r} does not fit {dtype}")
    if dtype.kind in "iub" and given.dtype.kind in "iufbO" and element != given:
        raise ValueError(f"{value!r} does not fit {dtype}")
    if given.dtype.kind not in "iufbcO" and given.dtype != dtype:
        raise TypeError(f"{value!r} of type {type(value).__name__} is no value of {dtype}")
    return element


def _pattern(dtype: np.dtype[Any], value: Any) -> tuple[int | None, int]:
    """Return the word (None: there is none) whose repetition is the value, and its width in bytes."""
    raw = _element(dtype, value).tobytes()
    width = min(dtype.itemsize, 4)
    if dtype.itemsize == 3 or (dtype.itemsize > 4 and raw != raw[:4] * (len(raw) // 4)):
        same = raw == raw[:1] * len(raw)
        return (raw[0], 1) if same else (None, width)
    return int.from_bytes(raw[:width], "little"), width


_int_pattern = functools.lru_cache(256)(_pattern)


def _set(dst: DeviceArray, word: int, width: int, stream: Stream | None) -> None:
    if _set_plain(dst, word, width, stream):
        return
    handle = stream_handle(stream)
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
