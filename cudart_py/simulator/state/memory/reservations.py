"""Virtual memory: reserved ranges of addresses, physical memory, and the mappings of one into the other.

Physical memory is a file in memory. It is mapped into each range at which a program maps it, so that all of these
addresses refer to the same bytes.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUresult

from ....host.callers import call_site
from ..devices import find_device
from ..handles import Handles
from .address_space import space

if TYPE_CHECKING:
    from ..devices import Device
    from .allocations import Allocation

# The size in bytes, and the alignment, of everything that is reserved, created or mapped on an H200.
GRANULARITY = 2 << 20


_FILE = "cudart_py memory of device "


class PhysicalMemory:
    """Physical memory of a device, which exists as long as a handle refers to it or it is mapped.

    `references` is the number of references that the program holds, and `mapped` the number of mappings. `shareable`
    says which types of handles for other processes the program may request. `owned` says whether the memory was created
    in this process, whose device counts it as used.
    """

    def __init__(self, device: Device, size: int, descriptor: int, shareable: int, *, owned: bool) -> None:
        self.device = device
        self.size = size
        self.descriptor = descriptor
        self.shareable = shareable
        self.owned = owned
        self.handle = 0
        self.references = 1
        self.mapped = 0
        self.site = call_site()

    @classmethod
    def created(cls, device: Device, size: int, shareable: int) -> PhysicalMemory:
        """Create memory.

        Raises CUDA_ERROR_OUT_OF_MEMORY if the device has no room, and MemoryError if the machine has none.
        """
        device.take(size)
        try:
            descriptor = os.memfd_create(f"{_FILE}{device.ordinal}", os.MFD_CLOEXEC)
            os.truncate(descriptor, size)
        except OSError as error:
            device.give(size)
            raise MemoryError(str(error)) from None
        return cls(device, size, descriptor, shareable, owned=True)

    @classmethod
    def imported(cls, descriptor: int) -> PhysicalMemory:
        """Return the memory that another process has created; raise OSError or ValueError if it is none."""
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        found = re.fullmatch(rf"/memfd:{_FILE}(\d+) \(deleted\)", name)
        if found is None:
            raise ValueError(f"{name} is not memory of a device")
        device, size = find_device(int(found[1])), os.fstat(descriptor).st_size
        return cls(device, size, os.dup(descriptor), 1, owned=False)

    @property
    def used(self) -> bool:
        """Return whether anything still refers to the memory."""
        return bool(self.references or self.mapped)

    def close(self) -> None:
        """Give the memory back to the machine and to the device."""
        os.close(self.descriptor)
        if self.owned:
            self.device.give(self.size)


class Mapping:
    """Physical memory at an address, with the devices that may access it there."""

    def __init__(self, address: int, physical: PhysicalMemory) -> None:
        self.address = address
        self.physical = physical
        self.access: frozenset[Device] = frozenset()

    @property
    def end(self) -> int:
        """Return the address after the last byte."""
        return self.address + self.physical.size


class Reservation:
    """A reserved range of addresses, with the mappings into it, keyed by address.

    `allocations` are the parts of the range that may be accessed, as the host's calls and the kernels see them.
    """

    def __init__(self, size: int, alignment: int) -> None:
        self.size = size
        self.address = space.region.reserve(size, alignment)
        self.mappings: dict[int, Mapping] = {}
        self.allocations: list[Allocation] = []
        self.site = call_site()

    @property
    def end(self) -> int:
        """Return the address after the last byte."""
        return self.address + self.size

    def within(self, address: int, size: int) -> list[Mapping]:
        """Return the mappings that share bytes with a range, in the order of their addresses."""
        mappings = (self.mappings[start] for start in sorted(self.mappings))
        return [mapping for mapping in mappings if mapping.address < address + size and address < mapping.end]


reservations: dict[int, Reservation] = {}  # keyed by address
physical_memory: Handles[PhysicalMemory] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def find_reservation(address: int, size: int = 1) -> Reservation | None:
    """Return the reservation that contains a range, or None."""
    for reservation in reservations.values():
        if reservation.address <= address and address + size <= reservation.end:
            return reservation
    return None


def find_mapping(address: int) -> Mapping | None:
    """Return the mapping that contains an address, or None."""
    reservation = find_reservation(address)
    mappings = reservation.within(address, 1) if reservation is not None else []
    return mappings[0] if mappings else None


def describe(address: int) -> str:
    """Describe an address in a reservation that no allocation contains; return "" for any other address."""
    reservation = find_reservation(address)
    if reservation is None:
        return ""
    offset = address - reservation.address
    where = f"{offset} bytes into the {reservation.size}-byte range of addresses at {reservation.address:#x}"
    if reservation.site:
        where += f", reserved at {reservation.site}"
    if not reservation.within(address, 1):
        return f"{where}, where nothing is mapped: call cuMemMap and cuMemSetAccess"
    return f"{where}, where memory is mapped that no device may access: call cuMemSetAccess"
