"""Let blocks take turns if their lanes wait for lanes of other blocks, and look for deadlocks at barriers in memory.

At such a deadlock, the threads of a launch do nothing but wait, for phases that can never end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..layout import Context
from .buffers import Resident

if TYPE_CHECKING:
    from ...faults import Fault
    from ...running.launch import LaunchState
    from .launch import NativeLaunch

# The maximum number of CUDA threads in blocks that have begun, unless a cooperative launch needs all of its blocks.
# Blocks that are resident together on a device may wait for each other, so this is as many as the largest device holds,
# or a few more.
_MOST_THREADS = 1 << 19


@dataclass
class Turn:
    """A block that has begun, its memory, and the warp that runs first at its next turn."""

    block: int
    memory: Resident
    warp: int = 0
    fresh: bool = True


def run_in_turns(launch: NativeLaunch, following: Iterator[int]) -> None:
    """Let the current block, whose lanes wait for other blocks, take turns with the `following` blocks.

    Before each round of turns, as many more blocks begin as are already active, within the limit. All blocks of a
    cooperative launch begin before the first round, because they usually wait for each other.
    """
    state, context = launch.state, launch.context
    cooperative = state.launch.cooperative
    most = state.blocks if cooperative else max(1, _MOST_THREADS // (state.threads * launch.unit))
    block = int(context[Context.BLOCK])
    active = [Turn(block - block % launch.unit, launch.resident, int(context[Context.WARP]), False)]
    while True:
        more = most - len(active)
        if not cooperative:
            more = min(more, max(1, len(active)))
        memory = launch.kernel, state, launch.warps, launch.unit
        active += [Turn(block, Resident(*memory)) for block in islice(following, more)]
        if not active:
            launch.in_turns = 0
            return
        launch.in_turns = len(active)
        for turn in list(active):
            if _take(launch, turn):
                active.remove(turn)
                launch.made_progress()
        deadlock = launch.deadlocks.deadlock(launch.warps * launch.unit * launch.in_turns)
        if deadlock is not None:
            raise deadlock


def _take(launch: NativeLaunch, turn: Turn) -> bool:
    """Run a block until it has ended or waits for other blocks; return whether it has ended."""
    context = launch.context
    launch.install(turn.memory)
    context[Context.BLOCK], context[Context.LAST_BLOCK] = turn.block, turn.block + launch.unit
    context[Context.FRESH] = turn.fresh
    context[Context.WARP] = turn.warp
    turn.fresh = False
    ended = launch.go_on()
    turn.warp = int(context[Context.WARP])
    return ended


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
