"""A stop's result as pictures, SVG and PNG, and films as GIF, with matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .captions import caption, quantity
from .counter_plots import counted_panels, draw_panels
from .figures import FORMATS, WIDTH, differ, figure, row_labels, save, ticks
from .report import number
from .stop import Bars, Curve, Film, Limit, Panels, Picture, Result, Row, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

LEGEND_LETTERS = 15  # characters per inch
BAR_HEIGHT, AROUND_BARS = 0.25, 1.3  # inches
FILM_MS = 150  # per frame
LIMIT: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.2, "zorder": 1}  # below the data
SHADES = ("C0", "C9")  # alternate, so that adjacent spans can be told apart
MARKERS = "os^Dv<>pP*"
MOST_MARKED = 40  # points; a line with more has no markers
# Line widths in points: each line is one step wider than the one drawn over it; all steps together are at most
# MOST_STEPS.
NARROWEST, STEP, MOST_STEPS = 1.4, 1.4, 3.2


class MissingPlotExtraError(RuntimeError):
    """matplotlib is not installed."""


def require() -> None:
    """Raise MissingPlotExtraError, which names the remedy, if matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPlotExtraError("plots need matplotlib: install the extra `plot`, pip install 'cudart-py[plot]'")


def draw(
    name: str,
    title: str,
    result: Result,
    folder: Path,
    width: float = WIDTH,
    *,
    formats: Sequence[str] = FORMATS,
) -> dict[Path, str]:
    """Draw a stop's rates and pictures into `folder`; return the files and their captions, none without a picture.

    Rates are drawn for the rows that have a fraction of the stop's limit, with the limit as a line. If the driver
    counts instead of timing, the counters and the work of the calls are drawn. Bars of equal length are not drawn.
    `width` is each picture's width in inches, and `formats` are the suffixes of its files; films have a width and a
    format of their own. Without a `title`, as on a page that shows it already, the pictures have no heading.
    """
    heading = f"{name}: {title}" if title else ""
    files: dict[Path, str] = {}
    for stem, picture in _pictures(name, result):
        match picture:
            case Curve():
                drawn = save(_curve(heading, picture, width), folder / stem, formats)
            case Bars():
                drawn = save(_bars(heading, picture, width), folder / stem, formats)
            case Timeline():
                drawn = save(_timeline(heading, picture, width), folder / stem, formats)
            case Panels():
                drawn = save(draw_panels(heading, picture, width), folder / stem, formats)
            case Film():
                drawn = [_film(heading, picture, folder / f"{stem}.gif")]
        files |= dict.fromkeys(drawn, caption(picture))
    return files


def _pictures(name: str, result: Result) -> Iterator[tuple[str, Picture]]:
    """Yield the pictures with their files' stems: the rates first, the counters last."""
    limit = result.limit
    if limit is not None and limit.rate is not None:
        rated = [row for row in result.rows if limit.unit in row.values and "of limit" in row.values]
        if rated and (rates := _with_values(_rates(limit, rated))):
            yield name, rates
    for picture in result.pictures:
        if drawn := _with_values(picture):
            yield f"{name}-{picture.name}", drawn
    for panels in counted_panels(result):
        yield f"{name}-{panels.name}", panels


def _with_values(picture: Picture) -> Picture | None:
    """Return a picture without lines and bars that have no values, or None if nothing is left to show.

    A variant whose result is wrong is not timed, and so has no values.
    """
    match picture:
        case Curve():
            lines = {label: points for label, points in picture.lines.items() if points}
            return replace(picture, lines=lines) if lines else None
        case Bars():
            bars = {label: values for label, values in picture.bars.items() if values}
            lengths = [value for values in bars.values() for value in values.values()]
            return replace(picture, bars=bars) if differ(lengths) else None
        case Panels():
            panels = {kind: values for kind, values in picture.panels.items() if differ(values.values())}
            return replace(picture, panels=panels) if panels else None
    return picture


