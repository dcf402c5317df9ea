"""The current device of each thread, which this package records so that it need not ask the driver."""

from __future__ import annotations

import contextlib
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import Device


class _Thread(threading.local):
    """The calling thread's current device, and the devices that `with device:` blocks will restore."""

    def __init__(self) -> None:
        # None until the thread's first CUDA work.
        self.device: Device | None = None
        # The device that was current before each `with device:` block that the thread is in, outermost first.
        self.stack: list[Device | None] = []


this_thread = _Thread()


_nothing = contextlib.nullcontext()


def activated(device: Device) -> AbstractContextManager[object]:
    """Return a context manager that makes a device current; it does nothing if the device already is."""
    return _nothing if this_thread.device is device else device
