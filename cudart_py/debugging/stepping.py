"""Plans: where a launch that resumes, forwards or backwards, stops again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ..simulator.debugging.moments import Moment
    from ..simulator.debugging.recorder import Recorder
    from ..simulator.debugging.symbols.lines import Place

Kind = Literal["into", "over", "out", "instruction"]


class Continue:
    """Run to a breakpoint or a finding; `backwards` says in which direction."""

    def __init__(self, *, backwards: bool = False) -> None:
        self.backwards = backwards

    def stops(self, moment: Moment) -> str:
        """Return why a moment ends the plan, or "" if it does not."""
        return ""


class Step:
    """Run until a lane is at another line.

    "into" also stops at the first line of a function that it calls, "over" does not, "out" stops when the function in
    the frame `level` has returned, and "instruction" stops at its next instruction.
    """

    backwards = False

    def __init__(self, recorder: Recorder, moment: Moment, lane: int, kind: Kind, level: int) -> None:
        self._recorder = recorder
        self._chunk: Any = moment.chunk
        self._lane = lane
        self._kind = kind
        self._start = _start(recorder, moment, lane, kind, level)

    def stops(self, moment: Moment) -> str:
        """Return why a moment ends the plan, or "" if it does not."""
        if moment.chunk is not self._chunk:
            return "exited" if not self._chunk.live and is_past_prologue(self._recorder, moment) else ""
        group = moment.running
        if group is None or not group.has(self._lane):
            return "" if moment.group_of(self._lane) is not None else "exited"
        here = position_of(self._recorder, moment, self._lane)
        if not group.begins or here is None or self._start is None:
            return ""
        (place, depth), (start, start_depth) = here, self._start
        if self._kind == "instruction" or depth < start_depth:
            return "step"
        if self._kind == "out":
            return ""
        if depth > start_depth:
            inner = self._recorder.frames(group)
            if self._kind == "over" or depth < len(inner) - 1 or group.site is None:
                return ""
            return "step" if inner[0].inlined is not None or self._recorder.lines.is_entry(group.site) else ""
        return "step" if place != start else ""


def is_past_prologue(recorder: Recorder, moment: Moment) -> bool:
    """Return whether the group that runs has loaded the parameters of its function, so that they have values."""
    group = moment.running
    return group is not None and group.site is not None and recorder.lines.is_past_prologue(group.site)


def position_of(recorder: Recorder, moment: Moment, lane: int) -> tuple[Place, int] | None:
    """Return a lane's line and the number of calls that it is in, or None if it has exited.

    A function whose source is not available belongs to the line that calls it.
    """
    group = moment.group_of(lane)
    if group is None or group.site is None:
        return None
    frames, number = recorder.frames(group), recorder.source_frame(group)
    return frames[number].place or recorder.place(group.site), len(frames) - 1 - number


def _start(recorder: Recorder, moment: Moment, lane: int, kind: Kind, level: int) -> tuple[Place, int] | None:
    """Return the position from which a step begins: for "out", the number of calls is that of the frame `level`."""
    start, group = position_of(recorder, moment, lane), moment.group_of(lane)
    if start is None or group is None or kind != "out":
        return start
    return start[0], len(recorder.frames(group)) - 1 - level


def step_back(recorder: Recorder, moment: Moment, lane: int, kind: Kind, level: int) -> Moment | None:
    """Return the earlier moment at which a lane was at the start of its present line, or else of the line before.

    For "out", it is that of the call of the function in the frame `level`. None means that the history does not go back
    that far.
    """
    earlier = (one for one in recorder.before(moment) if one.chunk is moment.chunk and one.runs(lane))
    if kind == "instruction":
        return next(earlier, None)
    start = _start(recorder, moment, lane, kind, level)
    depth = start[1] if start is not None else 0
    found: Moment | None = None
    line: tuple[Place, int] | None = None
    for one in earlier:
        here = position_of(recorder, one, lane)
        if here is None or one.running is None or not one.running.begins or (kind == "over" and here[1] > depth):
            continue
        if kind == "out":
            if here[1] < depth:
                return one
            continue
        if line is None:
            line = here
        elif here != line:
            break
        found = one
    return found
