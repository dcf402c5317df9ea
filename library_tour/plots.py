"""A stop's result as pictures, SVG and PNG, with matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from .stop import Curve, Limit, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MissingPlotExtraError", "draw", "require"]

FORMATS = ("svg", "png")


class MissingPlotExtraError(RuntimeError):
    """matplotlib is not installed."""


def require() -> None:
    """Raise MissingPlotExtraError, naming the remedy, where pictures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPlotExtraError("plots need matplotlib: install the extra `plot`, pip install 'cudart-py[plot]'")


def draw(name: str, title: str, result: Result, folder: Path) -> list[Path]:
    """Draw a stop's bars and curves into `folder`; return the files, none where there is nothing to draw.

    Bars are the rates of the rows that have a fraction of the stop's limit, with the limit as a line.
    """
    heading = f"{name}: {title}"
    pictures: dict[str, Figure] = {}
    limit = result.limit
    if limit is not None and limit.rate is not None:
        pictures[name] = _bars(heading, limit, [row for row in result.rows if "of limit" in row.values])
    for curve in result.curves:
        pictures[f"{name}-{curve.name}"] = _curve(heading, curve)
    files = []
    for stem, figure in pictures.items():
        for suffix in FORMATS:
            path = folder / f"{stem}.{suffix}"
            figure.savefig(path, dpi=150)
            files.append(path)
    return files


def _figure(title: str) -> tuple[Figure, Axes]:
    # Without pyplot: no window system, nothing global to close.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10, wrap=True)
    return figure, axes


def _bars(title: str, limit: Limit, rows: list[Row]) -> Figure:
    figure, axes = _figure(title)
    rate = limit.rate
    assert rate is not None
    bars = axes.barh([row.name for row in rows], [float(row.values[limit.unit]) for row in rows])
    axes.bar_label(bars, fmt="%.4g", padding=3)
    axes.invert_yaxis()  # the table's order, from above
    axes.axvline(rate, color="black", linestyle="--", label=f"{limit.name}: {rate:.4g}")
    axes.set_xlabel(limit.unit)
    axes.margins(x=0.12)
    figure.legend(loc="outside lower center")
    return figure


def _curve(title: str, curve: Curve) -> Figure:
    figure, axes = _figure(title)
    for label, points in curve.lines.items():
        x, y = zip(*points, strict=True)
        axes.plot(x, y, marker=".", label=label)
    if curve.logarithmic:
        axes.set_xscale("log", base=2)
    axes.set_xlabel(curve.x)
    axes.set_ylabel(curve.y)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
