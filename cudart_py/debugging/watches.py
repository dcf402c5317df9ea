"""Watchpoints: expressions whose changes stop the launch, in the thread and the function in which they were set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .texts import UNKNOWN, place_text, value_text_in

if TYPE_CHECKING:
    from ..simulator.debugging.frames import Frame
    from ..simulator.debugging.moments import LaneGroup, Moment
    from ..simulator.debugging.recorder import Recorder
    from .session import Session


class Watch:
    """A watchpoint of one launch. It is compared at each moment, and has no value while its function does not run."""

    def __init__(self, number: int, text: str, session: Session) -> None:
        self.number = number
        self.text = text
        self._chunk: Any = session.moment.chunk
        self._lane = session.lane
        # The frame is counted from the outermost one.
        self._place = session.level - len(session.recorder.frames(session.group))
        self._function = _function(session.group, session.frame)
        session.recorder.evaluate(text, session.scope)  # raises ValueError for an expression that has no value
        self.update(session.recorder, session.moment)

    def __str__(self) -> str:
        return self.text

    def update(self, recorder: Recorder, moment: Moment) -> None:
        """Take the value at a moment as the one to compare with."""
        self._last = self._value(recorder, moment)

    def changed(self, recorder: Recorder, moment: Moment) -> str:
        """Return how the value has changed since the last comparison, or "" if it has not."""
        before, self._last = self._last, self._value(recorder, moment)
        if before == self._last or None in (before, self._last):
            return ""
        number = moment.number - recorder.history[0].number - 1
        writer = recorder.history[number].running if number >= 0 else None
        place = f" after {place_text(recorder, writer)}" if writer is not None else ""
        return f"Watchpoint {self.number}: {self.text} changes from {before} to {self._last}{place}"

    def _value(self, recorder: Recorder, moment: Moment) -> str | None:
        """Return the value as text, or None if the thread has exited or is not in the function."""
        group = moment.group_of(self._lane) if moment.chunk is self._chunk else None
        frames = [] if group is None else recorder.frames(group)
        if group is None or len(frames) + self._place < 0 or _function(group, frames[self._place]) != self._function:
            return None
        scope = recorder.scope(moment, group, self._place)
        try:
            value = recorder.evaluate(self.text, scope)
        except ValueError:
            return UNKNOWN
        return value_text_in(scope.memory, value, int(np.searchsorted(group.lanes, self._lane)))


def _function(group: LaneGroup, frame: Frame) -> tuple[Any, Any]:
    """Return what a frame executes."""
    return group.levels[frame.level].code, frame.inlined
