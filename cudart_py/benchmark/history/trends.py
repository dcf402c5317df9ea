"""Trends: each figure of each benchmark over comparable runs, with its steps.

Times are compared only if device, driver, processor and Python are the same. Counts do not depend on the machine, so
only the device that counted has to be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..gates import counter_gate
from .runs import Entry, Run
from .steps import find_steps, levels


class Figure(NamedTuple):
    """A figure with a trend: its name, whether it depends on the code alone, and whether more is worse."""

    name: str
    exact: bool = False
    more_is_worse: bool = True


TIME = Figure("time")
MEMORY = Figure("memory", exact=True)


class Conditions(NamedTuple):
    """The conditions that runs must share to be comparable; a field is empty if it makes no difference."""

    device: str
    driver: str = ""
    processor: str = ""
    python: str = ""


class Point(NamedTuple):
    """A figure in one run; `low` and `high` are the quartiles of a time, or the value itself for other figures."""

    run: Run
    value: float
    low: float
    high: float


class Step(NamedTuple):
    """A change of level between the runs `last` and `first`; `before` and `after` are the levels."""

    last: Run
    first: Run
    before: float
    after: float
    worse: bool

    @property
    def change(self) -> float:
        """The change as a fraction of the level before; infinite if that was 0."""
        return (self.after - self.before) / self.before if self.before else float("inf")


@dataclass(frozen=True)
class Trend:
    """One figure of one benchmark: its points sorted by date, and the levels between its steps.

    `starts` has the index of the first point of each level.
    """

    benchmark: str
    figure: Figure
    points: Sequence[Point]
    starts: Sequence[int]
    levels: Sequence[float]
    steps: Sequence[Step]


@dataclass
class Setup:
    """The runs under the same conditions, and the trends of their benchmarks."""

    conditions: Conditions
    counts: bool
    runs: list[Run] = field(default_factory=list)
    trends: dict[str, list[Trend]] = field(default_factory=dict)

    def entries(self, run: Run) -> dict[str, Entry]:
        """Return the timed or counted entries of a run, depending on the kind of this setup, keyed by name."""
        return dict(run.counted if self.counts else run.timed)

    @property
    def steps(self) -> list[tuple[Trend, Step]]:
        """All steps, the latest first."""
        found = [(trend, step) for trends in self.trends.values() for trend in trends for step in trend.steps]
        return sorted(found, key=lambda pair: pair[1].first.when, reverse=True)


def setups(runs: Iterable[Run]) -> list[Setup]:
    """Group runs by the conditions of their times and of their counts; the setup of the latest run comes first."""
    found: dict[tuple[bool, Conditions], Setup] = {}
    for run in runs:
        for counts, entries in ((False, run.timed), (True, run.counted)):
            if entries:
                conditions = _conditions(run, counts=counts)
                found.setdefault((counts, conditions), Setup(conditions, counts)).runs.append(run)
    for setup in found.values():
        setup.trends = _trends(setup)
    return sorted(found.values(), key=lambda setup: setup.runs[-1].when, reverse=True)


def _conditions(run: Run, *, counts: bool) -> Conditions:
    entries = [*run.counted.values(), *(() if counts else run.timed.values())]
    devices = ", ".join(sorted({str(one.info["device"]) for one in entries if one.info.get("device")}))
    if counts:
        return Conditions(devices)
    machine = run.machine
    gpu = machine.get("gpu") or {}
    real = any(name in devices for name in gpu.get("devices", ()))
    processor = (machine.get("cpu") or {}).get("brand_raw") or machine.get("processor") or machine.get("machine") or ""
    version = ".".join(str(machine.get("python_version", "")).split(".")[:2])
    return Conditions(
        devices,
        str(gpu.get("driver", "")) if real else "",
        str(processor),
        f"{machine.get('python_implementation', 'CPython')} {version}".strip(),
    )


def _trends(setup: Setup) -> dict[str, list[Trend]]:
    points: dict[str, dict[Figure, list[Point]]] = {}
    for run in setup.runs:
        for name, entry in setup.entries(run).items():
            for figure, value, low, high in _figures(entry):
                points.setdefault(name, {}).setdefault(figure, []).append(Point(run, value, low, high))
    return {
        name: [_trend(name, figure, found) for figure, found in figures.items()]
        for name, figures in sorted(points.items())
    }


def _figures(entry: Entry) -> Iterator[tuple[Figure, float, float, float]]:
    """Yield the figures of an entry, each with its value and quartiles."""
    if entry.seconds is not None:
        yield TIME, entry.seconds, *(entry.quartiles or (entry.seconds, entry.seconds))
    for peer, found in sorted(entry.info.get("beside", {}).items()):
        ratio = float(found["ratio"])
        yield Figure(f"ratio to {peer}"), ratio, ratio, ratio
    if (memory := entry.info.get("memory")) is not None:
        yield MEMORY, memory, memory, memory
    for name, value in counter_gate.figures(entry.launches).items():
        yield Figure(name, exact=True, more_is_worse=name != "lanes"), value, value, value


def _trend(benchmark: str, figure: Figure, points: Sequence[Point]) -> Trend:
    values = [point.value for point in points]
    if figure.exact:
        positions = [place for place in range(1, len(values)) if values[place] != values[place - 1]]
    else:
        positions = find_steps(values)
    heights = levels(values, positions)
    steps = [
        Step(
            points[place - 1].run,
            points[place].run,
            heights[number],
            heights[number + 1],
            worse=(heights[number + 1] > heights[number]) == figure.more_is_worse,
        )
        for number, place in enumerate(positions)
    ]
    return Trend(benchmark, figure, points, [0, *positions], heights, steps)
