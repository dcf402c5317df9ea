"""Find out that the threads of a launch do nothing but wait at barriers in memory, whose phases can never end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...layout import Context

if TYPE_CHECKING:
    from ....faults import Fault
    from ....running.launch import LaunchState

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
