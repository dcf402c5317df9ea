"""Let blocks take turns if their lanes wait for lanes of other blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ...layout import Context

if TYPE_CHECKING:
    from ..buffers import Resident
    from ..launch import NativeLaunch

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
        active += [Turn(block, launch.new_resident()) for block in islice(following, more)]
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
