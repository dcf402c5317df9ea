"""The calls that switch a profiler on and off, which have no effect because no profiler watches the simulator."""

from __future__ import annotations

from ...state.contexts import current
from ..entry import entry


@entry()
def cuProfilerStart() -> None:
    """Do nothing, because no profiler watches the simulator (cuProfilerStart)."""
    current()


@entry()
def cuProfilerStop() -> None:
    """Do nothing, because no profiler watches the simulator (cuProfilerStop)."""
    current()