def _rates(limit: Limit, rows: list[Row]) -> Bars:
    rates = {label: {"": float(row.values[limit.unit])} for label, row in zip(row_labels(rows), rows, strict=True)}
    return Bars("", limit.unit, rates, limit)


def _axes(title: str, subtitle: str, width: float, height: float) -> tuple[Figure, Axes]:
    drawn = figure(title, subtitle, width, height)
    axes = drawn.add_subplot()
    axes.tick_params(labelsize=9)
    return drawn, axes


def _legend(drawn: Figure, labels: Mapping[str, object], width: float) -> None:
    """Draw a legend below the axes, where it hides nothing; a single label needs none, since the title names it."""
    if len(labels) < 2:
        return
    columns = int(LEGEND_LETTERS * width / (max(map(len, labels)) + 7))
    drawn.legend(loc="outside lower center", ncols=min(max(columns, 1), len(labels)), fontsize=9)


def _dashed(line: Limit | None) -> str:
    """Return a phrase that explains the dashed line, or "" without one."""
    if line is None or line.rate is None:
        return ""
    return f"dashed: {line.name}, {number(line.rate)} {line.unit}"


def _bars(title: str, picture: Bars, width: float) -> Figure:
    cases = list(dict.fromkeys(case for bars in picture.bars.values() for case in bars))
    height = AROUND_BARS + BAR_HEIGHT * max(2, len(picture.bars) * (len(cases) + 0.3))
    drawn, axes = _axes(title, _dashed(picture.line), width, height)
    thickness = 0.8 / len(cases)
    for rank, case in enumerate(cases):
        places = [place + thickness * (rank - (len(cases) - 1) / 2) for place in range(len(picture.bars))]
        lengths = [bars.get(case, 0.0) for bars in picture.bars.values()]
        axes.barh(places, lengths, thickness, label=case)
        for place, bars in zip(places, picture.bars.values(), strict=True):
            # Next to the frame, where no line or bar passes.
            axes.text(
                1.01,
                place,
                number(bars[case]) if case in bars else "",
                transform=axes.get_yaxis_transform(),
                fontsize=8,
                verticalalignment="center",
            )
    axes.set_yticks(range(len(picture.bars)), list(picture.bars))
    axes.set_ylim(len(picture.bars) - 0.5, -0.5)  # in the table's order, from the top
    if picture.line is not None and picture.line.rate is not None:
        axes.axvline(picture.line.rate, **(LIMIT | {"zorder": 3}))
    axes.margins(x=0.03)
    axes.set_xlabel(quantity(picture.unit).removeprefix("the "), fontsize=9)
    ticks(axes.xaxis)
    _legend(drawn, dict.fromkeys(cases), width)
    return drawn


def _curve(title: str, curve: Curve, width: float) -> Figure:
    alone = next(iter(curve.lines)) if len(curve.lines) == 1 else ""
    drawn, axes = _axes(title, "; ".join(filter(None, (alone, _dashed(curve.line)))), width, 4.2)
    for rank, (label, points) in enumerate(curve.lines.items()):
        x, y = zip(*points, strict=True)
        # Lines that coincide remain visible, because each is narrower than the ones beneath it.
        above = len(curve.lines) - 1 - rank
        line = NARROWEST + above * min(STEP, MOST_STEPS / max(len(curve.lines) - 1, 1))
        marker = MARKERS[rank % len(MARKERS)] if len(points) <= MOST_MARKED else ""
        axes.plot(x, y, marker=marker, markersize=line + 2, linewidth=line, label=label)
    if curve.line is not None and curve.line.rate is not None:
        axes.axhline(curve.line.rate, **LIMIT)
    _scale(axes, curve)
    axes.set_xlabel(curve.x, fontsize=9)
    axes.set_ylabel(quantity(curve.y).removeprefix("the "), fontsize=9)
    axes.grid(alpha=0.3)
    _legend(drawn, curve.lines, width)
    return drawn


