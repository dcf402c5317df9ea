"""Figures of matplotlib: an empty one under its title, the numbers on an axis, and the files."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "WIDTH", "figure", "save", "ticks"]

FORMATS = ("svg", "png")
WIDTH = 7.0  # inches
TITLE_LETTERS = 12.5  # that an inch holds


def save(drawn: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in every format; return the files."""
    files = [stem.with_name(f"{stem.name}.{suffix}") for suffix in formats]
    for file in files:
        drawn.savefig(file, dpi=150)
    return files


def figure(title: str, subtitle: str, width: float, height: float) -> Figure:
    """Return an empty figure of so many inches under a title and a line that says what is drawn."""
    # Without pyplot: no window system, nothing global to close.
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    lines = [textwrap.fill(text, int(TITLE_LETTERS * width)) for text in (title, subtitle) if text]
    drawn.suptitle("\n".join(lines), x=0.01, horizontalalignment="left", fontsize=10)
    return drawn


def ticks(axis: Axis) -> None:
    """Write an axis' numbers with thousands set apart."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
