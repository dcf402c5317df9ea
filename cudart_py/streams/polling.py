"""Polling inside asyncio: the event loop checks repeatedly whether work is done, and keeps running in between."""

from __future__ import annotations

from collections.abc import Callable

from ..context.capture import captures, relaxed

# Seconds between two checks. The first ones follow almost at once, for work that is nearly done.
_LONGEST_PAUSE = 1e-3
_SHORTEST_PAUSE = 1e-5


async def until(done: Callable[[], bool]) -> None:
    """Wait until `done()` returns True, while the event loop keeps running."""
    import asyncio  # imported late, because programs without coroutines do not need it

    pause = 0.0
    while not ask(done):
        await asyncio.sleep(pause)
        pause = longer(pause)


def ask(done: Callable[[], bool]) -> bool:
    """Return `done()`, even while another task of the thread is in the middle of a capture, which forbids queries."""
    if not captures:
        return done()
    with relaxed():
        return done()


def longer(pause: float) -> float:
    """Return the length in seconds of the pause after one of `pause` seconds."""
    return min(max(2 * pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
