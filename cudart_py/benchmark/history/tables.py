"""The tables of a report: the steps, the latest run beside the one before, the runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from ..record import format_seconds
from .runs import Entry, Run
from .steps import SHORTEST
from .trend_chart import written
from .trends import TIME, Setup, Trend

__all__ = ["breakable", "changes", "counted_table", "percent", "runs_table", "steps_table", "timed_table"]

# A time is called slower or faster from this change on, where the quartiles of the two runs do not overlap.
_SMALLEST = 0.01
_MOST_STEPS = 100


class _Cell(NamedTuple):
    """A cell of a table: its text, its CSS classes, where a click leads to."""

    text: str
    kind: str = ""
    link: str = ""

    def html(self, tag: str = "td") -> str:
        content = breakable(self.text) if self.kind == "name" else escape(self.text)
        if self.link:
            content = f'<a href="#{self.link}">{content}</a>'
        return f'<{tag} class="{self.kind}">{content}</{tag}>' if self.kind else f"<{tag}>{content}</{tag}>"


def breakable(name: str) -> str:
    """Return the name of a benchmark as HTML that may be broken between its parts."""
    return re.sub(r"(/|::|\[)", r"\1<wbr>", escape(name))


def _table(kind: str, headings: Sequence[str], rows: Iterable[Sequence[_Cell]]) -> str:
    """Write a table in a box that scrolls where it is too wide; columns with nothing below the heading are left out."""
    columns = list(zip([_Cell(heading) for heading in headings], *rows, strict=True))
    kept = [column for column in columns if any(cell.text for cell in column[1:])]
    head, *body = zip(*kept, strict=True)
    lines = "".join(f"<tr>{''.join(cell.html() for cell in row)}</tr>" for row in body)
    first = "".join(cell.html("th") for cell in head)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{first}</tr></thead><tbody>{lines}</tbody></table></div>'
    )


def percent(change: float) -> str:
    """Write a change, a part of what was before, with its sign."""
    return "from 0" if math.isinf(change) else f"{100 * change:+.1f} %"


def changes(trend: Trend) -> list[tuple[str, str]]:
    """Return a line of text for each step of a trend, and its CSS class."""
    found = []
    for step in trend.steps:
        kind = "worse" if step.worse else "better"
        before, after = written(trend.figure, step.before), written(trend.figure, step.after)
        found.append((f"{percent(step.change)}, {kind}: {before} to {after} {_since(step.last, step.first)}", kind))
    return found


def _since(last: Run, first: Run) -> str:
    """Say at which commit a step is, and after which one that was measured."""
    if not first.short_commit:
        return f"in run {first.name}, {first.when:%Y-%m-%d}"
    after = f", after {last.short_commit}" if last.short_commit not in ("", first.short_commit) else ""
    return f"at commit {first.short_commit}{after} ({first.when:%Y-%m-%d}, run {first.name})"


def steps_table(setup: Setup, links: dict[str, str]) -> str:
    """Return the table of all steps, the latest first, or a sentence where there are none."""
    steps = setup.steps
    count = len(setup.runs)
    if not steps:
        if count < (2 if setup.counts else 2 * SHORTEST):
            needed = "two runs" if setup.counts else f"{2 * SHORTEST} runs of a benchmark"
            return f"<p>Steps show from {needed} on.</p>"
        return f"<p>No benchmark has a step in these {count} runs.</p>"
    rows = []
    for trend, step in steps[:_MOST_STEPS]:
        kind = "worse" if step.worse else "better"
        rows.append(
            (
                _Cell(trend.benchmark, "name", links[trend.benchmark]),
                _Cell(f"{percent(step.change)} {kind}", f"figure {kind}"),
                _Cell(trend.figure.name),
                _Cell(written(trend.figure, step.before), "figure"),
                _Cell(written(trend.figure, step.after), "figure"),
                _Cell(step.first.short_commit, "commit"),
                _Cell(f"{step.first.when:%Y-%m-%d}"),
                _Cell(step.first.name),
            )
        )
    table = _table("steps", ("benchmark", "change", "figure", "before", "after", "commit", "date", "run"), rows)
    left_out = len(steps) - len(rows)
    return table + (f"<p>{left_out} older steps are in the trends below.</p>" if left_out else "")


def timed_table(setup: Setup, links: dict[str, str]) -> str:
    """Return the times, rates and ratios of the latest run, the times beside those of the run before."""
    latest = setup.runs[-1]
    rows = []
    for name, entry in sorted(setup.entries(latest).items()):
        trend = next(trend for trend in setup.trends[name] if trend.figure == TIME)
        before, change = _beside(setup, trend)
        rows.append(
            (
                _Cell(name, "name", links.get(name, "")),
                _Cell(format_seconds(trend.points[-1].value), "figure"),
                change,
                _Cell(before, "figure"),
                _Cell(_spread(entry), "figure"),
                _Cell(_number(entry.info.get("GB/s")), "figure"),
                _Cell(_number(entry.info.get("TFLOP/s")), "figure"),
                _Cell(_ceiling(entry), "figure"),
                _Cell(_peers(entry), "figure"),
            )
        )
    headings = ("benchmark", "now", "change", "before", "spread", "GB/s", "TFLOP/s", "of ceiling", "beside others")
    return _table("latest", headings, rows)


def _beside(setup: Setup, trend: Trend) -> tuple[str, _Cell]:
    """Return the time in the run before the latest, if that has it, and the change since then."""
    if len(trend.points) < 2 or trend.points[-2].run is not setup.runs[-2]:
        return "", _Cell("new" if len(setup.runs) > 1 else "", "figure")
    before, now = trend.points[-2:]
    if not before.value:
        return format_seconds(before.value), _Cell("")
    change = now.value / before.value - 1
    # One sample has no quartiles.
    known = before.low < before.high and now.low < now.high
    apart = known and (now.low > before.high or now.high < before.low)
    kind = ""
    if apart and abs(change) >= _SMALLEST:
        kind = "slower" if change > 0 else "faster"
    marked = {"slower": "figure worse", "faster": "figure better"}.get(kind, "figure")
    return format_seconds(before.value), _Cell(f"{percent(change)} {kind}".strip(), marked)


def _spread(entry: Entry) -> str:
    if not entry.seconds or entry.quartiles is None:
        return ""
    low, high = entry.quartiles
    return f"{100 * (high - low) / entry.seconds:.1f} %"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1e3 else f"{value:.4g}"


def _ceiling(entry: Entry) -> str:
    fraction = entry.info.get("of ceiling")
    return "" if fraction is None else f"{100 * fraction:.1f} % of {entry.info.get('ceiling') or 'its own'}"


def _peers(entry: Entry) -> str:
    return ", ".join(f"{peer['ratio']:.3g} × {name}" for name, peer in sorted(entry.info.get("beside", {}).items()))


def counted_table(setup: Setup, links: dict[str, str]) -> str:
    """Return what was counted in the latest run, each figure with its change since the run before."""
    latest = setup.runs[-1]
    names = list(dict.fromkeys(trend.figure.name for trends in setup.trends.values() for trend in trends))
    rows = []
    for name in sorted(setup.entries(latest)):
        found = {trend.figure.name: trend for trend in setup.trends.get(name, ())}
        rows.append(
            (
                _Cell(name, "name", links.get(name, "")),
                *(_figure(setup, found[figure]) if figure in found else _Cell("") for figure in names),
            )
        )
    return _table("latest", ("benchmark", *names), rows)


def _figure(setup: Setup, trend: Trend) -> _Cell:
    if trend.points[-1].run is not setup.runs[-1]:
        return _Cell("")
    now = written(trend.figure, trend.points[-1].value)
    if len(trend.points) < 2 or trend.points[-2].run is not setup.runs[-2] or not trend.steps:
        return _Cell(now, "figure")
    step = trend.steps[-1]
    if step.first is not setup.runs[-1]:
        return _Cell(now, "figure")
    kind = "worse" if step.worse else "better"
    return _Cell(f"{now} ({percent(step.change)} {kind})", f"figure {kind}")


def runs_table(runs: Sequence[Run]) -> str:
    """Return the list of runs, the latest first."""
    rows = [
        (
            _Cell(run.name, "name"),
            _Cell(f"{run.when:%Y-%m-%d %H:%M} UTC"),
            _Cell(run.short_commit, "commit"),
            _Cell("uncommitted changes" if run.dirty else "", "dirty"),
            _Cell(str(len(run.timed) or ""), "figure"),
            _Cell(str(len(run.counted) or ""), "figure"),
        )
        for run in reversed(runs)
    ]
    return _table("runs", ("run", "date", "commit", "work tree", "timed", "counted"), rows)
