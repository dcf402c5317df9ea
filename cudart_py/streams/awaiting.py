"""Waiting for a stream inside asyncio: for an event after the work that the stream has by now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .. import errors
from ..context.capture import captures, refuse
from ..context.current import activated
from ..driver.capabilities import capabilities
from .event import Event
from .polling import ask, longer, until

if TYPE_CHECKING:
    import asyncio

    from .stream import Stream


async def until_finished(stream: Stream) -> None:
    """Wait for the work that a stream has by now."""
    handle = stream.handle  # raises when closed
    if captures:
        refuse(handle, "waiting for a stream", "await it after the `with` block of the capture")
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
    def ask_once() -> None:
        try:
            done = event.closed or ask(lambda: event.done)  # a reset closes it
        except errors.CudaError:
            done = True  # no caller waits here, and the next one that does gets the error
        if done:
            event.close()
        else:
            _ask_again(loop, event, longer(pause))

    loop.call_later(pause, ask_once)


def _mark(stream: Stream) -> Event:
    """Record an event after a stream's work, so that what the stream is given later does not count."""
    with activated(stream.device):
        return Event(timing=False).record(stream)
