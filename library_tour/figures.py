"""Parts that all figures share: the title, the numbers on an axis, the names of a table's rows, and the files."""

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
TITLE_LETTERS = 12.5  # that an inch holds
_SEEN = 0.02


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


def differ(values: Iterable[float]) -> bool:
    """Tell whether bars of these lengths show a difference: of two percent of the longest one at least."""
    lengths = list(values)
    return len(lengths) > 1 and max(lengths) - min(lengths) > _SEEN * max(map(abs, lengths))


def row_labels(rows: Sequence[Row]) -> list[str]:
    """Return the rows' names, with the size of the work where a row has less than others."""
    cells = [row.values.get("cells") for row in rows]
    most = max((size for size in cells if isinstance(size, int)), default=0)
    return [
        f"{row.name} ({size:,} cells)" if isinstance(size, int) and size < most else row.name
        for row, size in zip(rows, cells, strict=True)
    ]
