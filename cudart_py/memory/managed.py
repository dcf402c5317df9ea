"""Managed memory, which has one address for the host and all devices; the driver migrates the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..base import arguments
from ..base.shapes import Shape
from ..context.current import activated
from ..context.device import Device, current_device
from ..driver import calls, enums
from ..driver.calls import api
from ..streams.stream import Stream, stream_of
from .allocation import MOST_BYTES, allocation_error, too_many_bytes
from .host_memory import HostMemory, PooledMemory, array_over, pinned_owner
from .pools import MemoryPool, pool_of_kind

Location = Device | Literal["host"]

Advice = Literal[
    "set_read_mostly",
    "unset_read_mostly",
    "set_preferred_location",
    "unset_preferred_location",
    "set_accessed_by",
    "unset_accessed_by",
]


# The driver reports a location as the ordinal of a device or as one of these numbers.
_HOST, _NOWHERE = -1, -2


@dataclass(frozen=True)
class ManagedAttributes:
    """The advice that applies to all pages of a managed array. A location is a Device or "host".

    `read_mostly` and `preferred_location` are as set by `advise`, and `accessed_by` lists the locations for which the
    memory is mapped. `last_prefetch_location` is the destination of the last completed `prefetch`; the pages may have
    moved since. A location is None if there is none, or if it differs between pages.
    """

    read_mostly: bool
    preferred_location: Location | None
    accessed_by: tuple[Location, ...]
    last_prefetch_location: Location | None


class ManagedMemory(HostMemory):
    """Managed memory (cuMemAllocManaged). It is freed with the last array over it, or by `close()`."""

    __slots__ = ()

    def __init__(self, nbytes: int) -> None:
        self._value = None
        self._owned = True
        self._device = current_device()
        self.nbytes = nbytes
        self.mapped = True
        if nbytes > MOST_BYTES:
            raise too_many_bytes("cuMemAllocManaged", nbytes, "managed memory")
        status, value = calls.raw.cuMemAllocManaged(nbytes, int(enums.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL))
        if status:
            raise allocation_error(status, "cuMemAllocManaged", nbytes, "managed memory")
        self._value = int(value)

    def _device_address(self, address: int) -> int:
        """Return the address itself: managed memory has the same address on the host and on devices."""
        self.handle  # noqa: B018  # raises when closed
        return address

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuMemFree(value)


class PooledManagedMemory(PooledMemory, ManagedMemory):
    """Managed memory from a pool (cuMemAllocFromPoolAsync)."""

    __slots__ = ()


def managed_empty(shape: Shape, dtype: DTypeLike = np.float64, *, pool: MemoryPool | None = None) -> NDArray[Any]:
    """Allocate managed memory as an uninitialised NumPy array (cuMemAllocManaged).

    The host uses the array like any other, and kernels accept it as an argument. Synchronise before the host accesses
    the results of a kernel. The memory is freed once no array uses it any longer. With `pool`, a
    `MemoryPool(kind="managed")`, the pool keeps freed memory for later arrays (cuMemAllocFromPoolAsync).

    Raises OutOfMemoryError, with the size, if there is not enough memory, and ValueError for a pool of another kind of
    memory.
    """
    call = "managed_empty"
    sizes, kind, nbytes = arguments.layout(call, shape, dtype)
    if pool is not None:
        pool_of_kind(call, pool, "managed")
    if 0 in sizes:
        return np.empty(sizes, kind)
    return array_over(ManagedMemory(nbytes) if pool is None else PooledManagedMemory(nbytes, pool), sizes, kind)


def advise(array: NDArray[Any], advice: Advice, location: Location | None = None) -> None:
    """Advise the driver on how a managed array will be used (cuMemAdvise).

    `advice` is "set_read_mostly", "set_preferred_location" or "set_accessed_by", or one of these with "unset_" instead
    of "set_". `location` is the preferred or accessing location: a Device, by default the current one, or "host". The
    advice applies to whole pages. Raises ValueError for an array that is not managed or for any other advice.
    """
    arguments.choice("advise", "advice", advice, get_args(Advice))
    kind = getattr(enums.CUmem_advise, f"CU_MEM_ADVISE_{advice.upper()}")
    address, nbytes = managed_range("advise", array)
    where = location_of("advise", location)
    with activated(current_device()):
        api.cuMemAdvise(address, nbytes, kind, where)


def prefetch(array: NDArray[Any], location: Location | None = None, *, stream: Stream | None = None) -> None:
    """Migrate the pages of a managed array to a location in stream order, before they are used (cuMemPrefetchAsync).

    `location` is a Device, by default the stream's, or "host". Returns at once. Raises ValueError for an array that is
    not managed.
    """
    queue = stream_of("prefetch", stream)
    address, nbytes = managed_range("prefetch", array)
    where = location_of("prefetch", queue.device if location is None else location)
    with activated(queue.device):
        api.cuMemPrefetchAsync(address, nbytes, where, 0, queue.handle)


def managed_attributes(array: NDArray[Any]) -> ManagedAttributes:
    """Return the advice for a managed array and its last prefetch location (cuMemRangeGetAttribute).

    The driver stores advice per page, and arrays smaller than 2 MiB may share a page. The driver reports only values
    that are the same for all pages of an array. The call does not wait for queued prefetches. Raises ValueError for an
    array that is not managed.
    """
    address, nbytes = managed_range("managed_attributes", array)
    # The maximum number of locations: every device, and the host.
    most = api.cuDeviceGetCount() + 1

    def ask(name: str, values: int = 1) -> Any:
        kind = getattr(enums.CUmem_range_attribute, f"CU_MEM_RANGE_ATTRIBUTE_{name}")
        return api.cuMemRangeGetAttribute(4 * values, kind, address, nbytes)

    with activated(current_device()):
        preferred, prefetched = map(_found, (ask("PREFERRED_LOCATION"), ask("LAST_PREFETCH_LOCATION")))
        named = map(_found, ask("ACCESSED_BY", most))
        mappings = tuple(location for location in named if location is not None)
        return ManagedAttributes(bool(ask("READ_MOSTLY")), preferred, mappings, prefetched)


def _found(ordinal: int) -> Location | None:
    """Convert a location that the driver reports as a number."""
    if ordinal == _NOWHERE:
        return None
    return "host" if ordinal == _HOST else Device(ordinal)


def managed_range(call: str, array: Any, name: str = "array") -> tuple[int, int]:
    """Return the address and size in bytes of an array's memory; TypeError or ValueError if it is not managed."""
    arguments.instance(call, name, array, np.ndarray, "a NumPy array made by managed_empty")
    owner = pinned_owner(array)
    if not isinstance(owner, ManagedMemory):
        raise arguments.wrong_value(call, name, "managed memory", array, "make it with managed_empty")
    if not array.size:
        raise arguments.unusable(call, name, "have at least one element", f"the shape {array.shape}")
    owner.handle  # noqa: B018  # raises when closed
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high - low)


def location_of(call: str, location: Any, name: str = "location") -> Any:
    """Return a call's argument, a Device, "host" or None for the current device, as the driver's location."""
    result = enums.CUmemLocation()
    if isinstance(location, str) and location == "host":
        result.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
        return result
    device = current_device() if location is None else location
    arguments.instance(call, name, device, Device, "a Device or 'host'")
    result.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    result.id = device.ordinal
    return result
