"""Partitions: sets of a device's multiprocessors, and the green contexts that programs create for them.

A green context belongs to the device's primary context: its streams use the same memory, modules and events. Its
kernels run only on its multiprocessors.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from cuda.bindings.driver import CUdevResource, CUdevResourceType, CUresult

from .attributes import attribute
from .errors import StatusError
from .handles import Handles

if TYPE_CHECKING:
    from .contexts import Context
    from .devices import Device
    from .queue.stream import Stream
    from .queue.work import Work

# The numbers of multiprocessors in a part are multiples of these, as on an H200. In the second case, those of a part
# need not be able to run a cluster together.
UNIT = 8
UNIT_ALONE = 2
# The driver keeps its own data in the padding after the type; the simulator keeps the number of the partition there.
_NUMBER_OFFSET = 8


class Partition:
    """A set of a device's multiprocessors, by their numbers.

    `split` identifies the call that returned the partition as a part, None for all multiprocessors of a device or a
    green context, which alone may be split.
    """

    def __init__(self, device: Device, multiprocessors: Sequence[int], split: object = None) -> None:
        self.device = device
        self.multiprocessors = tuple(multiprocessors)
        self.split = split

    def resource(self) -> Any:
        """Return a structure that describes the partition, or nothing at all if it is empty."""
        result = CUdevResource()
        if not self.multiprocessors:
            return result
        result.type = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        result.sm.smCount = len(self.multiprocessors)
        if self.split is None:
            result.sm.minSmPartitionSize = result.sm.smCoscheduledAlignment = UNIT
        ctypes.c_uint64.from_address(result.getPtr() + _NUMBER_OFFSET).value = partitions.add(self)
        return result


# The structures of a process may refer to any partition until its end.
partitions: Handles[Partition] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def all_of(device: Device) -> Partition:
    """Return the partition of all multiprocessors of a device."""
    return Partition(device, range(attribute("MULTIPROCESSOR_COUNT")))


def find_partition(resource: Any) -> Partition:
    """Return the partition that a structure describes.

    Raises CUDA_ERROR_INVALID_RESOURCE_TYPE for a structure of another type, and CUDA_ERROR_INVALID_VALUE for one that
    the driver did not fill in.
    """
    if resource is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if resource.type != CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_RESOURCE_TYPE)
    return partitions.find(ctypes.c_uint64.from_address(resource.getPtr() + _NUMBER_OFFSET).value)


class GreenContext:
    """A green context: its partition, its streams, and the work of events for which its later work waits."""

    def __init__(self, primary: Context, partition: Partition) -> None:
        self.primary = primary
        self.partition = partition
        self.streams: WeakSet[Stream] = WeakSet()
        self.gates: list[Work] = []
        self.destroyed = False
        self.handle = green_contexts.add(self)


green_contexts: Handles[GreenContext] = Handles(CUresult.CUDA_ERROR_INVALID_CONTEXT)
