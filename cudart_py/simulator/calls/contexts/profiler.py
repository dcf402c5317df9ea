"""The profiler's switch, which no profiler of a simulation listens to."""

from __future__ import annotations

from ...state.contexts import current
from ..entry import entry


@entry()
def cuProfilerStart() -> None:
    """Change nothing, since no profiler watches a simulation, as cuProfilerStart."""
    current()


@entry()
def cuProfilerStop() -> None:
    """Change nothing, since no profiler watches a simulation, as cuProfilerStop."""
    current()
