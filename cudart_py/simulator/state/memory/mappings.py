"""Mappings of physical memory, and the allocations as which the host's calls and the kernels see mapped memory.

Neighbouring mappings that the same devices may access are one allocation, because a copy or a kernel may use them as
one array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import table
from .address_space import space
from .allocations import DEVICE, Allocation
from .reservations import Mapping, PhysicalMemory, Reservation, physical_memory, reservations

if TYPE_CHECKING:
    from ..contexts import Context


def map_physical(reservation: Reservation, address: int, physical: PhysicalMemory) -> None:
    """Map physical memory at an address, where no device may access it yet."""
    space.region.map_file(address, physical.size, physical.descriptor)
    physical.mapped += 1
    reservation.mappings[address] = Mapping(address, physical)


def unmap(reservation: Reservation, mapping: Mapping, context: Context) -> None:
    """Remove a mapping; the contents remain in the physical memory as long as anything else refers to it."""
    del reservation.mappings[mapping.address]
    refresh(reservation, context)
    space.region.unmap(mapping.address, mapping.physical.size)
    mapping.physical.mapped -= 1


def refresh(reservation: Reservation, context: Context) -> None:
    """Replace the allocations of a reservation by those that its mappings now form."""
    before = {allocation.address: allocation for allocation in reservation.allocations}
    reservation.allocations = []
    for run in _runs(reservation):
        start, size = run[0].address, run[-1].end - run[0].address
        older = before.get(start)
        if older is not None and older.size == size and older.access == run[0].access:
            del before[start]
            reservation.allocations.append(older)
        else:
            reservation.allocations.append(_allocation(run, size, older, context))
    for allocation in before.values():
        table.known.remove(allocation)
        table.live.remove(allocation)
    for allocation in reservation.allocations:
        table.enter(allocation)
    table.note_change()


def _runs(reservation: Reservation) -> list[list[Mapping]]:
    """Return the accessible mappings, with neighbours that the same devices may access in one list."""
    runs: list[list[Mapping]] = []
    for start in sorted(reservation.mappings):
        mapping = reservation.mappings[start]
        if not mapping.access:
            continue
        last = runs[-1][-1] if runs else None
        if (
            last is not None
            and last.end == start
            and last.access == mapping.access
            and last.physical.device is mapping.physical.device
        ):
            runs[-1].append(mapping)
        else:
            runs.append([mapping])
    return runs


def _allocation(run: list[Mapping], size: int, older: Allocation | None, context: Context) -> Allocation:
    physical = run[0].physical
    allocation = Allocation(run[0].address, size, DEVICE, context, device=physical.device)
    allocation.access, allocation.site = run[0].access, physical.site
    if older is not None:
        allocation.identity = older.identity
    # Other addresses may refer to the same bytes, so it is not known which of them have been written. The driver clears
    # new memory.
    allocation.shadow.initialised = True
    return allocation


def drop_all() -> None:
    """Drop all reservations and all physical memory."""
    for reservation in list(reservations.values()):
        for allocation in reservation.allocations:
            table.forget(allocation)
        space.region.give_back(reservation.address)
    reservations.clear()
    for physical in physical_memory.remove_all(lambda _: True):
        physical.close()
