"""Surfaces, through which kernels write CUDA arrays, and read them without filtering."""

from __future__ import annotations

from typing import Any

from ..base import arguments
from ..context.capture import relaxed
from ..context.current import activated
from ..driver.calls import api
from .array_object import ArrayObject
from .cuda_array import CudaArray


class Surface(ArrayObject):
    """A surface object over a CUDA array that was created with `surface=True` (cuSurfObjectCreate).

    Kernels take it as a `cudaSurfaceObject_t`, which is an unsigned long long in C++. They read and write elements of
    type T with `surf1Dread<T>` and `surf1Dwrite<T>`, and with similar functions for two and three dimensions and for
    layers. In these functions, x is in bytes and must be a multiple of the size of T; y, z and the layer are indices.
    An access outside the array ends the launch with an error, unless the kernel specifies another boundary mode: with
    `cudaBoundaryModeClamp`, the nearest element is accessed; with `cudaBoundaryModeZero`, reads return zeros and writes
    are ignored.

    `array` is kept alive. Kernels that run later see a kernel's writes, including through textures of the array.
    Destroying a surface, with `close` or when the last reference is dropped, waits for all work on the device, because
    kernels may still use the surface.

    Raises TypeError for anything that is not a CudaArray, and ValueError for a CudaArray made without `surface=True`.
    """

    __slots__ = ()

    _array: CudaArray

    def __init__(self, array: CudaArray) -> None:
        self._value = None
        self._owned = True
        self._array = arguments.opened("Surface", "array", array, CudaArray)
        if not array.surface:
            raise ValueError(
                "Surface: argument 'array' must be a CudaArray made with surface=True, not one made without it"
            )
        with activated(array.device), relaxed():  # no captured work depends on it
            self._value = int(api.cuSurfObjectCreate(array._resource))

    @property
    def array(self) -> CudaArray:
        """The array that the surface reads and writes."""
        return self._array

    def _destroy(self, value: Any) -> None:
        api.cuSurfObjectDestroy(value)
