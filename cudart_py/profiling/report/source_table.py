"""Source as HTML, with the metrics of each line beside it; the style is in `source.css`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from ...findings.records import Finding
from ...pages.diagram import Diagram
from ..columns import Column
from ..source_lines import Source
from .annotated_source import filled
from .drawn_lines import figures

STYLE = Path(__file__).with_name("source.css")
# Smaller shares are not shown.
_LEAST_SHARE = 0.001


def heading(column: Column) -> str:
    """Return the heading of a column on one line."""
    return " ".join(filter(None, column.heading)).replace("- ", "")


def source_table(
    source: Source,
    name: str,
    lines: Iterable[int],
    columns: Sequence[Column],
    shares: Mapping[int, float],
    *,
    advised: Collection[int] = (),
    findings: Mapping[int, Sequence[Finding]] | None = None,
    diagrams: Mapping[int, Sequence[Diagram]] | None = None,
    colored: Sequence[str] = (),
) -> str:
    """Return some lines of a source, each with its share, its text and its cells; gaps between the lines are marked.

    Each line has the id `name-number`. Columns that are empty for the whole source are left out. `advised` has the
    numbers of the lines with advice. `findings` and `diagrams` are shown below their lines. `colored` has all lines of
    the source as highlighted HTML, or is empty for plain text.
    """
    kept = filled(source, columns)
    heads = "".join(f'<span class="head cell">{escape(heading(column))}</span>' for column in kept)
    rows = [
        '<div class="row heads"><span class="head number">line</span><span class="head share">share</span>'
        f'<span class="head code">source</span>{heads}</div>'
    ]
    last = 0
    for number in lines:
        if last and source.texts and number != last + 1:
            rows.append('<div class="row gap"><span class="number">⋮</span></div>')
        found = findings.get(number, ()) if findings else ()
        kind = "row found" if found else "row advised" if number in advised else "row"
        code = colored[number - 1] if colored else escape(source.text(number))
        cells = _cells(source.lines.get(number, {}), shares.get(number, 0.0), code, kept)
        rows.append(f'<div class="{kind}" id="{name}-{number}"><span class="number">{number}</span>{cells}</div>')
        rows += [_below("finding", f"<strong>{escape(one.kind)}</strong> {escape(one.message)}") for one in found]
        if diagrams and number in diagrams:
            rows.append(_below("drawn", figures(diagrams[number])))
        last = number
    return f'<div class="annotated"><div class="source">{"".join(rows)}</div></div>'


def _below(kind: str, content: str) -> str:
    """Return a row below the row of its line."""
    return (
        f'<div class="row {kind}"><span class="number"></span><span class="share"></span>'
        f'<div class="code">{content}</div></div>'
    )


def _cells(metrics: Mapping[str, float], share: float, code: str, columns: Sequence[Column]) -> str:
    cells = "".join(
        f'<span class="cell" data-head="{escape(heading(column))}">{escape(column.text(metrics))}</span>'
        for column in columns
    )
    part = f"{100 * share:.1f} %" if share >= _LEAST_SHARE else ""
    return (
        f'<span class="share" data-head="share" style="--part: {share:.3f}">{part}</span>'
        f'<span class="code">{code}</span>{cells}'
    )
