"""A profile as a single HTML page: the launches, the hot lines, the advice, and the annotated sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ...findings.records import Finding
from ...pages.diagram import Diagram
from ...pages.document import document
from ...pages.tables import Cell, table
from ..advice import Advice, advise_on
from ..columns import DEFAULT, Column, choose
from ..costs import assumptions
from ..source_lines import HotLine, Source, hot_lines, sources_of
from .annotated_source import shown_lines
from .cost_table import cells_of
from .drawn_lines import figures, kernel_diagrams, line_diagrams
from .explanations import FIGURES, LIMITS
from .finding_list import finding_list, findings_in
from .launch_table import failed_launches, rows_of
from .source_table import STYLE, heading, source_table

if TYPE_CHECKING:
    from ..profiles import LaunchProfile

_STYLE = Path(__file__).with_name("page.css")
_MOST_LINES = 15
# Lines with a smaller share are not hot lines.
_HOT_SHARE = 0.01


def profile_page(
    launches: Sequence[LaunchProfile],
    title: str,
    columns: Sequence[Column] | None = None,
    findings: Sequence[Finding] = (),
    failure: str = "",
    unfinished: Sequence[str] = (),
) -> str:
    """Return the self-contained HTML page of a profile; the columns default to `DEFAULT`.

    `failure` is the exception that has ended the program after these launches, or "", and `unfinished` has the names of
    the kernels whose launches failed.
    """
    columns = choose(DEFAULT, ()) if columns is None else columns
    sources = sources_of(launches)
    ranked = hot_lines(sources)
    advice = advise_on(ranked)
    diagrams = line_diagrams(launches)
    listed = finding_list(findings)
    body = "".join(
        (
            f"<header><h1>{escape(title)}</h1><p>The work of a program's launches, as counted by a simulated GPU.</p>"
            "</header>",
            _explained(),
            f"<main><section><h2>Launches</h2>{_launches(launches, columns, unfinished)}"
            f"{figures(kernel_diagrams(launches))}</section>",
            _failure(failure),
            f"<section><h2>Findings</h2>{listed}</section>" if listed else "",
            f"<section><h2>Hot lines</h2>{_hot(ranked, columns, _links(sources))}</section>",
            f"<section><h2>Advice</h2>{_advice(advice, _links(sources))}</section>",
            *(
                _annotated(source, f"source-{at}", ranked, advice, columns, diagrams, findings)
                for at, source in enumerate(sources, 1)
            ),
            "</main>",
        )
    )
    return document(title, body, style="".join(file.read_text(encoding="utf-8") for file in (_STYLE, STYLE)))


def profile_summary(launches: Sequence[LaunchProfile], *, lines: int = 5, unfinished: Sequence[str] = ()) -> str:
    """Return an HTML fragment for notebooks: launches, hottest lines, advice, and diagrams of lines with advice.

    `lines` is the maximum number of hottest lines. `unfinished` has the names of the kernels whose launches failed.
    """
    if not launches:
        return _failed(unfinished) or "<p>no launches</p>"
    columns = choose(DEFAULT, ())
    ranked = hot_lines(sources_of(launches))
    if not ranked:
        return f'<div style="overflow-x: auto">{_launches(launches, columns, unfinished)}</div>'
    advice = advise_on(ranked)
    diagrams = line_diagrams(launches)
    advised = dict.fromkeys((found.line.source.name, found.line.number) for found in advice)
    drawn = [diagram for place in advised for diagram in diagrams.get(place, ())]
    # In notebooks, which have no style sheet of the package, tables that are too wide scroll on their own.
    return (
        f'<div><div style="overflow-x: auto">{_launches(launches, columns, unfinished)}'
        f"{_hot(ranked[:lines], columns, {}) if lines else ''}</div>{_advice(advice, {})}"
        f"{figures([*kernel_diagrams(launches), *drawn])}</div>"
    )


def _failure(text: str) -> str:
    if not text:
        return ""
    return (
        f"<section><h2>Failure</h2><p>After these launches, the program failed:</p><pre>{escape(text)}</pre></section>"
    )


def _explained() -> str:
    figures = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in FIGURES.items())
    limits = "".join(f"<li>{escape(limit)}</li>" for limit in LIMITS)
    assumed = "".join(f"<li>{escape(text)}</li>" for text in assumptions())
    return (
        f"<ul>{limits}</ul><details><summary>Meaning of the figures</summary><dl>{figures}</dl></details>"
        f"<details><summary>Assumptions of the estimates</summary><ul>{assumed}</ul></details>"
    )


def _launches(launches: Sequence[LaunchProfile], columns: Sequence[Column], unfinished: Sequence[str] = ()) -> str:
    if not launches:
        return _failed(unfinished) or "<p>The program launched no kernels.</p>"
    rows = [
        (
            Cell(row.kernel, "name"),
            Cell(f"{row.times:,}", "figure"),
            Cell(row.grid, "figure"),
            Cell(row.block, "figure"),
            *(Cell("" if text == "-" else text, "figure") for text in row.cells),
        )
        for row in rows_of(launches, columns)
    ]
    return table("launches", ("kernel", "launches", "grid", "block", *map(heading, columns)), rows) + _failed(
        unfinished
    )


def _failed(unfinished: Sequence[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in failed_launches(unfinished))


def _links(sources: Sequence[Source]) -> dict[int, str]:
    """Return the anchor of each source on the page, keyed by id(source), since several may have the same name."""
    return {id(source): f"source-{at}" for at, source in enumerate(sources, 1)}


def _link(line: HotLine, links: Mapping[int, str]) -> str:
    return f"{links[id(line.source)]}-{line.number}" if links else ""


def _place(line: HotLine) -> str:
    return f"{Path(line.source.name).name}:{line.number}"


def _hot(ranked: Sequence[HotLine], columns: Sequence[Column], links: Mapping[int, str]) -> str:
    if not ranked:
        return "<p>No source lines are known.</p>"
    rows = [
        (
            Cell(f"{100 * line.share:.1f} %", "figure"),
            Cell(_place(line), "name", _link(line, links)),
            Cell(line.source.text(line.number).strip(), "code"),
            *map(Cell, cells_of(line), ("figure", "name")),
            *(Cell(column.text(line.metrics), "figure") for column in columns),
        )
        for line in ranked[:_MOST_LINES]
        if line.share >= _HOT_SHARE
    ]
    if not rows:
        return "<p>No line has a share that is known.</p>"
    return table("hot", ("share", "line", "source", "estimate", "bound", *map(heading, columns)), rows)


def _advice(found: Sequence[Advice], links: Mapping[int, str]) -> str:
    if not found:
        return "<p>No advice: no rule applies.</p>"
    return f'<ul class="advice">{"".join(_advised(advice, links) for advice in found)}</ul>'


def _advised(advice: Advice, links: Mapping[int, str]) -> str:
    place = escape(_place(advice.line))
    if links:
        place = f'<a href="#{_link(advice.line, links)}">{place}</a>'
    code = escape(advice.line.source.text(advice.line.number).strip())
    return (
        f"<li>{place} <code>{code}</code><br>{escape(advice.sentence)}<br>"
        f'<span class="rule">Rule: {escape(advice.rule)}.</span></li>'
    )


def _annotated(
    source: Source,
    name: str,
    ranked: Sequence[HotLine],
    advice: Sequence[Advice],
    columns: Sequence[Column],
    diagrams: Mapping[tuple[str, int], Sequence[Diagram]],
    findings: Sequence[Finding],
) -> str:
    shares = {line.number: line.share for line in ranked if line.source is source}
    advised = {found.line.number for found in advice if found.line.source is source}
    drawn = {number: of for (file, number), of in diagrams.items() if file == source.name}
    found = findings_in(source, findings)
    missing = "" if source.texts else "<p>The text of this source is not available.</p>"
    shown = shown_lines([*source.lines, *found], len(source.texts))
    listed = source_table(source, name, shown, columns, shares, advised=advised, findings=found, diagrams=drawn)
    return f'<section id="{name}"><h2>{escape(source.name)}</h2>{missing}{listed}</section>'
