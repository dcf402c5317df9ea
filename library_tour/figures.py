"""Helpers shared by all figures: titles, axis numbers, row labels and files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .stop import Row

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
WIDTH = 7.0  # inches
TITLE_LETTERS = 12.5  # characters per inch
_SEEN = 0.02


def save(drawn: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in every format; return the files."""
    files = [stem.with_name(f"{stem.name}.{suffix}") for suffix in formats]
    for file in files:
        drawn.savefig(file, dpi=150)
    return files


def figure(title: str, subtitle: str, width: float, height: float) -> Figure:
    """Return an empty figure of `width` by `height` inches with a title and a subtitle."""
    # Without pyplot: no window system, nothing global to close.
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    lines = [textwrap.fill(text, int(TITLE_LETTERS * width)) for text in (title, subtitle) if text]
    drawn.suptitle("\n".join(lines), x=0.01, horizontalalignment="left", fontsize=10)
    return drawn


def ticks(axis: Axis) -> None:
    """Format an axis's numbers with thousands separators."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def differ(values: Iterable[float]) -> bool:
    """Check whether bars of these lengths differ visibly: by more than two percent of the longest one."""
    lengths = list(values)
    return len(lengths) > 1 and max(lengths) - min(lengths) > _SEEN * max(map(abs, lengths))


def row_labels(rows: Sequence[Row]) -> list[str]:
    """Return the rows' names, with the number of cells for a row that has fewer cells than others."""
    cells = [row.values.get("cells") for row in rows]
    most = max((size for size in cells if isinstance(size, int)), default=0)
    return [
        f"{row.name} ({size:,} cells)" if isinstance(size, int) and size < most else row.name
        for row, size in zip(rows, cells, strict=True)
    ]
