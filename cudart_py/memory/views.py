"""Views of device arrays: indexing, fields, other shapes, dtypes and orders of axes; and assignment to views."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..base import arguments, shapes
from .fills import assign
from .protocols import ArrayProtocols


class ArrayViews(ArrayProtocols):
    """The part of a device array that makes views of it. Their memory is that of the array."""

    __slots__ = ()

    def _view(self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None, offset: int) -> Self:
        """Return a view that begins `offset` bytes after this array's first element."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Self:
        """Return a view: of the elements that an index selects, or of a field of every structure.

        An index is an int, a slice, None for a new axis or an Ellipsis, or a tuple of these, with NumPy's meaning.
        """
        if isinstance(key, str):
            return self._field(key)
        offset, shape, strides = shapes.index(self.shape, self.strides, self.itemsize, key)
        return self._view(shape, self.dtype, strides, offset)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Copy into the elements that an index selects, or into a field, in the array's own stream.

        `value` is a DeviceArray of the same dtype, or a host value: a number, an array, or an object that NumPy
        converts to one. It is repeated along axes, following NumPy's rules for broadcasting. Host values are converted
        to the array's dtype. Returns once a host value may be changed again. A DeviceArray that overlaps the
        destination is copied first. Raises ValueError for a host value that does not fit the dtype, and for shapes
        that cannot be broadcast.
        """
        view: Any = self[key]  # a DeviceArray, whose module imports this one
        assign(view, value)

    def _field(self, name: str) -> Self:
        """Return a view of a field of the structures; a field that is itself an array adds its axes."""
        fields = self.dtype.fields
        if fields is None:
            remedy = f"{self.dtype} has no fields"
            raise arguments.wrong_type("DeviceArray", "index", "an int, a slice or None", name, remedy)
        if name not in fields:
            known = ", ".join(map(repr, fields))
            raise arguments.wrong_value("DeviceArray", "index", f"the name of a field: {known}", name)
        kind, offset = fields[name][:2]
        inner, shape = kind.subdtype or (kind, ())
        strides = (*self.strides, *shapes.contiguous_strides(shape, inner.itemsize))
        return self._view((*self.shape, *shape), inner, strides, offset)

    def reshape(self, *shape: shapes.Shape) -> Self:
        """Return a view with another shape and the same number of elements; the array must be contiguous.

        One of the sizes may be -1; it is calculated from the others.
        """
        given = shape[0] if len(shape) == 1 else shape
        call = "DeviceArray.reshape"
        sizes = arguments.shape(call, "shape", shapes.without_unknown(call, given, self.size))
        if math.prod(sizes) != self.size:
            raise arguments.wrong_value(call, "shape", f"a shape of {self.size} elements, like {self.shape}", sizes)
        if not self.is_contiguous:
            raise ValueError(f"{call}: only a contiguous array can be reshaped; use x.copy().reshape(...)")
        return self._view(sizes, self.dtype, None, 0)

    @property
    def T(self) -> Self:  # noqa: N802  # NumPy's name
        """A view with the axes in reverse order; the elements are not moved in memory."""
        return self._view(self.shape[::-1], self.dtype, self.strides[::-1], 0)

    def transpose(self, *axes: Any) -> Self:
        """Return a view with the axes in another order, given as ints or as one tuple; without them, in reverse order.

        The elements are not moved in memory. Raises ValueError unless `axes` is a permutation of the axes.
        """
        order = shapes.permutation("DeviceArray.transpose", axes, self.ndim)
        shape, strides = tuple(self.shape[axis] for axis in order), tuple(self.strides[axis] for axis in order)
        return self._view(shape, self.dtype, strides, 0)

    @property
    def _forward(self) -> Self:
        """The array itself, or a view of it in which every axis with a negative stride is reversed."""
        if all(step >= 0 for step in self.strides):
            return self
        offset, strides = shapes.forward(self.shape, self.strides)
        return self._view(self.shape, self.dtype, strides, offset)

    @property
    def _reversals(self) -> tuple[slice, ...]:
        """The index that turns a host copy of `_forward` into a copy of this array, and the reverse."""
        return tuple(slice(None, None, -1 if step < 0 else 1) for step in self.strides)

    def view(self, dtype: DTypeLike) -> Self:
        """Return a view of the same bytes with another dtype.

        If the element size changes, the last axis must be contiguous, and its size in bytes must be a multiple of the
        new size.
        """
        kind = arguments.dtype("DeviceArray.view", "dtype", dtype)
        if kind.itemsize == self.itemsize:
            return self._view(self.shape, kind, self.strides, 0)
        if not self.shape or (self.shape[-1] != 1 and self.strides[-1] != self.itemsize):
            rule = f"have {self.itemsize} bytes, like {self.dtype}, since the last axis is not contiguous"
            raise arguments.unusable("DeviceArray.view", "dtype", rule, kind.itemsize)
        width = self.shape[-1] * self.itemsize
        if width % kind.itemsize:
            rule = f"have elements whose size divides the {width} bytes of a row"
            raise arguments.unusable("DeviceArray.view", "dtype", rule, f"elements of {kind.itemsize} bytes")
        shape = (*self.shape[:-1], width // kind.itemsize)
        return self._view(shape, kind, (*self.strides[:-1], kind.itemsize), 0)
