"""A stop's result as pictures, SVG and PNG, and films as GIF, with matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .report import number
from .stop import Bars, Curve, Film, Limit, Result, Row, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MissingPlotExtraError", "draw", "require"]

FORMATS = ("svg", "png")
FILM_MS = 150  # a frame
LIMIT: dict[str, Any] = {"color": "black", "linestyle": "--", "zorder": 1}  # under what is drawn
SHADES = ("C0", "C9")  # of spans that follow each other at once


class MissingPlotExtraError(RuntimeError):
    """matplotlib is not installed."""


def require() -> None:
    """Raise MissingPlotExtraError, naming the remedy, where pictures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPlotExtraError("plots need matplotlib: install the extra `plot`, pip install 'cudart-py[plot]'")


def draw(name: str, title: str, result: Result, folder: Path) -> list[Path]:
    """Draw a stop's rates and pictures into `folder`; return the files, none where there is nothing to draw.

    The rates are those of the rows that have a fraction of the stop's limit, with the limit as a line.
    """
    heading = f"{name}: {title}"
    figures: dict[str, Figure] = {}
    files = []
    limit = result.limit
    if limit is not None and limit.rate is not None:
        rated = [row for row in result.rows if limit.unit in row.values and "of limit" in row.values]
        if rated:
            figures[name] = _rates(heading, limit, rated)
    for picture in result.pictures:
        stem = f"{name}-{picture.name}"
        match picture:
            case Curve():
                figures[stem] = _curve(heading, picture)
            case Bars():
                figures[stem] = _bars(heading, picture)
            case Timeline():
                figures[stem] = _timeline(heading, picture)
            case Film():
                files.append(_film(picture, folder / f"{stem}.gif"))
    for stem, figure in figures.items():
        for suffix in FORMATS:
            path = folder / f"{stem}.{suffix}"
            figure.savefig(path, dpi=150)
            files.append(path)
    return files


def _figure(title: str, height: float = 4) -> tuple[Figure, Axes]:
    # Without pyplot: no window system, nothing global to close.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10, wrap=True)
    return figure, axes


def _rates(title: str, limit: Limit, rows: list[Row]) -> Figure:
    bars = {row.name: {limit.unit: float(row.values[limit.unit])} for row in rows}
    return _bars(title, Bars("", limit.unit, bars, limit))


def _bars(title: str, picture: Bars) -> Figure:
    cases = list(dict.fromkeys(case for bars in picture.bars.values() for case in bars))
    figure, axes = _figure(title, 2 + 0.28 * len(picture.bars) * len(cases))
    thickness = 0.8 / len(cases)
    for rank, case in enumerate(cases):
        places = [place + thickness * (rank - (len(cases) - 1) / 2) for place in range(len(picture.bars))]
        lengths = [bars.get(case, 0.0) for bars in picture.bars.values()]
        drawn = axes.barh(places, lengths, thickness, label=case if len(cases) > 1 else None)
        for text in axes.bar_label(drawn, [number(length) for length in lengths], padding=3, fontsize=8):
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # legible on the limit's line
    axes.set_yticks(range(len(picture.bars)), list(picture.bars))
    axes.invert_yaxis()  # the table's order, from above
    if picture.line is not None and picture.line.rate is not None:
        axes.axvline(picture.line.rate, label=_named(picture.line), **LIMIT)
    axes.set_xlabel(picture.unit)
    axes.margins(x=0.12)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _named(limit: Limit) -> str:
    return f"{limit.name}: {number(limit.rate or 0)} {limit.unit}"


def _curve(title: str, curve: Curve) -> Figure:
    figure, axes = _figure(title)
    for label, points in curve.lines.items():
        x, y = zip(*points, strict=True)
        axes.plot(x, y, marker=".", label=label)
    if curve.line is not None and curve.line.rate is not None:
        axes.axhline(curve.line.rate, label=_named(curve.line), **LIMIT)
    if "x" in curve.logarithmic:
        axes.set_xscale("log", base=2)
    if "y" in curve.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(curve.x)
    axes.set_ylabel(curve.y)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _timeline(title: str, timeline: Timeline) -> Figure:
    figure, axes = _figure(title, 1.2 + 0.4 * len(timeline.lanes))
    for place, spans in enumerate(timeline.lanes.values()):
        axes.broken_barh([(begin, end - begin) for begin, end in spans], (place - 0.4, 0.8), facecolors=SHADES)
        for begin, end in spans:
            axes.plot([begin, end], [place, place], alpha=0)  # bars do not stretch the axes by themselves
    axes.set_yticks(range(len(timeline.lanes)), list(timeline.lanes))
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    return figure


def _film(film: Film, path: Path) -> Path:
    """Write frames as an animated GIF, in one range of colours."""
    from matplotlib import colormaps
    from PIL import Image

    low = min(float(frame.min()) for frame in film.frames)
    high = max(float(frame.max()) for frame in film.frames)
    colours = colormaps["inferno"]
    scale = max(1, 256 // max(film.frames[0].shape))  # small plates in large pixels
    images = []
    for frame in film.frames:
        coloured = colours((frame - low) / ((high - low) or 1.0), bytes=True)
        images.append(Image.fromarray(coloured.repeat(scale, 0).repeat(scale, 1)).convert("P"))
    images[0].save(path, save_all=True, append_images=images[1:], duration=FILM_MS, loop=0)
    return path
