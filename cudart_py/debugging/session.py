"""A session of the debugger: it decides where launches stop, and keeps the moment and the thread that are shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .breakpoints import Breakpoint, Breakpoints
from .stepping import Continue, Kind, Step, is_past_prologue, step_back
from .waits import waits
from .watches import Watch

if TYPE_CHECKING:
    from ..simulator.debugging.frames import Frame
    from ..simulator.debugging.moments import LaneGroup, Moment
    from ..simulator.debugging.recorder import Recorder
    from ..simulator.debugging.scope import Scope

Plan = Continue | Step


@dataclass(frozen=True)
class Stop:
    """The reason why a launch has stopped.

    `reason` is breakpoint, watch, step, exited, finding, fault, interrupt or entry, or start or end at the ends of the
    recorded history. `text` is the sanitizer's report, the change of a watched value, or the reason why a condition has
    none.
    """

    reason: str
    text: str = ""
    breakpoint: Breakpoint | None = None
    watches: tuple[Watch, ...] = ()

    @property
    def points(self) -> tuple[Breakpoint | Watch, ...]:
        """The breakpoint or the watchpoints at which the launch has stopped."""
        return self.watches if self.breakpoint is None else (self.breakpoint,)


class NotRunningError(ValueError):
    """No kernel is running, so there is nothing to show."""


class Frontend(Protocol):
    """The interface to the user."""

    def launched(self, session: Session) -> None:
        """A kernel has been launched; its breakpoints are known now."""

    def stopped(self, session: Session, stop: Stop) -> None:
        """A launch has stopped. The method returns when it may resume."""

    def finished(self, session: Session) -> None:
        """A launch has ended."""


class Session:
    """A debugger that is attached to the simulator, with its breakpoints.

    While a launch is stopped, `moment` is the moment that is shown, `lane` the thread in focus, as an index within the
    blocks that run together, and `level` the index of a frame of its call stack (0: the innermost).
    """

    def __init__(self, frontend: Frontend, *, stop_at_entry: bool = False, stop_at_findings: bool = True) -> None:
        self.breakpoints = Breakpoints()
        self.watches: list[Watch] = []
        self.stop_at_findings = stop_at_findings
        self.level = 0
        self.lane = 0
        # The values that `print` has shown.
        self.shown: list[Any] = []
        self._frontend = frontend
        self._recorder: Recorder | None = None
        self._moment: Moment | None = None
        self._plan: Plan = Continue()
        self._sites: dict[int, list[Breakpoint]] = {}
        self._interrupted = stop_at_entry
        self._entry = stop_at_entry
        # The breakpoint or watchpoint at which the launch is stopped.
        self._hit: Breakpoint | Watch | None = None

    # --- the launch that runs

    def started(self, recorder: Recorder) -> None:
        """Find the breakpoints' instructions in a kernel that has been launched."""
        self._recorder = recorder
        self._plan = Continue()
        self.locate()
        self._frontend.launched(self)

    def reached(self, moment: Moment) -> None:
        """Stop at a moment that a breakpoint or the plan ends at."""
        self._moment = moment
        if self._interrupted:
            if not self._entry or (moment.running and moment.running.site and self._is_entry(moment.running.site)):
                self._stop(Stop("entry" if self._entry else "interrupt"))
            return
        stop = self._stop_at(moment)
        if stop is not None:
            self._stop(stop)

    def found(self, moment: Moment) -> None:
        """Stop where the sanitizer has found a mistake, or where the launch fails."""
        self._moment = moment
        stop = self._stop_at_mistake(moment)
        if stop is not None:
            self._stop(stop)

    def finished(self) -> None:
        """Forget the launch, which has ended."""
        self._frontend.finished(self)
        self._recorder = self._moment = None
        self.watches = [one for one in self.watches if one.is_global]
        for one in self.watches:
            one.leave_launch()

    def stops_from(self, recorder: Recorder, first: int) -> int:
        """Return the first block, from `first` on, in which a break- or watchpoint or the plan may stop the launch."""
        if self._entry or not isinstance(self._plan, Continue) or self._follows_memory:
            return first
        blocks: int = recorder.state.blocks
        active = (one for one in self.breakpoints if one.sites and one.is_enabled)
        return min((one.first_block(recorder, first) for one in active), default=blocks)

    @property
    def _follows_memory(self) -> bool:
        """Whether a watchpoint follows global memory, so that all blocks must be recorded."""
        return any(one.is_global and one.is_enabled for one in self.watches)

    @property
    def is_interrupted(self) -> bool:
        """Whether the launch will stop at its next instruction."""
        return self._interrupted

    def interrupt(self) -> None:
        """Stop at the next instruction."""
        self._interrupted = True

    def stop_at_next_entry(self) -> None:
        """Stop the next launch at its first line."""
        self._interrupted = self._entry = True

    def ignore_stops(self) -> None:
        """Let launches run from now on without stopping them."""
        self.breakpoints.clear()
        self.watches = []
        self.locate()
        self.stop_at_findings = self._interrupted = False

    def locate(self) -> None:
        """Find the breakpoints' instructions again, after a change of the breakpoints."""
        sites: dict[int, list[Breakpoint]] = {}
        for one in self.breakpoints:
            if self._recorder is not None:
                one.locate(self._recorder)
                for site in one.sites if one.is_enabled else ():
                    sites.setdefault(site, []).append(one)
        # At once, because a launch may be running in another thread.
        self._sites = sites

    def _stop(self, stop: Stop) -> None:
        self._interrupted = self._entry = False
        self._hit = next(iter(stop.points), None)
        self._settle()
        self.recorder.shown(self.moment)
        self._frontend.stopped(self, stop)

    def _settle(self) -> None:
        """Show a thread of the present moment if the one in focus is not in it, and its function."""
        moment = self.moment
        if moment.group_of(self.lane) is None:
            self.lane = int(next(moment.groups).lanes[0])
        self.level = self.recorder.source_frame(self.group)

    def _is_entry(self, site: Any) -> bool:
        return self.recorder.lines.is_entry(site)

    def _stop_at_mistake(self, moment: Moment) -> Stop | None:
        """Return the stop at a mistake of a moment's instruction, and put the thread that it names in focus."""
        if moment.mistake is None or not self.stop_at_findings:
            return None
        self.lane = moment.mistake.lane
        report = moment.mistake.report.replace(os.getcwd() + os.sep, "")
        if moment.mistake.waits:
            report += "\n" + waits(self, is_summary=True)
        return Stop("fault" if moment.mistake.is_fault else "finding", report)

    def _stop_at(self, moment: Moment) -> Stop | None:
        """Return why a moment stops the launch, and put its thread in focus."""
        watches = [one for one in self.watches if one.is_enabled]
        changes = {watch: text for watch in watches if (text := watch.changed(self.recorder, moment))}
        if changes:
            return Stop("watch", "\n".join(changes.values()), watches=tuple(changes))
        group = moment.running
        hits = self._sites.get(id(group.site)) if group is not None and group.begins else None
        for one in hits or ():
            try:
                lane = one.lane(self.recorder, moment, self.lane)
            except ValueError as error:
                return Stop("breakpoint", f"the condition {one.condition!r} has no value: {error}", one)
            if lane is not None:
                one.hits += 1
                if one.ignored:
                    one.ignored -= 1
                    continue
                self.lane = lane
                if one.is_temporary:
                    self.breakpoints.remove(one.number)
                    self.locate()
                return Stop("breakpoint", breakpoint=one)
        reason = self._plan.stops(moment)
        if reason == "exited" and group is not None:
            self.lane = int(group.lanes[0])
        return Stop(reason) if reason else None

    # --- commands, while the launch is stopped

    @property
    def is_running(self) -> bool:
        """Whether a kernel has been launched and has not ended."""
        return self._recorder is not None

    @property
    def recorder(self) -> Recorder:
        """The recorder of the launch; raises NotRunningError if no kernel runs."""
        if self._recorder is None:
            raise NotRunningError("no kernel is running")
        return self._recorder

    @property
    def moment(self) -> Moment:
        """The moment that is shown; raises NotRunningError if no kernel runs."""
        if self._moment is None:
            raise NotRunningError("no kernel is running")
        return self._moment

    @property
    def is_past(self) -> bool:
        """Whether the moment that is shown has passed, so that resuming means replaying the history."""
        return self.moment is not self.recorder.history[-1]

    @property
    def group(self) -> LaneGroup:
        """The group of the thread in focus."""
        group = self.moment.group_of(self.lane)
        assert group is not None
        return group

    @property
    def frame(self) -> Frame:
        """The frame in focus."""
        return self.recorder.frames(self.group)[self.level]

    @property
    def scope(self) -> Scope:
        """The names that are visible to the thread in focus."""
        scope = self.recorder.scope(self.moment, self.group, self.level)
        scope.shown = self.shown
        return scope

    @property
    def focused(self) -> tuple[Moment, int, int]:
        """The moment, the thread and the frame in focus."""
        return self.moment, self.lane, self.level

    @focused.setter
    def focused(self, focus: tuple[Moment, int, int]) -> None:
        self._moment, self.lane, self.level = focus

    def focus(self, lane: int) -> None:
        """Put a thread in focus; raises ValueError if it has exited."""
        if self.moment.group_of(lane) is None:
            raise ValueError("this thread has exited")
        self.lane = lane
        self._settle()

    def focus_block(self, index: tuple[int, ...]) -> None:
        """Put the first thread of another block in focus, at its latest moment; raises ValueError if there is none.

        `index` has three coordinates. Blocks that wait for others take turns, so that this moment may be in the past.
        """
        for moment in reversed(self.recorder.history):
            for lane in range(0, moment.chunk.blocks * moment.chunk.threads, moment.chunk.threads):
                if moment.block_index(lane) != index:
                    continue
                present = next((one for one in moment.block_lanes(lane) if moment.group_of(one) is not None), None)
                if present is not None:
                    self._moment, self.lane = moment, present
                    self._settle()
                    return
        grid = self.moment.chunk.state.launch.grid
        if len(index) > 3 or any(one >= extent for one, extent in zip(index, grid, strict=True)):
            raise ValueError(f"there is no block {index}: the grid is {grid}")
        number = index[0] + grid[0] * (index[1] + grid[1] * index[2])
        if number >= self.recorder.begun:
            text = ",".join(map(str, index)).removesuffix(",0").removesuffix(",0")
            raise ValueError(f"block {index} has not begun: until block {text} continues to it")
        raise ValueError(f"block {index} has ended, or it is not in the recorded history")

    def watch(self, text: str) -> Watch:
        """Stop the launch when the value of an expression for the thread in focus changes."""
        made = Watch(self.breakpoints.next_number(), text, self)
        self.watches.append(made)
        return made

    def stop_point(self, number: int) -> Breakpoint | Watch:
        """Return a breakpoint or a watchpoint; raises ValueError if there is none with this number."""
        return next((one for one in self.watches if one.number == number), None) or self.breakpoints.get(number)

    def set_enabled(self, one: Breakpoint | Watch, *, is_enabled: bool) -> None:
        """Enable or disable a breakpoint or a watchpoint."""
        if isinstance(one, Watch) and is_enabled and not one.is_enabled and self._moment is not None:
            one.update(self.recorder, self.moment)
        one.is_enabled = is_enabled
        self.locate()

    def remove(self, number: int) -> None:
        """Remove a breakpoint or a watchpoint; raises ValueError if there is none with this number."""
        if any(one.number == number for one in self.watches):
            self.watches = [one for one in self.watches if one.number != number]
        else:
            self.breakpoints.remove(number)
            self.locate()

    def ignore(self, hits: int) -> Breakpoint | Watch:
        """Ignore the next hits of the breakpoint or watchpoint at which the launch is stopped, and return it.

        Raises ValueError if the launch is not stopped at one that is still there.
        """
        if self._hit is None or not any(one is self._hit for one in (*self.breakpoints, *self.watches)):
            raise ValueError("the launch is not stopped at a breakpoint or watchpoint whose hits could be ignored")
        self._hit.ignored = hits
        return self._hit

    def resume(self) -> Stop | None:
        """Continue to the next breakpoint or finding. Returns None if the launch itself must resume first."""
        return self._forwards(Continue())

    def step(self, kind: Kind) -> Stop | None:
        """Continue to another line of the thread in focus; see `Step` and `resume`."""
        return self._forwards(Step(self.recorder, self.moment, self.lane, kind, self.level))

    def resume_backwards(self) -> Stop:
        """Return to the last moment before this one at a breakpoint or a finding, or to the start of the history."""
        self._plan = Continue(backwards=True)
        self._begin()
        for moment in self.recorder.before(self.moment):
            if (stop := self._recorded_stop(moment)) is not None:
                return stop
        return self._show_start()

    def step_back(self, kind: Kind) -> Stop:
        """Return to the start of the thread's line, or of the line before; or else to the start of the history."""
        moment = step_back(self.recorder, self.moment, self.lane, kind, self.level)
        if moment is None:
            return self._show_start()
        return self._show(moment, Stop("step"))

    def _forwards(self, plan: Plan) -> Stop | None:
        self._plan = plan
        was_past, start = self.is_past, self._begin()
        for moment in self.recorder.history:
            if moment.number > start and (stop := self._recorded_stop(moment)) is not None:
                return stop
        latest = self.recorder.history[-1]
        if was_past and isinstance(plan, Continue):
            return self._show(latest, Stop("end"))
        self._moment = latest
        return None

    def _begin(self) -> int:
        """Prepare to leave the moment that is shown; return its number."""
        for watch in self.watches:
            watch.update(self.recorder, self.moment)
        return self.moment.number

    def _show_start(self) -> Stop:
        """Show the start of the history: where the parameters of the first kernel or function have been loaded."""
        history = self.recorder.history
        moment = next((one for one in history if is_past_prologue(self.recorder, one)), history[0])
        return self._show(moment, Stop("start"))

    def _recorded_stop(self, moment: Moment) -> Stop | None:
        if self._interrupted:
            self._interrupted = self._entry = False
            return self._show(moment, Stop("interrupt"))
        stop = self._stop_at_mistake(moment) or self._stop_at(moment)
        return None if stop is None else self._show(moment, stop)

    def _show(self, moment: Moment, stop: Stop) -> Stop:
        self._moment = moment
        self._hit = next(iter(stop.points), None)
        self._settle()
        return stop
