"""The tables of a report: the steps, the latest run compared with the previous one, and the runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...pages.tables import Cell, table
from ..times import format_seconds
from .runs import Entry, Run
from .steps import SHORTEST
from .trend_chart import written
from .trends import TIME, Setup, Step, Trend

# A time is called slower or faster if it changes by at least this fraction and the interquartile ranges of the two runs
# do not overlap.
_SMALLEST = 0.01
_MOST_STEPS = 100


def percent(change: float) -> str:
    """Format a relative change as a percentage with its sign."""
    return f"{100 * change:+.1f} %"


def _by(trend: Trend, step: Step) -> str:
    """Format the change of a step: relative, or absolute if the figure was 0 before."""
    return f"+{written(trend.figure, step.after)}" if math.isinf(step.change) else percent(step.change)


def changes(trend: Trend) -> list[tuple[str, str]]:
    """Return one line of text with its CSS class per step of a trend."""
    found = []
    for step in trend.steps:
        kind = "worse" if step.worse else "better"
        before, after = written(trend.figure, step.before), written(trend.figure, step.after)
        found.append((f"{_by(trend, step)}, {kind}: {before} to {after} {_since(step.last, step.first)}", kind))
    return found


def _since(last: Run, first: Run) -> str:
    """Return the place of a step: its commit, the measured commit before, and the NVRTC versions if they differ."""
    other = last.nvrtc and first.nvrtc and last.nvrtc != first.nvrtc
    compiler = f", compiled by NVRTC {first.nvrtc} instead of {last.nvrtc}" if other else ""
    if not first.short_commit:
        return f"in run {first.name}, {first.when:%Y-%m-%d}{compiler}"
    after = f", after {last.short_commit}" if last.short_commit not in ("", first.short_commit) else ""
    return f"at commit {first.short_commit}{after} ({first.when:%Y-%m-%d}, run {first.name}){compiler}"


def steps_table(setup: Setup, links: dict[str, str]) -> str:
    """Return a table of up to `_MOST_STEPS` steps, the latest first, or a sentence if there are none."""
    steps = setup.steps
    count = len(setup.runs)
    if not steps:
        if count < (2 if setup.counts else 2 * SHORTEST):
            needed = "two runs" if setup.counts else f"{2 * SHORTEST} runs of a benchmark"
            return f"<p>Steps can be detected after {needed}.</p>"
        return f"<p>No benchmark has a step in these {count} runs.</p>"
    rows = []
    for trend, step in steps[:_MOST_STEPS]:
        kind = "worse" if step.worse else "better"
        rows.append(
            (
                Cell(trend.benchmark, "name", links[trend.benchmark]),
                Cell(f"{_by(trend, step)} {kind}", f"figure {kind}"),
                Cell(trend.figure.name),
                Cell(written(trend.figure, step.before), "figure"),
                Cell(written(trend.figure, step.after), "figure"),
                Cell(step.first.short_commit, "commit"),
                Cell(f"{step.first.when:%Y-%m-%d}"),
                Cell(step.first.name),
            )
        )
    listed = table("steps", ("benchmark", "change", "figure", "before", "after", "commit", "date", "run"), rows)
    left_out = len(steps) - len(rows)
    return listed + (f"<p>{left_out} older steps are in the trends below.</p>" if left_out else "")


def timed_table(setup: Setup, links: dict[str, str]) -> str:
    """Return a table of the latest run's times, rates and ratios, with the previous run's times for comparison."""
    latest = setup.runs[-1]
    rows = []
    for name, entry in sorted(setup.entries(latest).items()):
        trend = next(trend for trend in setup.trends[name] if trend.figure == TIME)
        before, change = _beside(setup, trend)
        rows.append(
            (
                Cell(name, "name", links.get(name, "")),
                Cell(format_seconds(trend.points[-1].value), "figure"),
                change,
                Cell(before, "figure"),
                Cell(_spread(entry), "figure"),
                Cell(_bytes(entry.info.get("memory")), "figure"),
                Cell(_number(entry.info.get("GB/s")), "figure"),
                Cell(_number(entry.info.get("TFLOP/s")), "figure"),
                Cell(_ceiling(entry), "figure"),
                Cell(_peers(entry), "figure"),
            )
        )
    headings = (
        "benchmark",
        "now",
        "change",
        "before",
        "spread",
        "memory",
        "GB/s",
        "TFLOP/s",
        "of ceiling",
        "beside others",
    )
    return table("latest", headings, rows)


def _beside(setup: Setup, trend: Trend) -> tuple[str, Cell]:
    """Return the time in the previous run, if it has one, and a cell with the change since then."""
    if len(trend.points) < 2 or trend.points[-2].run is not setup.runs[-2]:
        return "", Cell("new" if len(setup.runs) > 1 else "", "figure")
    before, now = trend.points[-2:]
    if not before.value:
        return format_seconds(before.value), Cell("")
    change = now.value / before.value - 1
    # A single sample has no quartiles.
    known = before.low < before.high and now.low < now.high
    apart = known and (now.low > before.high or now.high < before.low)
    kind = ""
    if apart and abs(change) >= _SMALLEST:
        kind = "slower" if change > 0 else "faster"
    marked = {"slower": "figure worse", "faster": "figure better"}.get(kind, "figure")
    return format_seconds(before.value), Cell(f"{percent(change)} {kind}".strip(), marked)


def _spread(entry: Entry) -> str:
    if not entry.seconds or entry.quartiles is None:
        return ""
    low, high = entry.quartiles
    return f"{100 * (high - low) / entry.seconds:.1f} %"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1e3 else f"{value:.4g}"


def _bytes(nbytes: int | None) -> str:
    return "" if nbytes is None else f"{nbytes:,} bytes"


def _ceiling(entry: Entry) -> str:
    fraction = entry.info.get("of ceiling")
    return "" if fraction is None else f"{100 * fraction:.1f} % of {entry.info.get('ceiling') or 'the ceiling'}"


def _peers(entry: Entry) -> str:
    return ", ".join(f"{peer['ratio']:.3g} × {name}" for name, peer in sorted(entry.info.get("beside", {}).items()))


def counted_table(setup: Setup, links: dict[str, str]) -> str:
    """Return a table of the latest run's counts, each with its change since the previous run."""
    latest = setup.runs[-1]
    names = list(dict.fromkeys(trend.figure.name for trends in setup.trends.values() for trend in trends))
    rows = []
    for name in sorted(setup.entries(latest)):
        found = {trend.figure.name: trend for trend in setup.trends.get(name, ())}
        rows.append(
            (
                Cell(name, "name", links.get(name, "")),
                *(_figure(setup, found[figure]) if figure in found else Cell("") for figure in names),
            )
        )
    return table("latest", ("benchmark", *names), rows)


def _figure(setup: Setup, trend: Trend) -> Cell:
    if trend.points[-1].run is not setup.runs[-1]:
        return Cell("")
    now = written(trend.figure, trend.points[-1].value)
    if len(trend.points) < 2 or trend.points[-2].run is not setup.runs[-2] or not trend.steps:
        return Cell(now, "figure")
    step = trend.steps[-1]
    if step.first is not setup.runs[-1]:
        return Cell(now, "figure")
    kind = "worse" if step.worse else "better"
    return Cell(f"{now} ({_by(trend, step)} since run {step.last.name}, {kind})", f"figure {kind}")


def runs_table(runs: Sequence[Run]) -> str:
    """Return a table of all runs, the latest first."""
    rows = [
        (
            Cell(run.name, "name"),
            Cell(f"{run.when:%Y-%m-%d %H:%M} UTC"),
            Cell(run.short_commit, "commit"),
            Cell("uncommitted changes" if run.dirty else "", "dirty"),
            Cell(str(len(run.timed) or ""), "figure"),
            Cell(str(len(run.counted) or ""), "figure"),
        )
        for run in reversed(runs)
    ]
    return table("runs", ("run", "date", "commit", "work tree", "timed", "counted"), rows)
