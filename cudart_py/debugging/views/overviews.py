"""The tables of cuda-gdb's `info cuda`: the kernel, its blocks, and their threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import tables
from .texts import index_text, place_text, table, waiting_text

if TYPE_CHECKING:
    from ...simulator.debugging.moments import LaneGroup
    from ..session import Session

# If the threads at one place form more runs of neighbours than this, they have one row.
_MOST_RUNS = 4


def kernels(session: Session) -> str:
    """Return the kernel that runs, with its grid, its block and its arguments; one kernel runs at a time."""
    launch = session.moment.chunk.state.launch
    outermost = len(session.recorder.frames(session.group)) - 1
    arguments = ", ".join(f"{name}={value}" for name, _, value in tables.parameters(session, outermost))
    row = (
        "*",
        "0",
        index_text(launch.grid),
        index_text(launch.block),
        session.recorder.lines.called(launch.entry.name),
    )
    return table([("", "kernel", "grid", "block", "name", "arguments"), (*row, arguments)], left=6)


def blocks(session: Session) -> str:
    """Return which blocks have ended, which run, and which have not begun; the one in focus is marked."""
    recorder, moment = session.recorder, session.moment
    launch, focus = moment.chunk.state.launch, moment.block_of(session.lane)
    running = {block for chunk in recorder.active for block in range(chunk.first, chunk.first + chunk.blocks)}
    states = ["running" if block in running else "ended" for block in range(recorder.begun)]
    states += ["not begun"] * (moment.chunk.state.blocks - recorder.begun)
    rows = []
    for first, last in _runs([(state, number == focus) for number, state in enumerate(states)]):
        ends = index_text(launch.block_index(first)), index_text(launch.block_index(last))
        rows.append(("*" if first == focus else "", *ends, str(last - first + 1), states[first]))
    return table([("", "block", "to block", "count", "state"), *rows], left=3)


def threads(session: Session) -> str:
    """Return the threads that have begun and not exited, in runs of neighbours that are at the same place.

    Threads at one place that are not neighbours, such as all even ones, have one row.
    """
    moment, recorder = session.moment, session.recorder
    rows = []
    for lanes, note, group in sorted(_rows_of(session), key=lambda one: int(one[0][0])):
        ends = [
            text
            for lane in (int(lanes[0]), int(lanes[-1]))
            for text in (index_text(moment.block_index(lane)), index_text(moment.thread_index(lane)))
        ]
        state = "runs" if group is moment.running else waiting_text(group) or "ready"
        mark = "*" if session.lane in lanes else ""
        rows.append((mark, *ends, str(len(lanes)), state, place_text(recorder, group) + note))
    return table([("", "block", "thread", "to block", "thread", "count", "state", "at"), *rows], left=8)


def _rows_of(session: Session) -> Iterator[tuple[NDArray[np.int64], str, LaneGroup]]:
    """Yield lanes that have a row, with a note about those between them that are elsewhere, and their group."""
    for group in session.moment.groups:
        distances = np.diff(group.lanes)
        ends = np.flatnonzero(distances != 1) + 1
        if len(ends) < _MOST_RUNS:
            yield from ((part, "", group) for part in np.split(group.lanes, ends))
        elif (distances == distances[0]).all():
            yield group.lanes, f" (one thread in {distances[0]})", group
        else:
            yield group.lanes, " (not all of these: info warps shows which)", group


def _runs(keys: list[tuple[str, bool]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each run of equal keys."""
    first = 0
    for number in range(1, len(keys) + 1):
        if number == len(keys) or keys[number] != keys[first]:
            yield first, number - 1
            first = number
