"""Charts of the counters recorded while a stop's kernels were checked, and of the work that the stop's calls do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from . import counters
from .figures import differ, figure, row_labels
from .report import number, text_of
from .stop import Panels, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Columns that are drawn after those of the stop's own table, up to MOST_PANELS in total.
PICTURED = ("sectors", "instructions", "active lanes", "conflicts", "load efficiency", "store efficiency")
MOST_PANELS = 6
# The value of a full bar, for the columns that have a maximum.
FULL = {"load efficiency": 1.0, "store efficiency": 1.0, "active lanes": 32.0}
PANEL_WIDTH, BAR_HEIGHT, AROUND_PANEL = 2.2, 0.19, 0.45  # inches


def counted_panels(result: Result) -> Iterator[Panels]:
    """Yield the panels of each table: the counters, and the work of the calls, in which its rows differ."""
    for place, (table, rows) in enumerate({"": result.rows, **result.tables}.items(), 1):
        of_table = f": {table.rstrip(':')}" if table else ""
        for kind, source, panels in (
            ("work", "Work of the calls, not timed", _work(rows)),
            ("counters", "Counted, not timed", _panels(rows)),
        ):
            if panels:
                yield Panels(kind + (f"-{place}" if place > 1 else ""), source + of_table, panels)


def _work(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return the work of each row's calls, keyed by the kinds of work in which the rows differ."""
    works = dict(zip(row_labels(rows), (row.work for row in rows), strict=True))
    kinds = {
        kind: {label: work[kind] for label, work in works.items() if kind in work}
        for kind in dict.fromkeys(kind for work in works.values() for kind in work)
    }
    return {kind: values for kind, values in kinds.items() if differ(values.values())}


def _panels(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return the columns in which the rows differ, with each row's value; the table's own columns come first."""
    own = [column for row in rows for column in row.values if column in counters.COLUMNS]
    labels = row_labels(rows)
    panels: dict[str, dict[str, float]] = {}
    for column in dict.fromkeys([*own, *PICTURED]):
        found = {}
        for label, row in zip(labels, rows, strict=True):
            value = row.values.get(column, counters.values(row.metrics, [column]).get(column))
            if isinstance(value, (int, float)):
                found[label] = float(value)
        if differ(found.values()):
            panels[column] = found
    return dict(list(panels.items())[:MOST_PANELS])


def draw_panels(title: str, picture: Panels, width: float) -> Figure:
    """Return a figure of panels, each with one bar per label and the numbers to the right of the bars."""
    panels = picture.panels
    labels = list(dict.fromkeys(label for values in panels.values() for label in values))
    across = max(1, min(len(panels), int(width / PANEL_WIDTH)))
    down = -(-len(panels) // across)
    drawn = figure(title, picture.about, width, 0.6 + down * (AROUND_PANEL + BAR_HEIGHT * len(labels)))
    axes = drawn.subplots(down, across, sharey=True, squeeze=False).ravel()
    for panel, (column, values) in zip(axes, panels.items(), strict=False):
        _panel(panel, column, [values.get(label) for label in labels])
    for panel in axes[len(panels) :]:
        panel.set_axis_off()
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].set_ylim(len(labels) - 0.5, -0.5)
    return drawn


def _panel(axes: Axes, column: str, values: Sequence[float | None]) -> None:
    axes.set_title(column, loc="left", fontsize=9)
    axes.barh(range(len(values)), [value or 0.0 for value in values])
    for place, value in enumerate(values):
        if value is not None:
            known = counters.COLUMNS.get(column)
            text = text_of(column, value if known.under else int(value)) if known else number(value)
            axes.annotate(
                text, (value, place), (3, 0), textcoords="offset points", fontsize=7, verticalalignment="center"
            )
    # Leave space for the numbers after the bars, which say more than an axis.
    axes.set_xlim(0, 1.7 * (FULL.get(column, max(value or 0.0 for value in values)) or 1.0))
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=8)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
