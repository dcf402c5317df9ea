"""A chart of a trend: one point per run, the levels, and a line at each step, labelled with its commit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape

from ...pages.svg import drawing, text
from ..times import format_seconds
from .trends import TIME, Figure, Point, Trend

# In SVG units; the page scales the chart to the available width.
_WIDTH, _HEIGHT = 440, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 12, 22, 24
# The minimum relative range of the vertical axis. With a smaller range, noise would look like large changes.
_LEAST_RANGE = 0.1
_POINT = 3.2
# The maximum number of labelled steps. More labels would overlap; the list below a chart has all steps.
_LABELLED = 3


def written(figure: Figure, value: float) -> str:
    """Format a value of a figure with its unit."""
    if figure == TIME:
        return format_seconds(value)
    return f"{value:,.0f}" if figure.exact and value == int(value) else f"{value:,.4g}"


def trend_chart(trend: Trend) -> str:
    """Draw a trend; points of runs whose work tree had changes are hollow."""
    points = trend.points
    bottom, top = _range(trend)

    def x(place: float) -> float:
        return _LEFT + (place + 0.5) * (_WIDTH - _LEFT - _RIGHT) / len(points)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - bottom) / (top - bottom) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        *_scale(bottom, top, y, trend.figure),
        *_dates(trend, x),
        *_levels(trend, x, y),
        *_steps(trend, x),
        *(_point(trend.figure, point, x(place), y) for place, point in enumerate(points)),
    ]
    label = f"{trend.figure.name} of {trend.benchmark} in {len(points)} runs, steps: {len(trend.steps)}"
    return drawing(label, _WIDTH, _HEIGHT, parts)


def _range(trend: Trend) -> tuple[float, float]:
    lowest, highest = min(point.low for point in trend.points), max(point.high for point in trend.points)
    middle = (lowest + highest) / 2
    half = max((highest - lowest) * 0.55, abs(middle) * _LEAST_RANGE / 2)
    # All values are 0.
    half = half or 1.0
    return max(0.0, middle - half), middle + half


def _scale(bottom: float, top: float, y: Callable[[float], float], figure: Figure) -> Iterator[str]:
    """Draw grid lines at round values, labelled in one unit."""
    factor, unit = _unit(top) if figure == TIME else (1.0, "")
    size = 10.0 ** math.floor(math.log10((top - bottom) * factor / 3))
    distance = max(size * part for part in (1, 2, 5) if size * part * 3 <= (top - bottom) * factor * (1 + 1e-9))
    digits = max(0, -math.floor(math.log10(distance) + 1e-9))
    for number in range(math.ceil(bottom * factor / distance), math.floor(top * factor / distance) + 1):
        height = y(number * distance / factor)
        yield f'<path class="grid" d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}"/>'
        yield text(_LEFT - 6, height + 4, f"{number * distance:,.{digits}f} {unit}".strip(), "end")


def _unit(seconds: float) -> tuple[float, str]:
    """Return a suitable unit for a time: the number of units per second, and the unit's name."""
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns"))
    return next((pair for pair in units if seconds * pair[0] >= 1), units[-1])


def _dates(trend: Trend, x: Callable[[float], float]) -> Iterator[str]:
    """Draw the dates of the first and the last run."""
    last = len(trend.points) - 1
    yield text(x(0) - _POINT, _HEIGHT - 6, f"{trend.points[0].run.when:%Y-%m-%d}", "start")
    if last:
        yield text(x(last) + _POINT, _HEIGHT - 6, f"{trend.points[last].run.when:%Y-%m-%d}", "end")


def _levels(trend: Trend, x: Callable[[float], float], y: Callable[[float], float]) -> Iterator[str]:
    ends = [*trend.starts[1:], len(trend.points)]
    for start, end, level in zip(trend.starts, ends, trend.levels, strict=True):
        yield f'<path class="level" d="M{x(start - 0.4):.1f} {y(level):.1f}H{x(end - 0.6):.1f}"/>'


def _steps(trend: Trend, x: Callable[[float], float]) -> Iterator[str]:
    for start, step in zip(trend.starts[1:], trend.steps, strict=True):
        place, kind = x(start - 0.5), "worse" if step.worse else "better"
        yield f'<path class="step {kind}" d="M{place:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>'
        if len(trend.steps) <= _LABELLED:
            anchor = "end" if place > _WIDTH * 0.75 else "start" if place < _WIDTH * 0.3 else "middle"
            yield text(place, _TOP - 7, step.first.short_commit or step.first.name, anchor, kind)


def _point(figure: Figure, point: Point, across: float, y: Callable[[float], float]) -> str:
    """Draw a run's value, its quartiles if it has any, and a tooltip that describes the run."""
    run = point.run
    known = f"{run.name}, {run.when:%Y-%m-%d %H:%M}, {run.short_commit or 'no commit'}: {written(figure, point.value)}"
    range_ = ""
    if point.low < point.high:
        range_ = f'<path class="quartiles" d="M{across:.1f} {y(point.low):.1f}V{y(point.high):.1f}"/>'
    kind = "point dirty" if run.dirty else "point"
    circle = f'<circle class="{kind}" cx="{across:.1f}" cy="{y(point.value):.1f}" r="{_POINT}">'
    return f"{range_}{circle}<title>{escape(known)}</title></circle>"
