"""Profiles: the counters of all launches between a begin and its end."""

from __future__ import annotations

from ...counters.launch_counters import LaunchCounters
from ...state import contexts
from ...state.queue.scheduling import complete_context
from ..entry import entry

# The profiles under way, inner ones last. Launches belong to all of them.
_open: list[list[LaunchCounters]] = []


def counters() -> LaunchCounters | None:
    """Return the counters for a launch that begins now, entered in all open profiles; None when there are none."""
    if not _open:
        return None
    found = LaunchCounters()
    for profile in _open:
        profile.append(found)
    return found


def _complete() -> None:
    for context in contexts.all_active():
        complete_context(context)


@entry()
def begin_profile() -> None:
    """Run what is queued, then count from here on."""
    _complete()
    _open.append([])


@entry(values=1)
def end_profile() -> list[LaunchCounters]:
    """Run what is queued; return the counters of all launches since the innermost begin, in the order they ran in."""
    try:
        _complete()
    finally:
        found = _open.pop()
    return [counted for counted in found if counted.metrics]
