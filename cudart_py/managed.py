"""Managed memory: one address for the host and all devices; the driver moves the pages."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _driver, arguments, errors
from ._driver import api
from .device import Device, activated, current_device
from .host_memory import HostMemory, array_over, pinned_owner
from .stream import Stream, legacy_default, stream_handle

__all__ = ["ManagedMemory", "advise", "managed_empty", "prefetch"]

_ADVICE = (
    "set_read_mostly",
    "unset_read_mostly",
    "set_preferred_location",
    "unset_preferred_location",
    "set_accessed_by",
    "unset_accessed_by",
)


class ManagedMemory(HostMemory):
    """Managed memory (cuMemAllocManaged). Freed with the last array over it, or by `close()`."""

    __slots__ = ()

    def __init__(self, nbytes: int) -> None:
        from cuda.bindings import driver as enums

        self._value = None
        self._owned = True
        self._device = current_device()
        self.nbytes = nbytes
        self.mapped = True
        result = _driver.raw.cuMemAllocManaged(nbytes, int(enums.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL))
        if result[0]:
            if result[0].name == "CUDA_ERROR_OUT_OF_MEMORY":
                raise errors.OutOfMemoryError(
                    f"cuMemAllocManaged: {nbytes:,} bytes of managed memory are not to be had "
                    "(CUDA_ERROR_OUT_OF_MEMORY)",
                    status=result[0],
                    call="cuMemAllocManaged",
                    requested=nbytes,
                )
            raise errors.failure(result[0], "cuMemAllocManaged")
        self._value = int(result[1])

    def device_address(self, address: int) -> int:
        """Return the address itself: managed memory has one for host and devices."""
        self.handle  # noqa: B018  # raises when closed
        return address

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuMemFree(value)


def managed_empty(shape: Any, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Allocate managed memory as a NumPy array, uninitialised (cuMemAllocManaged).

    The host uses it as any array and kernels take it as an argument; synchronise before the host touches what a
    kernel wrote. The memory is freed with the last array over it. Raises OutOfMemoryError with the size.
    """
    sizes, kind = arguments.shape("managed_empty", "shape", shape), arguments.dtype("managed_empty", "dtype", dtype)
    if 0 in sizes:
        return np.empty(sizes, kind)
    return array_over(ManagedMemory(math.prod(sizes) * kind.itemsize), sizes, kind)


def advise(array: NDArray[Any], advice: str, location: Device | Literal["host"] | None = None) -> None:
    """Tell the driver how a managed array will be used (cuMemAdvise).

    `advice` is "set_read_mostly", "set_preferred_location", "set_accessed_by", or one of these with "unset_" in
    front. The last two take a `location`: a Device, by default the current one, or "host". The driver works in whole
    pages. Raises ValueError for an array that is not managed and for other advice.
    """
    from cuda.bindings import driver as enums

    arguments.choice("advise", "advice", advice, _ADVICE)
    kind = getattr(enums.CUmem_advise, f"CU_MEM_ADVISE_{advice.upper()}")
    address, nbytes = _managed_range("advise", array)
    where = _location("advise", location)
    with activated(current_device()):
        api.cuMemAdvise(address, nbytes, kind, where)


def prefetch(
    array: NDArray[Any], location: Device | Literal["host"] | None = None, *, stream: Stream | None = None
) -> None:
    """Move a managed array's pages in the order of a stream to where they are needed next (cuMemPrefetchAsync).

    `location` is a Device, by default the stream's, or "host". Returns at once. Raises ValueError for an array that
    is not managed.
    """
    handle = stream_handle("prefetch", stream)
    device = (legacy_default if stream is None else stream).device
    address, nbytes = _managed_range("prefetch", array)
    where = _location("prefetch", device if location is None else location)
    with activated(device):
        api.cuMemPrefetchAsync(address, nbytes, where, 0, handle)


def _managed_range(call: str, array: Any) -> tuple[int, int]:
    """Return the address and the bytes that an array spans; TypeError or ValueError if it is not managed."""
    arguments.instance(call, "array", array, np.ndarray, "a NumPy array of managed_empty")
    owner = pinned_owner(array)
    if not isinstance(owner, ManagedMemory):
        raise ValueError(f"{call}: argument 'array' is not managed memory: make it with managed_empty")
    if not array.size:
        raise ValueError(f"{call}: argument 'array' has no elements, and so no pages")
    owner.handle  # noqa: B018  # raises when closed
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high - low)


def _location(call: str, location: Any) -> Any:
    from cuda.bindings import driver as enums

    result = enums.CUmemLocation()
    if isinstance(location, str) and location == "host":
        result.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
        return result
    device = current_device() if location is None else location
    arguments.instance(call, "location", device, Device, "a Device or 'host'")
    result.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    result.id = device.ordinal
    return result
