"""Memory that processes share: allocations of one process, opened in others.

A handle names a file in memory that the process which made the handle holds open. The file takes the place of the pages
of the allocation, so that its address stays the same. Other processes open the file through `/proc`.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuda.bindings.driver import CU_IPC_HANDLE_SIZE

from ..devices import find_device
from . import reservations, table
from .address_space import space
from .allocations import DEVICE, Allocation

if TYPE_CHECKING:
    from ..contexts import Context

_FILE = "cudart_py shared memory"
_MAGIC = b"cudartpy"
# The fields of `Handle`, after the magic.
_FORMAT = struct.Struct("=8sIQIIQQQQ")


@functools.cache
def _started(process: int) -> int:
    """Return when a process was started, in clock ticks after the machine's start; raise OSError if it has ended."""
    status = Path(f"/proc/{process}/stat").read_bytes()
    # The name of the program, in parentheses, may contain any bytes. The start is the 22nd field.
    return int(status.rpartition(b")")[2].split()[19])


@dataclass(frozen=True)
class Handle:
    """The content of a handle.

    `started` distinguishes processes that had the same id. `descriptor` is that of the file in the other process, or
    the handle of an event. `offset` and `size` are those of the allocation in the file, which has `length` bytes.
    `pool` is the other process's handle of the pool that the allocation is from, 0 if it is from none.
    """

    process: int
    started: int
    descriptor: int
    device: int
    offset: int = 0
    size: int = 0
    length: int = 0
    pool: int = 0

    @classmethod
    def own(
        cls, descriptor: int, device: int, offset: int = 0, size: int = 0, length: int = 0, pool: int = 0
    ) -> Handle:
        """Return a handle of something that belongs to this process."""
        return cls(os.getpid(), _started(os.getpid()), descriptor, device, offset, size, length, pool)

    @classmethod
    def parsed(cls, data: bytes) -> Handle:
        """Return the content of a handle's bytes, or raise ValueError."""
        magic, *fields = _FORMAT.unpack(data[: _FORMAT.size])
        if magic != _MAGIC:
            raise ValueError("these bytes are not a handle of the simulator")
        return cls(*fields)

    @property
    def data(self) -> bytes:
        """Return the bytes."""
        return _FORMAT.pack(_MAGIC, *dataclasses.astuple(self)).ljust(CU_IPC_HANDLE_SIZE, b"\0")

    @property
    def here(self) -> bool:
        """Return whether the handle was made in this process."""
        return self.process == os.getpid() and self.started == _started(self.process)

    @property
    def valid(self) -> bool:
        """Return whether the process that made the handle still runs."""
        try:
            return _started.__wrapped__(self.process) == self.started
        except (OSError, IndexError, ValueError):
            return False


@dataclass
class _Opened:
    """Memory of another process, and how often it has been opened."""

    context: Context
    allocation: Allocation
    start: int
    count: int = 1


_opened: dict[Handle, _Opened] = {}


def share(allocation: Allocation) -> Handle:
    """Return the handle of an allocation, whose pages are replaced by those of a file at the first call.

    Raises OSError or MemoryError if the machine refuses.
    """
    start, end, descriptor = space.region.file_at(allocation.address)
    if descriptor is None:
        descriptor = os.memfd_create(_FILE, os.MFD_CLOEXEC)
        try:
            os.truncate(descriptor, end - start)
            os.pwrite(descriptor, (ctypes.c_char * (end - start)).from_address(start), 0)
            space.region.replace(start, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    # Other processes may write it, which no check sees.
    allocation.shadow.initialised = True
    offset, pool = allocation.address - start, 0 if allocation.pool is None else allocation.pool.handle
    return Handle.own(descriptor, allocation.device.ordinal, offset, allocation.size, end - start, pool)


def is_shared(allocation: Allocation) -> bool:
    """Return whether another process may access an allocation, because one of the two has opened or exported it."""
    if any(opened.allocation is allocation for opened in _opened.values()):
        return True
    mapping = reservations.find_mapping(allocation.address)
    if mapping is not None:
        return bool(mapping.physical.shareable)
    return space.region.contains(allocation.address) and space.region.file_at(allocation.address)[2] is not None


def open_shared(handle: Handle, context: Context) -> Allocation:
    """Return the memory of another process that a handle names, at an address in this process.

    Raises OSError or ValueError if it no longer exists, and MemoryError if there is no room.
    """
    opened = _opened.get(handle)
    if opened is not None:
        opened.count += 1
        return opened.allocation
    start = map_shared(handle)
    device = find_device(handle.device)
    allocation = Allocation(start + handle.offset, handle.size, DEVICE, context, device=device)
    allocation.access = frozenset({device, context.device})
    allocation.shadow.initialised = True
    table.enter(allocation)
    _opened[handle] = _Opened(context, allocation, start)
    return allocation


def map_shared(handle: Handle) -> int:
    """Map the file that contains memory of another process, and return the address of its first byte in this process.

    `space.region.give_back` removes the mapping. Raises the same errors as `open_shared`.
    """
    if not handle.valid:
        raise ValueError("the process that made the handle has ended")
    path = f"/proc/{handle.process}/fd/{handle.descriptor}"
    if _FILE not in os.readlink(path):
        raise ValueError("the memory has been freed")
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    start = 0
    try:
        if os.fstat(descriptor).st_size != handle.length:
            raise ValueError("the memory has been freed")
        start = space.region.reserve(handle.length, 0)
        space.region.map_file(start, handle.length, descriptor)
    except BaseException:
        if start:
            space.region.give_back(start)
        raise
    finally:
        os.close(descriptor)
    return start


def close_shared(address: int) -> bool:
    """Close memory of another process once; the last time ends its allocation. Return whether it was open."""
    for handle, opened in _opened.items():
        if opened.allocation.address == address:
            opened.count -= 1
            if not opened.count:
                _end(handle)
            return True
    return False


def _end(handle: Handle) -> None:
    opened = _opened.pop(handle)
    table.forget(opened.allocation)
    space.region.give_back(opened.start)


def end_context(context: Context) -> None:
    """Close all memory of other processes that a context has opened."""
    for handle, opened in list(_opened.items()):
        if opened.context is context:
            _end(handle)
