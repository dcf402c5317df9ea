"""Profiles: the counters of all launches between a begin and its end, and the record of one warp of each launch."""

from __future__ import annotations

from typing import NamedTuple

from ...counters.launch_counters import LaunchCounters
from ...counters.warp_recorder import WarpRecorder
from ...ptx.running.observer import Observer
from ...state import contexts
from ...state.queue.scheduling import complete_context
from ..entry import entry


class CountedLaunch(NamedTuple):
    """A launch's counters, and the record of the warp that the profile requested, if any."""

    counters: LaunchCounters
    recorder: WarpRecorder | None


class _OpenProfile:
    """A profile in progress, and the number of the warp that it records in each launch, or None."""

    def __init__(self, warp: int | None) -> None:
        self.warp = warp
        self.launches: list[CountedLaunch] = []


# The profiles in progress, inner ones last. Launches belong to all of them.
_open: list[_OpenProfile] = []


def profile_observers() -> list[Observer]:
    """Return new observers for a launch that begins now, and add them to all open profiles; [] if none is open."""
    if not _open:
        return []
    counters = LaunchCounters()
    recorders = {one.warp: WarpRecorder(one.warp) for one in _open if one.warp is not None}
    for one in _open:
        one.launches.append(CountedLaunch(counters, None if one.warp is None else recorders[one.warp]))
    return [counters, *recorders.values()]


def _complete() -> None:
    for context in contexts.all_active():
        complete_context(context)


@entry()
def begin_profile(warp: int | None = None) -> None:
    """Run the queued work, then begin to count; in each launch, record the warp with this number, or none if None."""
    _complete()
    _open.append(_OpenProfile(warp))


@entry()
def complete_profile() -> None:
    """Run the queued work, which belongs to the open profiles; its failure leaves them open."""
    _complete()


@entry(values=1)
def end_profile() -> list[CountedLaunch]:
    """Return all launches begun since the innermost begin, in the order in which they ran.

    Launches that failed have no metrics.
    """
    return _open.pop().launches
