"""Progress: queued work runs even if the program waits for it without calling the driver.

The simulator runs work during calls of the driver, as late as the rules allow. A program in C++ may wait in other ways:
for a flag that a host function sets, or for memory that a kernel writes. Once it has made no call for a while, a thread
runs what is queued, as a GPU would have done.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from ..driver import backend
from ..errors import SimulatorWarning
from .messages import say

_PATIENCE = 0.2  # seconds without a call

_last_call = 0.0
_running_calls = 0


@contextlib.contextmanager
def calling() -> Iterator[None]:
    """Note that the program calls a function, from its beginning to its end."""
    global _last_call, _running_calls
    _running_calls += 1
    try:
        yield
    finally:
        _running_calls -= 1
        _last_call = time.monotonic()


def start() -> None:
    """Start the thread, which ends with the process."""
    threading.Thread(target=_watch, name="cudart-py progress", daemon=True).start()


def _watch() -> None:
    run_queued = backend.chosen().functions.run_queued
    while True:
        time.sleep(_PATIENCE)
        if not _running_calls and time.monotonic() - _last_call > _PATIENCE:
            try:
                run_queued()
            except SimulatorWarning as finding:  # no call of the program can fail for it
                say(str(finding))
