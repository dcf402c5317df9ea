"""The progress of a tour: a bar with the time left, from the recorded seconds of each stop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from . import recorded, timing

# The seconds of each stop at its small size, on the simulator.
SECONDS = Path(__file__).with_name("seconds.json")
# This many seconds count as having passed at the recorded pace, so that the first stop alone does not set the pace.
PRIOR_SECONDS = 5.0
# A stop that takes longer than expected does not fill its part of the bar.
MOST_OF_A_STOP = 0.95
# Narrower terminals do not show what the stop is doing, and still narrower ones do not show the bar.
ROOM_FOR_WORK, ROOM_FOR_BAR = 80, 50

_listeners: list[Callable[[str], None]] = []


def tell(work: str) -> None:
    """Report what the running stop is doing, such as a variant's name."""
    for listener in _listeners:
        listener(work)


def recorded_seconds(names: Sequence[str]) -> dict[str, float]:
    """Return the recorded seconds of stops at their default sizes, for a driver of this kind."""
    if timing.available():
        run = recorded.run()
        known = {stop["name"]: float(stop["seconds"]) for stop in run["stops"]}
    else:
        known = json.loads(SECONDS.read_text(encoding="utf-8"))
    return {name: known[name] for name in names if name in known}


class Pace:
    """The part of a tour that is done and the time left, from the recorded seconds and the speed of this machine.

    `expected` holds the recorded seconds of each stop. If any are missing, nothing is known.
    """

    def __init__(
        self, names: Sequence[str], expected: Mapping[str, float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._expected = {name: max(expected[name], 0.01) for name in names if name in expected}
        self._known = len(self._expected) == len(names)
        self._clock = clock
        self._begun: tuple[str, float] | None = None
        self._done = self._taken = 0.0  # recorded seconds of the stops that are done, and what they took here

    def begin(self, name: str) -> None:
        """Record the time at which a stop begins."""
        self._begun = (name, self._clock())

    def end(self) -> None:
        """Record the time at which the stop ends."""
        if self._known and self._begun:
            name, since = self._begun
            self._done += self._expected[name]
            self._taken += self._clock() - since
        self._begun = None

    def fraction(self) -> float | None:
        """Return the part of the tour that is done, None if nothing is known."""
        return self._at() / sum(self._expected.values()) if self._known else None

    def seconds_left(self) -> float | None:
        """Return how long the rest will take, None if nothing is known."""
        return self._slowness() * (sum(self._expected.values()) - self._at()) if self._known else None

    def _slowness(self) -> float:
        return (self._taken + PRIOR_SECONDS) / (self._done + PRIOR_SECONDS)

    def _at(self) -> float:
        if not self._begun:
            return self._done
        name, since = self._begun
        inside = (self._clock() - since) / self._slowness()
        return self._done + min(inside, MOST_OF_A_STOP * self._expected[name])


class _Bar(BarColumn):
    def __init__(self, pace: Pace) -> None:
        super().__init__(bar_width=20)
        self._pace = pace

    def render(self, task: Task) -> ProgressBar:
        fraction = self._pace.fraction()
        return ProgressBar(
            total=1.0, completed=fraction or 0.0, width=20, pulse=fraction is None, animation_time=task.get_time()
        )


class _Left(ProgressColumn):
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def render(self, task: Task) -> Text:
        left = self._pace.seconds_left()
        if left is None:
            minutes, seconds = divmod(int(task.elapsed or 0), 60)
            return Text(f"{minutes}:{seconds:02}", "dim")
        minutes, seconds = divmod(round(left), 60)
        return Text(f"{minutes}:{seconds:02} left", "dim")


class Steps:
    """The callbacks with which a tour updates its progress bar."""

    def __init__(self, progress: Progress, pace: Pace, count: int, *, says_work: bool) -> None:
        self._progress, self._pace, self._says_work = progress, pace, says_work
        self._task = progress.add_task("", total=count)
        self._name = ""

    def begin(self, name: str) -> None:
        """Report that a stop begins."""
        self._pace.begin(name)
        self._name = name
        self._progress.update(self._task, description=name)

    def work(self, work: str) -> None:
        """Report what the stop is doing."""
        if self._says_work:
            self._progress.update(self._task, description=f"{self._name}: {work}")

    def end(self) -> None:
        """Report that the stop has ended."""
        self._pace.end()
        self._progress.advance(self._task)


@contextmanager
def bar(console: Console, names: Sequence[str], expected: Mapping[str, float]) -> Iterator[Steps]:
    """Show a progress bar while the block runs, if the console is a terminal and not quiet; yield its callbacks."""
    pace = Pace(names, expected)
    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False)]
    if console.width >= ROOM_FOR_BAR:
        columns.append(_Bar(pace))
    columns += [TextColumn("{task.completed}/{task.total}"), _Left(pace)]
    # A bar redirects printed text to its console, and a quiet console would discard it.
    shown = console.is_terminal and not console.quiet
    progress = Progress(*columns, console=console, transient=True, disable=not shown, refresh_per_second=5)
    steps = Steps(progress, pace, len(names), says_work=console.width >= ROOM_FOR_WORK)
    _listeners.append(steps.work)
    try:
        with progress:
            yield steps
    finally:
        _listeners.remove(steps.work)
