"""Leaks: the allocations that are left at the end of the program, listed if an environment variable requests it."""

from __future__ import annotations

import atexit
import os
import sys

from ...state import memory
from ...state.devices import state
from ..modules.modules import modules

LEAKS_VARIABLE = "CUDART_PY_SIMULATOR_LEAKS"


def watch() -> None:
    """List unfreed allocations at the end of the program, if CUDART_PY_SIMULATOR_LEAKS is set to anything but 0."""
    if os.environ.get(LEAKS_VARIABLE, "") not in ("", "0"):
        # Every context calls this; registered twice, the function would list everything twice.
        atexit.unregister(_list)
        atexit.register(_list)


def _list() -> None:
    if state.forked:  # the parent lists its own
        return
    variables = {address for module in modules for address in module.symbols.values()}
    for start in memory.known.starts:
        allocation = memory.known.by_start[start]
        if allocation.kind not in (memory.HEAP, memory.REGISTERED) and start not in variables:
            print(f"cudart-py: leaked: {allocation.record}", file=sys.stderr)  # noqa: T201  # as requested
