"""Find out that the threads of a launch do nothing but wait at barriers in memory, whose phases can never end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..layout import Context
from .reports import group_of, operate, with_memory

if TYPE_CHECKING:
    from ...faults import Fault
    from ...running.launch import LaunchState
    from .launch import NativeLaunch

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


def keep_wait(launch: NativeLaunch, number: int, mask: int) -> None:
    """Record the wait of the lanes in `mask` at site `number`."""
    site = launch.kernel.sites.sites[number]
    group, places = group_of(launch, site.instance, mask)
    addresses, phases = (launch.exchange[slot].view(np.int64)[places] for slot in range(2))
    operate(launch, "test_wait", with_memory(launch, group), site, addresses, phases.view(np.uint64))
