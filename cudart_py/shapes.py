"""Shapes, strides and slices of arrays, without memory."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

import numpy as np

from .arguments import describe, integers, unusable, wrong_type, wrong_value

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


def forward(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return the byte offset and the strides of the view in which every axis with a negative stride is reversed."""
    offset = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if stride < 0 and size)
    return offset, tuple(map(abs, strides))


def index(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, key: Any
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Apply a basic index: return the byte offset, the shape and the strides of the view.

    Accepts ints, slices, None for new axes and at most one Ellipsis, with NumPy's meaning. Raises IndexError for an int
    outside the axis, for too many indices and for a second Ellipsis, ValueError for a slice with a step of 0, and
    TypeError for anything else.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can contain at most one Ellipsis")
    if Ellipsis not in [k for k in keys if k is Ellipsis]:
        keys.append(Ellipsis)
    given = sum(k is not Ellipsis and k is not None for k in keys)
    if given > len(shape):
        raise IndexError(f"{given} indices for an array of {len(shape)} dimensions")
    place = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[place : place + 1] = [slice(None)] * (len(shape) - given)

    offset = 0
    axes: list[tuple[int, int | None]] = []
    axis = 0
    for number, k in enumerate(keys):
        if k is None:
            axes.append((1, None))
            continue
        size, stride = shape[axis], strides[axis]
        name = f"index[{number}]"
        if isinstance(k, slice):
            start, length, step = _steps(name, k, size)
            offset += start * stride if length else 0
            # The stride of an axis with a single element has no meaning.
            axes.append((length, stride * step if length > 1 else abs(stride * step)))
        else:
            offset += _position(name, k, axis, size) * stride
        axis += 1
    return offset, tuple(size for size, _ in axes), _with_new_axes(axes, itemsize)


def _steps(name: str, k: slice, size: int) -> tuple[int, int, int]:
    """Return the first index, the number of indices and the step of a slice of an axis."""
    try:
        selected = range(size)[k]
    except TypeError:
        raise TypeError(f"DeviceArray: argument {name!r} must have bounds and a step that are ints or None") from None
    except ValueError:
        raise unusable("DeviceArray", name, "have a step other than 0", 0) from None
    return selected.start, len(selected), selected.step


def _position(name: str, k: Any, axis: int, size: int) -> int:
    try:
        if isinstance(k, bool | np.bool_):
            raise TypeError
        position = operator.index(k)
    except TypeError:
        remedy = "a field's name must be the only index: x['a'][2:5]" if isinstance(k, str) else ""
        raise wrong_type("DeviceArray", name, "an int, a slice or None", k, remedy) from None
    if not -size <= position < size:
        raise IndexError(f"the index, {describe(position)}, is outside axis {axis} of size {size}")
    return position % size


def _with_new_axes(axes: list[tuple[int, int | None]], itemsize: int) -> tuple[int, ...]:
    """Return the strides of axes, some of which are new and have none yet.

    NumPy gives new axes a stride of 0. Here, they get the size of what they contain, as in a contiguous array, because
    BLAS and other libraries accept no smaller distance between rows.
    """
    strides: list[int] = []
    within = itemsize
    for size, stride in reversed(axes):
        strides.append(within if stride is None else stride)
        within = abs(strides[-1]) * max(size, 1)
    return tuple(reversed(strides))


def permutation(call: str, axes: tuple[Any, ...], count: int) -> tuple[int, ...]:
    """Return the order of axes that a call's arguments `axes` give, as NumPy's `transpose` reads them."""
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
    if given is None or not axes:
        return tuple(reversed(range(count)))
    order = integers(call, "axes", given)
    if sorted(axis % count if -count <= axis < count else -1 for axis in order) != list(range(count)):
        raise wrong_value(call, "axes", f"a permutation of the {count} axes", order)
    return tuple(axis % count for axis in order)


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
