"""The estimated cost of the most expensive lines, with the bound that explains each, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..card import H200
from ..costs import assumptions, cost
from ..source_lines import HotLine

_MOST_LINES = 10
_WIDTH = 80
# Lines with a smaller share are left out.
_LEAST_SHARE = 0.01


def cells_of(line: HotLine) -> tuple[str, str]:
    """Return the text of a line's estimate, in nanoseconds, and of its bound."""
    seconds, bound = cost(line.metrics)
    time = 1e9 * seconds
    return f"{time:,.{1 if time < 100 else 0}f} ns", bound


def cost_table(ranked: Sequence[HotLine]) -> str:
    """Return a table of the most expensive lines with their estimates and bounds, and below it their assumptions."""
    shown = [line for line in ranked[:_MOST_LINES] if line.share >= _LEAST_SHARE]
    rows = [(*cells_of(line), line.place) for line in shown]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    stated = assumptions({cost(line.metrics).bound for line in shown})
    return "\n".join(
        (
            f"Estimated cost of the most expensive lines on an {H200.name}, and its bound:",
            *(f"{time:>{widths[0]}}  {bound:{widths[1]}}  {place}" for time, bound, place in rows),
            *(textwrap.fill(text, _WIDTH, subsequent_indent="    ") for text in stated),
        )
    )
