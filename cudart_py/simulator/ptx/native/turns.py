"""Let blocks run in turns whose lanes wait for those of other blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .layout import Context

if TYPE_CHECKING:
    from .launch import NativeLaunch, Resident

__all__ = ["run_in_turns"]

# How many threads of blocks that wait for each other have begun, unless a cooperative launch needs all.
_MOST_THREADS = 1 << 17


@dataclass
class _Turn:
    """A block that has begun, and its memory."""

    block: int
    memory: Resident
    fresh: bool = True


def run_in_turns(launch: NativeLaunch) -> None:
    """Run blocks whose lanes may wait for other blocks: where those at hand do, further ones begin beside them."""
    state = launch.state
    most = state.blocks if state.launch.cooperative else max(1, _MOST_THREADS // state.threads)
    following = 0
    active: list[_Turn] = []
    while active or following < state.blocks:
        for _ in range(max(1, len(active))):
            if following < state.blocks and len(active) < most:
                active.append(_Turn(following, launch.new_resident()))
                following += 1
        for turn in list(active):
            if _take(launch, turn):
                active.remove(turn)
                launch.made_progress()


def _take(launch: NativeLaunch, turn: _Turn) -> bool:
    """Run a block until it has ended or waits for other blocks; return whether it has ended."""
    context = launch.context
    launch.install(turn.memory)
    context[Context.BLOCK], context[Context.LAST_BLOCK] = turn.block, turn.block + 1
    context[Context.FRESH] = turn.fresh
    context[Context.WARP] = 0
    turn.fresh = False
    return launch.go_on()
