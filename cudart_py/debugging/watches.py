"""Watchpoints: expressions whose changes stop the launch, in the thread and the function in which they were set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .views.texts import UNKNOWN, threads_text, user_place_text, value_text_in

if TYPE_CHECKING:
    from ..simulator.debugging.frames import Frame
    from ..simulator.debugging.moments import LaneGroup, Moment
    from ..simulator.debugging.recorder import Recorder
    from ..simulator.debugging.scope import Scope
    from .session import Session


class Watch:
    """A watchpoint. Its value is compared at each moment.

    The expression is evaluated while its function runs in the thread. At other moments, the value is that of the memory
    at the address that the expression had last, which another thread, block or launch may change. Memory of another
    block, and a value that is not in global or shared memory, cannot be followed so.
    """

    def __init__(self, number: int, text: str, session: Session) -> None:
        self.number = number
        self.text = text
        self.condition = ""
        self.is_enabled = True
        self.ignored = self.hits = 0
        self.commands: list[str] = []
        self._chunk: Any = session.moment.chunk
        self._lane = session.lane
        # The frame is counted from the outermost one.
        self._place = session.level - len(session.recorder.frames(session.group))
        self._function: Any = _function(session.group, session.frame)
        # The state space, the type and the address of the value, if it is in global or shared memory.
        self._memory: tuple[str, Any, int] | None = None
        session.recorder.evaluate(text, session.scope)  # raises ValueError for an expression that has no value
        self.update(session.recorder, session.moment)

    def __str__(self) -> str:
        return f"{self.text} if {self.condition}" if self.condition else self.text

    def update(self, recorder: Recorder, moment: Moment) -> None:
        """Take the value at a moment as the one to compare with."""
        self._last = self._value(recorder, moment)

    def changed(self, recorder: Recorder, moment: Moment) -> str:
        """Return how the value has changed since the last comparison, or "" if that does not stop the launch.

        A condition is evaluated for the thread in which the watchpoint was set. Outside its function it counts as true.
        """
        if not self._is_visible(moment):
            return ""
        before, self._last = self._last, self._value(recorder, moment)
        if before == self._last or None in (before, self._last):
            return ""
        if self.condition and not self._holds(recorder, moment):
            return ""
        self.hits += 1
        if self.ignored:
            self.ignored -= 1
            return ""
        change = f"Watchpoint {self.number}: {self.text} changes from {before} to {self._last}"
        return change + self._writer(recorder, moment)

    @property
    def is_global(self) -> bool:
        """Whether the value is in global memory, so that all blocks and later launches may change it."""
        return self._memory is not None and self._memory[0] == "global"

    def leave_launch(self) -> None:
        """Take note that the launch has ended; the host may change the value before the next one."""
        self._chunk = self._function = self._last = None

    def _is_visible(self, moment: Moment) -> bool:
        """Return whether the value can be read at a moment; shared and local memory is that of the moment's block."""
        return self.is_global or moment.chunk is self._chunk

    def _writer(self, recorder: Recorder, moment: Moment) -> str:
        """Return after which line and in which threads the value has changed, or "" if that was not recorded."""
        last = next((one for one in recorder.before(moment) if self._is_visible(one)), None)
        if last is None or last.running is None:
            return ""
        place = f" after {user_place_text(recorder, last.running)}"
        if self._memory is not None:
            _, type_, address = self._memory
            lanes = recorder.memory_of(last, self._lane, 1).writing_lanes(address, type_.size).tolist()
        else:
            lanes = [self._lane] if last.chunk is self._chunk and last.runs(self._lane) else []
        return f"{place} in {threads_text(last, lanes)}" if lanes else place

    def _value(self, recorder: Recorder, moment: Moment) -> str | None:
        """Return the value as text, or None if the thread has exited or is not in the function."""
        value = self._evaluated(recorder, moment)
        if value in (None, UNKNOWN) and self._memory is not None and self._is_visible(moment):
            _, type_, address = self._memory
            memory = recorder.memory_of(moment, self._lane, 1)
            loaded = memory.load(type_, np.array([address], np.uint64), np.ones(1, np.bool_))
            return value_text_in(memory, loaded, 0)
        return value

    def _scope(self, recorder: Recorder, moment: Moment) -> Scope | None:
        """Return the names that are visible to the thread in the watchpoint's function, or None outside of it."""
        group = moment.group_of(self._lane) if moment.chunk is self._chunk else None
        frames = [] if group is None else recorder.frames(group)
        if group is None or len(frames) + self._place < 0 or _function(group, frames[self._place]) != self._function:
            return None
        return recorder.scope(moment, group, self._place)

    def _holds(self, recorder: Recorder, moment: Moment) -> bool:
        scope = self._scope(recorder, moment)
        if scope is None:
            return True
        holds, known = recorder.holds(self.condition, scope)
        position = int(np.searchsorted(scope.group.lanes, self._lane))
        return bool(holds[position] or not known[position])

    def _evaluated(self, recorder: Recorder, moment: Moment) -> str | None:
        scope = self._scope(recorder, moment)
        if scope is None:
            return None
        try:
            value = recorder.evaluate(self.text, scope)
        except ValueError:
            return UNKNOWN
        position = int(np.searchsorted(scope.group.lanes, self._lane))
        self._memory = None
        if value.addresses is not None and value.is_placed[position]:
            address = int(value.addresses[position])
            space = recorder.space_of(address)
            self._memory = (space, value.type, address) if space != "local" else None
        return value_text_in(scope.memory, value, position)


def _function(group: LaneGroup, frame: Frame) -> tuple[Any, Any]:
    """Return what a frame executes."""
    return group.levels[frame.level].code, frame.inlined
