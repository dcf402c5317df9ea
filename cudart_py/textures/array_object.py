"""The common base of textures and surfaces: objects that live as long as their array."""

from __future__ import annotations

from ..context.device import Device
from ..context.lifetimes import WaitingHandle
from ..memory.array import DeviceArray
from .cuda_array import CudaArray


class ArrayObject(WaitingHandle):
    """An object through which kernels access an array: a texture or a surface. It keeps the array alive.

    A subclass sets `_array` and implements `_destroy`.
    """

    __slots__ = ("_array",)

    _array: CudaArray | DeviceArray

    @property
    def device(self) -> Device:
        """The device on which the object can be used."""
        return self._array.device

    @property
    def closed(self) -> bool:
        """Whether the object or its array has been closed."""
        return self._value is None or self._array.closed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'closed' if self.closed else f'{self._array.shape} {self._array.dtype}'}>"
