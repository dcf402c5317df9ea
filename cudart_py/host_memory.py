"""Host memory that the device can reach: page-locked, and mapped into its address space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _driver, _shapes, errors
from ._driver import api
from ._lifetime import Handle
from .device import Device, activated, current_device
from .pointer import Pointer

__all__ = ["PinnedMemory", "device_pointer", "is_pinned", "pinned_empty", "pinned_owner"]


class PinnedMemory(Handle):
    """Page-locked host memory (cuMemHostAlloc); the base object of the arrays over it.

    Several arrays may share it; it is freed when the last one is gone, or by `close()`, after which
    none of them may be touched.
    """

    __slots__ = ("_device", "mapped", "nbytes", "write_combined")

    def __init__(self, nbytes: int, *, mapped: bool = False, write_combined: bool = False) -> None:
        from cuda.bindings import driver as enums

        self._value = None
        self._owned = True
        self._device: Device = current_device()
        self.nbytes = nbytes
        self.mapped = mapped
        self.write_combined = write_combined
        flags = enums.CU_MEMHOSTALLOC_PORTABLE
        flags |= enums.CU_MEMHOSTALLOC_DEVICEMAP if mapped else 0
        flags |= enums.CU_MEMHOSTALLOC_WRITECOMBINED if write_combined else 0
        result = _driver.raw.cuMemHostAlloc(nbytes, flags)
        if result[0]:
            if result[0].name == "CUDA_ERROR_OUT_OF_MEMORY":
                raise errors.OutOfMemoryError(
                    f"cuMemHostAlloc: {nbytes:,} bytes of page-locked host memory are not to be had "
                    "(CUDA_ERROR_OUT_OF_MEMORY)",
                    status=result[0],
                    call="cuMemHostAlloc",
                    requested=nbytes,
                )
            raise errors.failure(result[0], "cuMemHostAlloc")
        self._value = int(result[1])

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (self.nbytes,), "typestr": "|u1", "data": (self.handle, False)}

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuMemFreeHost(value)


def pinned_empty(
    shape: Any, dtype: DTypeLike = np.float64, *, mapped: bool = False, write_combined: bool = False
) -> NDArray[Any]:
    """Allocate page-locked host memory as a NumPy array, uninitialised (cuMemHostAlloc).

    Copies from and to it run at full speed and beside the host's work. `mapped`: kernels may read and
    write it, as an argument or by `device_pointer`. `write_combined`: faster for the device to read,
    very slow for the host to read. The memory is freed with the last array over it.
    """
    sizes, kind = _shapes.as_shape(shape), _shapes.as_dtype(dtype)
    if 0 in sizes:
        return np.empty(sizes, kind)
    memory = PinnedMemory(math.prod(sizes) * kind.itemsize, mapped=mapped, write_combined=write_combined)
    return np.asarray(memory).view(kind).reshape(sizes)


def pinned_owner(array: NDArray[Any]) -> PinnedMemory | None:
    """Return the page-locked memory that an array or a view of one lies in, or None."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, PinnedMemory) else None


def is_pinned(array: NDArray[Any]) -> bool:
    """Tell whether an array lies in page-locked memory of `pinned_empty`."""
    return pinned_owner(array) is not None


def device_pointer(array: NDArray[Any]) -> Pointer:
    """Return the address at which kernels find a mapped array (cuMemHostGetDevicePointer).

    Raises TypeError for what is no NumPy array and ValueError for one that is not mapped.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"device_pointer takes a NumPy array of pinned_empty, not {type(array).__name__}")
    owner = pinned_owner(array)
    if owner is None or not owner.mapped:
        what = "pageable" if owner is None else "pinned but not mapped"
        raise ValueError(f"the array is {what}: make it with pinned_empty(..., mapped=True)")
    start = int(api.cuMemHostGetDevicePointer(owner.handle, 0))
    return Pointer(start + array.ctypes.data - owner.handle, owner)
