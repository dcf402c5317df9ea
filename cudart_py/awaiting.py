"""Waiting for a device inside asyncio: the event loop asks now and then, and goes on meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import errors
from ._driver import capabilities
from .capture import captures, refuse, relaxed
from .device import activated

if TYPE_CHECKING:
    import asyncio

    from .event import Event
    from .stream import Stream

__all__ = ["ask_for", "until", "until_finished"]

# Seconds between two questions: the first ones follow at once, for work that is nearly done.
_LONGEST_PAUSE = 1e-3
_SHORTEST_PAUSE = 1e-5


async def until(done: Callable[[], bool]) -> None:
    """Ask until the answer is yes."""
    import asyncio  # whoever awaits has imported it

    pause = 0.0
    while not _ask(done):
        await asyncio.sleep(pause)
        pause = _longer(pause)


async def until_finished(stream: Stream) -> None:
    """Wait for the work that a stream has by now."""
    handle = stream.handle  # raises when closed
    if captures:
        refuse(handle, "waiting for a stream", "await it behind the `with` block")
    event = _mark(stream)
    try:
        await until(lambda: event.done)
    finally:
        event.close()


def ask_for(stream: Stream) -> None:
    """Let the event loop that runs in this thread ask for the work that a stream has by now, until it is done.

    For drivers whose devices work only while they are asked; no other needs it, nor does a thread without a loop. A
    future that a host function is to set would wait for ever otherwise.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or "concurrent_host" in capabilities():
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    _ask_again(loop, _mark(stream), 0.0)


def _ask_again(loop: asyncio.AbstractEventLoop, event: Event, pause: float) -> None:
    def ask() -> None:
        try:
            done = _ask(lambda: event.done)
        except errors.CudaError:
            done = True  # nobody waits here, and the next call that does tells
        if done:
            event.close()
        else:
            _ask_again(loop, event, _longer(pause))

    loop.call_later(pause, ask)


def _mark(stream: Stream) -> Event:
    """Record an event behind a stream's work, so that what the stream is given later does not count."""
    from .event import Event

    with activated(stream.device):
        return Event(timing=False).record(stream)


def _ask(done: Callable[[], bool]) -> bool:
    if not captures:
        return done()
    # Another task may be in the middle of a capture, which forbids its thread to ask.
    with relaxed():
        return done()


def _longer(pause: float) -> float:
    return min(max(2 * pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
