"""Find out that the threads of a launch do nothing but wait at barriers in memory, whose phases can never end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....compiling.opcode_table.opcodes import form_of
from ....syntax.instructions import Access
from ...layout import Context
from ..reports import asked, operate, placed_again, with_memory

if TYPE_CHECKING:
    from ....faults import Fault
    from ....running.launch import LaunchState
    from ..launch import NativeLaunch

# A step of the NumPy engine executes an instruction for up to this many warps.
_WARPS_OF_STEP = 1024


class DeadlockSearch:
    """The search of one launch: after many instructions of waits alone, a round of turns tells Python about each."""

    def __init__(self, context: NDArray[np.uint64], state: LaunchState) -> None:
        self._context = context
        self._state = state
        self._used = 0

    def waited(self, used: int) -> None:
        """Count instructions; forget the previous ones if a lane has done something other than wait."""
        self._used += used
        context = self._context
        if context[Context.PROGRESS] or context[Context.ADVANCED]:
            context[Context.PROGRESS] = context[Context.ADVANCED] = context[Context.TELL_WAITS] = self._used = 0

    def deadlock(self, warps: int) -> Fault | None:
        """Return the fault of a deadlock, or None; called after each round of turns, in which `warps` warps ran."""
        fault = self._state.waits.deadlock() if self._context[Context.TELL_WAITS] else None
        many = self._state.has_waited_long(self._used // min(warps, _WARPS_OF_STEP))
        self._context[Context.TELL_WAITS] = many
        self._state.waits.clear()
        if many:
            self._used = 0
        return fault


def keep_wait(launch: NativeLaunch, number: int) -> None:
    """Record the wait of some lanes; the number is as in `asked`."""
    site, group, places = asked(launch, number)
    addresses, phases = (launch.exchange[slot].view(np.int64)[places] for slot in range(2))
    operate(launch, "test_wait", with_memory(launch, group), site, addresses, phases.view(np.uint64))


def copy_bulk(launch: NativeLaunch, number: int) -> None:
    """Make the bulk copies of some lanes, or raise Fault, as the NumPy engine does; the number is as in `asked`."""
    site, group, places = asked(launch, number)
    with_memory(launch, group)

    def named(slot: int, operand: int) -> Any:
        addresses = launch.exchange[slot].view(np.int64)[places]
        return placed_again(launch, group, replace(site, operand=operand), addresses)

    form = form_of(site.instruction)
    counts = len(site.instruction.operands) > 3 and isinstance(site.instruction.operands[3], Access)
    sizes = launch.exchange[2].view(np.int64)[places]
    barrier = named(3, 3) if counts else None
    operation = (form.operation, form.type) if form.types else None
    places = named(0, 0), named(1, 1)
    group.chunk.bulk_copies.copy(group, *places, sizes, site.instruction, barrier=barrier, operation=operation)


def copy_tensors(launch: NativeLaunch, number: int) -> None:
    """Make the tensor copies of some lanes, as the NumPy engine does; the number is as in `asked`."""
    site, group, places = asked(launch, number)
    with_memory(launch, group)
    form, operands = form_of(site.instruction), site.instruction.operands
    loads = form.spaces[0] == "shared"

    def word(slot: int) -> Any:
        return launch.exchange[slot].view(np.int64)[places]

    def named(slot: int, operand: int) -> Any:
        return placed_again(launch, group, replace(site, operand=operand), word(slot))

    tensor = operands[loads]
    assert isinstance(tensor, Access)
    space = group.code.space_of(tensor, "generic", launch.state.launch.entry.shared_offsets)
    address = launch.state.memory_access.place(group, space, word(0).view(np.uint64))
    first = 3 if loads else 2
    coordinates = tuple(word(first + axis) for axis in range(len(form.coordinate_types("s32"))))
    group.chunk.tensor_copies.copy(
        group,
        (address, 0),
        coordinates,
        named(1, 1 - loads),
        site.instruction,
        barrier=named(2, 2) if loads else None,
        operation=form.operation if "reduce" in form.words else None,
    )
