"""Let blocks run in turns whose lanes wait for those of other blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .layout import Context

if TYPE_CHECKING:
    from .launch import NativeLaunch, Resident

__all__ = ["Turn", "run_in_turns"]

# How many threads of blocks that wait for each other have begun, unless a cooperative launch needs all.
_MOST_THREADS = 1 << 17


@dataclass
class Turn:
    """A block that has begun, its memory, and the warp that goes on first."""

    block: int
    memory: Resident
    warp: int = 0
    fresh: bool = True


def run_in_turns(launch: NativeLaunch, begun: Turn | None = None) -> None:
    """Run blocks whose lanes may wait for other blocks: where those at hand do, further ones begin beside them.

    The blocks in front of one that has `begun` have ended.
    """
    state = launch.state
    most = state.blocks if state.launch.cooperative else max(1, _MOST_THREADS // state.threads)
    following = begun.block + 1 if begun is not None else 0
    active = [begun] if begun is not None else []
    while active or following < state.blocks:
        for _ in range(max(1, len(active))):
            if following < state.blocks and len(active) < most:
                active.append(Turn(following, launch.new_resident()))
                following += 1
        for turn in list(active):
            if _take(launch, turn):
                active.remove(turn)
                launch.made_progress()


def _take(launch: NativeLaunch, turn: Turn) -> bool:
    """Run a block until it has ended or waits for other blocks; return whether it has ended."""
    context = launch.context
    launch.install(turn.memory)
    context[Context.BLOCK], context[Context.LAST_BLOCK] = turn.block, turn.block + 1
    context[Context.FRESH] = turn.fresh
    context[Context.WARP] = turn.warp
    turn.fresh = False
    ended = launch.go_on()
    turn.warp = int(context[Context.WARP])
    return ended
