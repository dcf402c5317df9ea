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
    places = [place for place, k in enumerate(keys) if k is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can contain at most one Ellipsis")
    new = sum(k is None for k in keys)
    given = len(keys) - len(places) - new
    if given > len(shape):
        raise IndexError(f"{given} indices for an array of {len(shape)} dimensions")
    place = places[0] if places else len(keys)
    keys[place : place + 1] = [slice(None)] * (len(shape) - given)

    offset = axis = 0
    sizes: list[int] = []
    steps: list[int | None] = []
    for number, k in enumerate(keys):
        if k is None:
            sizes.append(1)
            steps.append(None)
            continue
        size, stride = shape[axis], strides[axis]
        if isinstance(k, slice):
            start, length, step = _selected(number, k, size)
            offset += start * stride if length else 0
            sizes.append(length)
            # The stride of an axis with a single element has no meaning.
            steps.append(stride * step if length > 1 else abs(stride * step))
        else:
            offset += _position(number, k, axis, size) * stride
        axis += 1
    if new:
        steps = _with_new_axes(sizes, steps, itemsize)
    return offset, tuple(sizes), tuple(steps)  # type: ignore[arg-type]  # no step is None any more


def _selected(number: int, k: slice, size: int) -> tuple[int, int, int]:
    """Return the first index, the number of indices and the step of a slice of an axis."""
    try:
        start, stop, step = k.indices(size)
    except TypeError:
        raise TypeError(
            f"DeviceArray: argument 'index[{number}]' must have bounds and a step that are ints or None"
        ) from None
    except ValueError:
        raise unusable("DeviceArray", f"index[{number}]", "have a step that is not 0") from None
    return start, len(range(start, stop, step)), step


def _position(number: int, k: Any, axis: int, size: int) -> int:
    try:
        if isinstance(k, bool | np.bool_):
            raise TypeError
        position = operator.index(k)
    except TypeError:
        remedy = "a field's name must be the only index: x['a'][2:5]" if isinstance(k, str) else ""
        if isinstance(k, list) or getattr(k, "ndim", False):
            remedy = "masks and lists of indices need a kernel, or x.to_host()"
        raise wrong_type("DeviceArray", f"index[{number}]", "an int, a slice or None", k, remedy) from None
    if not -size <= position < size:
        raise IndexError(
            f"DeviceArray: argument 'index[{number}]' is out of range for axis {axis} of size {size}: it is "
            f"{describe(position)}"
        )
    return position % size


def _with_new_axes(sizes: list[int], steps: list[int | None], itemsize: int) -> list[int | None]:
    """Return the strides of axes, some of which are new and have none yet.

    NumPy gives new axes a stride of 0. Here, the stride is that of a contiguous array, because BLAS and other libraries
    accept no smaller distance between rows.
    """
    strides: list[int] = []
    within = itemsize
    for size, stride in zip(reversed(sizes), reversed(steps), strict=True):
        strides.append(within if stride is None else stride)
        within = abs(strides[-1]) * max(size, 1)
    return [*reversed(strides)]


def permutation(call: str, axes: tuple[Any, ...], count: int) -> tuple[int, ...]:
    """Return the order of axes that a call's arguments `axes` give, as NumPy's `transpose` reads them."""
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
    if given is None or not axes:
        return tuple(reversed(range(count)))
    order = integers(call, "axes", given)
    if sorted(axis % count if -count <= axis < count else -1 for axis in order) != list(range(count)):
        raise wrong_value(call, "axes", f"a permutation of the {count} axes", order)
    return tuple(axis % count for axis in order)


def without_unknown(call: str, shape: Any, size: int) -> Any:
    """Return a shape of `size` elements in which a single -1 is replaced by the size that the other axes leave.

    Raises ValueError for more than one -1, and if no size fits. Other shapes are returned unchanged, whatever they are:
    the caller checks the result.
    """
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    unknown = [axis for axis, count in enumerate(sizes) if isinstance(count, int) and count == -1]
    others = [count for axis, count in enumerate(sizes) if axis not in unknown]
    if not unknown or not all(isinstance(count, int) and count >= 0 for count in others):
        return shape
    if len(unknown) > 1:
        raise unusable(call, "shape", "have at most one -1", sizes)
    known = math.prod(others)
    if not known or size % known:
        remedy = f"no size in place of -1 makes {size} elements from {known}"
        raise wrong_value(call, "shape", f"a shape of {size} elements", sizes, remedy)
    return tuple(size // known if axis in unknown else count for axis, count in enumerate(sizes))