def _scale(axes: Axes, curve: Curve) -> None:
    """Choose the scales and the tick labels of both axes."""
    places = [x for points in curve.lines.values() for x, _ in points]
    if "x" in curve.logarithmic:
        powers = sorted({int(math.log2(x)) for x in places if _is_power_of_two(x)})
        if 2 * len(powers) > len(set(places)) or (_is_power_of_two(min(places)) and _is_power_of_two(max(places))):
            axes.set_xscale("log", base=2)
            shown = powers[:: -(-len(powers) // 12)]
            # Small numbers are easier to read than powers.
            names = [f"{2**power:,}" if powers[-1] <= 13 else f"$2^{{{power}}}$" for power in shown]
            axes.set_xticks([2.0**power for power in shown], names)
            axes.set_xticks([], minor=True)
        else:
            axes.set_xscale("log")
            _decimal(axes.xaxis, places)
    else:
        ticks(axes.xaxis)
    if "y" in curve.logarithmic:
        axes.set_yscale("log")
        _decimal(axes.yaxis, [y for points in curve.lines.values() for _, y in points])
    else:
        if all(not y < 0 for points in curve.lines.values() for _, y in points):  # a gap is NaN
            axes.set_ylim(bottom=0)
        ticks(axes.yaxis)


def _is_power_of_two(x: float) -> bool:
    return x >= 1 and math.frexp(x)[0] == 0.5


def _decimal(axis: Axis, values: list[float]) -> None:
    """Choose the tick labels of a logarithmic axis: below three decades, also multiples of 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    positive = [value for value in values if value > 0]
    axis.set_minor_formatter(NullFormatter())
    if positive and max(positive) < 1000 * min(positive):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ticks(axis)


def _timeline(title: str, timeline: Timeline, width: float) -> Figure:
    drawn, axes = _axes(
        title, timeline.name.replace("-", " ").replace("_", " "), width, 1.5 + 0.38 * len(timeline.lanes)
    )
    for place, spans in enumerate(timeline.lanes.values()):
        axes.broken_barh([(begin, end - begin) for begin, end in spans], (place - 0.4, 0.8), facecolors=SHADES)
        for begin, end in spans:
            axes.plot([begin, end], [place, place], alpha=0)  # bars alone do not extend the axes
    axes.set_yticks(range(len(timeline.lanes)), list(timeline.lanes))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(quantity(timeline.unit).removeprefix("the "), fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    ticks(axes.xaxis)
    return drawn


def _film(title: str, film: Film, path: Path) -> Path:
    """Write frames as an animated GIF, with one colour range for all frames and a colour bar next to them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    drawn = figure(title, "", 6, 5)
    canvas = FigureCanvasAgg(drawn)
    axes = drawn.add_subplot()
    axes.set_axis_off()
    low = min(float(frame.min()) for frame in film.frames)
    high = max(float(frame.max()) for frame in film.frames)
    plane = axes.imshow(film.frames[0], "inferno", vmin=low, vmax=high, interpolation="nearest")
    scale = drawn.colorbar(plane, shrink=0.8)
    if film.levels:
        scale.set_ticks(list(film.levels.values()), labels=list(film.levels))
    else:
        scale.set_label(film.scale)
    for label, (x, y) in film.labels.items():
        axes.text(x, y, label, color="white", fontsize=14, horizontalalignment="center", verticalalignment="center")
    images = []
    for frame, moment in zip(film.frames, film.captions, strict=True):
        plane.set_data(frame)
        axes.set_title(moment, fontsize=9)
        canvas.draw()
        # Each layout takes half a frame's time, and a second one would shift the picture slightly.
        drawn.set_layout_engine("none")
        images.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(128))
    images[0].save(path, save_all=True, append_images=images[1:], duration=FILM_MS, loop=0)
    return path
