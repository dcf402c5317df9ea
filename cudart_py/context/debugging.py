"""Debug mode, which names the launch that failed.

A kernel runs after its launch has returned, so its failure is reported by some later call. In debug mode
(`CUDART_PY_DEBUG=1`, or inside `with cuda.debug():`) every launch is followed by a synchronisation, and the error names
the kernel, its shape and the line that launched it. Otherwise, the error names the launches since the last successful
synchronisation (`driver.launch_log`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..driver.calls import raw
from ..driver.launch_log import GraphRecord, LaunchRecord, note_synchronized
from ..driver.unwrap import failure
from ..host.callers import call_site
from .current import activated
from .epoch import epoch

if TYPE_CHECKING:
    from .device import Device


class _State:
    """Whether debug mode is on. Its changes are atomic, so there is no lock."""

    def __init__(self) -> None:
        self.always = os.environ.get("CUDART_PY_DEBUG", "") not in ("", "0")
        # The open `with cuda.debug():` blocks. Those of several threads may end in any order.
        self.blocks: set[object] = set()

    @property
    def enabled(self) -> bool:
        """Whether launches are followed by a synchronisation."""
        return self.always or bool(self.blocks)


state = _State()
if state.always:
    epoch.watch(state)


@contextmanager
def debug() -> Iterator[None]:
    """Synchronise after every launch in this process until the block ends, so that an error names the faulty kernel."""
    block = object()
    try:
        state.blocks.add(block)
        epoch.watch(block)
        yield
    finally:
        epoch.unwatch(block)
        state.blocks.discard(block)


def wait_for(record: LaunchRecord | GraphRecord, device: Device) -> None:
    """Wait for a launch, in debug mode; if it failed, raise an error that names the launch and its caller."""
    with activated(device):
        (status,) = raw.cuStreamSynchronize(record.stream)
    if status:
        raise failure(status, "cuStreamSynchronize", f"It was {record}, launched at {call_site()}")
    note_synchronized(record.device, record.stream)
