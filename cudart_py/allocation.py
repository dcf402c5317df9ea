"""Allocations of device memory that is not stream-ordered, or not ours, and what is said when there is none left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import errors
from ._driver import api, raw
from ._lifetime import Handle
from .device import Device, activated, current_device
from .stream import Stream, legacy_default

if TYPE_CHECKING:
    from .pools import MemoryPool

__all__ = ["Allocation", "BorrowedAllocation", "PitchedAllocation", "out_of_memory"]


class Allocation(Handle):
    """Bytes of device memory; arrays over it and their views share one."""

    __slots__ = ("device", "home", "stream")

    device: Device
    # The device while the memory may be used, False from its end on: what is done often asks both at once. Not None,
    # which is the device of a thread that has done nothing yet.
    home: Device | Literal[False]
    stream: Stream

    def close(self) -> None:
        """Let no array use the memory any more, and give back what is owned."""
        # First of all: who checks again because something was closed must see that it was this.
        self.home = False
        super().close()


class PitchedAllocation(Allocation):
    """Rows padded to the pitch that the device prefers (cuMemAllocPitch, cuMemFree)."""

    __slots__ = ("pitch",)

    pitch: int

    def __init__(self, width: int, height: int, itemsize: int) -> None:
        self._value = None
        self._owned = True
        self.device = self.home = current_device()
        self.stream = legacy_default
        # The driver takes 4, 8 and 16 only: the widest access of a kernel that the rows must suit.
        access = max(size for size in (4, 8, 16) if size == 4 or itemsize % size == 0)
        result = raw.cuMemAllocPitch(width, height, access)
        if result[0]:
            raise out_of_memory(result[0], "cuMemAllocPitch", width * height)
        self._value, self.pitch = int(result[1]), int(result[2])

    def _release(self, value: Any) -> None:
        with activated(self.device):
            api.cuMemFree(value)


class BorrowedAllocation(Allocation):
    """Memory of somebody else, never freed here; `owner` is kept alive with it."""

    __slots__ = ("owner",)

    def __init__(self, pointer: int, device: Device, owner: Any) -> None:
        self._value = pointer
        self._owned = False
        self.device = self.home = device
        self.stream = legacy_default
        self.owner = owner


def out_of_memory(status: Any, call: str, requested: int, pool: MemoryPool | None = None) -> errors.CudaError:
    """Make the exception for a failed allocation, with the sizes where memory was the matter."""
    if status.name != "CUDA_ERROR_OUT_OF_MEMORY":
        return errors.failure(status, call)
    free, total = api.cuMemGetInfo()
    limit = f"; the pool holds {pool.max_size:,} at most" if pool is not None and pool.max_size else ""
    return errors.OutOfMemoryError(
        f"{call}: {requested:,} bytes were asked for and {free:,} of {total:,} are free{limit} "
        "(CUDA_ERROR_OUT_OF_MEMORY)",
        status=status,
        call=call,
        requested=requested,
        free=free,
        total=total,
    )
