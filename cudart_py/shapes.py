"""Shapes, strides and slices of arrays, without memory."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

import numpy as np

from .arguments import describe, unusable, wrong_type

# A shape as calls accept it: one size, or a tuple or list of sizes, as Python or NumPy integers.
Shape = SupportsIndex | tuple[SupportsIndex, ...] | list[int]


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the byte strides of a C-contiguous array."""
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether the elements are contiguous in C order."""
    if 0 in shape:
        return True
    step = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def span(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Return the bytes from the start of the first element to the end of the last; strides must not be negative."""
    if 0 in shape:
        return 0
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + itemsize


def index(shape: tuple[int, ...], strides: tuple[int, ...], key: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Apply a basic index: return the byte offset, the shape and the strides of the view.

    Accepts ints, slices with positive steps and at most one Ellipsis, with NumPy's meaning. Raises IndexError for an
    int outside the axis, for too many indices and for a second Ellipsis, ValueError for a step that is not positive,
    and TypeError for anything else.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can contain at most one Ellipsis")
    if Ellipsis not in [k for k in keys if k is Ellipsis]:
        keys.append(Ellipsis)
    given = len(keys) - 1
    if given > len(shape):
        raise IndexError(f"{given} indices for an array of {len(shape)} dimensions")
    place = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[place : place + 1] = [slice(None)] * (len(shape) - given)

    offset = 0
    new_shape: list[int] = []
    new_strides: list[int] = []
    for axis, (k, size, stride) in enumerate(zip(keys, shape, strides, strict=True)):
        if isinstance(k, slice):
            start, stop, step = k.indices(size)
            if step < 1:
                raise unusable(
                    "DeviceArray", f"index[{axis}]", "have a positive step", step, "device views go forward only"
                )
            length = max(0, math.ceil((stop - start) / step))
            offset += start * stride if length else 0
            new_shape.append(length)
            new_strides.append(stride * step)
            continue
        try:
            if isinstance(k, bool | np.bool_):
                raise TypeError
            position = operator.index(k)
        except TypeError:
            remedy = "take a field of structures on the host" if isinstance(k, str) else ""
            raise wrong_type("DeviceArray", f"index[{axis}]", "an int or a slice", k, remedy) from None
        if not -size <= position < size:
            raise IndexError(f"the index, {describe(position)}, is outside axis {axis} of size {size}")
        offset += position % size * stride
    return offset, tuple(new_shape), tuple(new_strides)


def without_unknown(shape: Any, size: int) -> Any:
    """Return a shape of `size` elements in which a single -1 is replaced by the size that the other axes leave.

    A shape without exactly one -1, or one that cannot have `size` elements, is returned unchanged: the caller checks
    the result.
    """
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    unknown = [axis for axis, count in enumerate(sizes) if isinstance(count, int) and count == -1]
    others = [count for axis, count in enumerate(sizes) if axis not in unknown]
    if len(unknown) != 1 or not all(isinstance(count, int) and count > 0 for count in others):
        return shape
    count, rest = divmod(size, math.prod(others))
    return shape if rest else tuple(count if axis in unknown else known for axis, known in enumerate(sizes))
