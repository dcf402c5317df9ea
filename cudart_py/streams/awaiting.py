"""Waiting for a stream inside asyncio, by an event that is recorded after the stream's work so far."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .. import errors
from ..context.capture import captures, refuse
from ..context.current import activated
from ..driver.capabilities import capabilities
from .event import Event
from .polling import ask, longer

if TYPE_CHECKING:
    import asyncio

    from .stream import Stream


async def until_finished(stream: Stream) -> None:
    """Wait for a stream's work so far."""
    handle = stream.handle  # raises when closed
    if captures:
        refuse(handle, "waiting for a stream", "await it after the `with` block of the capture")
    event = _mark(stream)
    try:
        await event
    finally:
        event.close()


def ask_for(stream: Stream) -> None:
    """Make this thread's running event loop poll for a stream's work so far, until it is done.

    Does nothing unless the thread has an event loop and the driver's devices make progress only while they are polled.
    On such a driver, a future that a host function sets would otherwise never be set.
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
    def ask_once() -> None:
        try:
            done = event.closed or ask(lambda: event.done)  # a reset closes it
        except errors.CudaError:
            done = True  # no caller waits here; the next caller that waits gets the error
        if done:
            event.close()
        else:
            _ask_again(loop, event, longer(pause))

    loop.call_later(pause, ask_once)


def _mark(stream: Stream) -> Event:
    """Record an event after a stream's work so far, and return it; work that is queued later does not count."""
    with activated(stream.device):
        return Event(timing=False).record(stream)
