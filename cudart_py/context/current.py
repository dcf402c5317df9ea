"""The device that each thread has current, as this package knows it without asking the driver."""

from __future__ import annotations

import contextlib
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import Device


class _Thread(threading.local):
    """The calling thread's current device, and those that it will have again."""

    def __init__(self) -> None:
        # None until the thread's first CUDA work.
        self.device: Device | None = None
        # The devices that were current before each of the `with device:` blocks that the thread is in.
        self.stack: list[Device | None] = []


this_thread = _Thread()


_nothing = contextlib.nullcontext()


def activated(device: Device) -> AbstractContextManager[object]:
    """Return a context in which a device is current: one that does nothing where it already is."""
    return _nothing if this_thread.device is device else device
