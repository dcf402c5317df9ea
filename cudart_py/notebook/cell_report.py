"""The report below a cell: its launches line by line, the findings of the checks, and diagrams of accesses.

The HTML has only tables, lists and pictures with inline styles, because notebooks remove style sheets and inline
drawings from outputs that the reader has not run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from ..findings.records import Finding
from ..pages.diagram import Diagram
from ..profiling.columns import DEFAULT, Column, choose
from ..profiling.profiles import LaunchProfile
from ..profiling.report.advice_text import advice_texts
from ..profiling.report.annotated_source import annotated_sources, filled, shown_lines
from ..profiling.report.drawn_lines import kernel_diagrams, line_diagrams
from ..profiling.report.finding_list import finding_list, finding_texts, findings_in
from ..profiling.report.launch_table import BRIEF, launch_table
from ..profiling.report.page import profile_summary
from ..profiling.report.source_table import heading
from ..profiling.source_lines import Source, hot_lines, sources_of

_CODE = "text-align: left; white-space: pre; font-family: monospace"
_FOUND = "border-left: 3px solid #d04040; text-align: left"
_NO_FINDINGS = "No findings: the simulator's checks found no mistakes."


class CellReport:
    """The report on what a cell has run, as HTML and as text.

    `launches` are the profiled launches, or None without a profile. `findings` is None if the cell did not request
    them. `drawn` says whether to draw accesses and active lanes.
    """

    def __init__(
        self, launches: Sequence[LaunchProfile] | None, findings: Sequence[Finding] | None, *, drawn: bool
    ) -> None:
        self._launches = launches
        self._findings = findings
        self._drawn = drawn

    def __repr__(self) -> str:
        return "\n\n".join(self._texts())

    def _texts(self) -> Iterator[str]:
        if self._launches:
            yield launch_table(self._launches, BRIEF)
            yield annotated_sources(self._launches)
            yield from advice_texts(self._launches)
        elif self._launches is not None and not self._findings:
            # After a fault, the finding says more than that no launch has finished.
            yield launch_table((), BRIEF)
        if self._findings is not None:
            yield "\n".join(finding_texts(self._findings)) or _NO_FINDINGS
        yield from map(str, self._diagrams())

    def _diagrams(self) -> list[Diagram]:
        launches = self._launches if self._drawn and self._launches else ()
        by_line = [diagram for drawn in line_diagrams(launches).values() for diagram in drawn]
        return [*kernel_diagrams(launches), *by_line]

    def _repr_html_(self) -> str:
        return f"<div>{''.join(self._parts())}</div>"

    def _parts(self) -> Iterator[str]:
        if self._launches is not None:
            # The summary would also list the hottest lines, and draw those with advice. This report has all lines.
            yield profile_summary([replace(launch, warp=None) for launch in self._launches], lines=0)
            yield from self._listings(self._launches)
        if self._findings is not None:
            yield finding_list(self._unlisted()) if self._findings else f"<p>{_NO_FINDINGS}</p>"
        yield from map(_picture, self._diagrams())

    def _unlisted(self) -> list[Finding]:
        """Return the findings that are not shown below their lines."""
        findings = self._findings or ()
        listed = [
            lines for source in sources_of(self._launches or ()) for lines in findings_in(source, findings).values()
        ]
        shown = {(one.kind, one.kernel, one.file, one.line) for lines in listed for one in lines}
        return [one for one in findings if (one.kind, one.kernel, one.file, one.line) not in shown]

    def _listings(self, launches: Sequence[LaunchProfile]) -> Iterator[str]:
        sources = sources_of(launches)
        shares = {(id(line.source), line.number): f"{100 * line.share:.1f} %" for line in hot_lines(sources)}
        for source in sources:
            found = findings_in(source, self._findings or ())
            columns = filled(source, choose(DEFAULT, ()))
            titles = ("line", "share", *map(heading, columns))
            heads = "".join(f'<th class="figure">{escape(title)}</th>' for title in titles)
            rows = "".join(
                _row(source, line, shares.get((id(source), line), ""), columns, found.get(line, ()))
                for line in shown_lines([*source.lines, *found], len(source.texts))
            )
            name = f'<th style="text-align: left">{escape(source.name)}</th>'
            table = f"<table><thead><tr>{heads}{name}</tr></thead><tbody>{rows}</tbody></table>"
            # Long lines of code scroll with their table, and not the text around it.
            yield f'<div style="overflow-x: auto">{table}</div>'


def _row(source: Source, line: int, share: str, columns: Sequence[Column], findings: Sequence[Finding]) -> str:
    """Return the row of a line, and a row below it for each finding."""
    metrics = source.lines.get(line, {})
    number = f"<strong>{line}</strong>" if findings else f"{line}"
    figures = (number, share, *(escape(column.text(metrics)) for column in columns))
    cells = "".join(f'<td class="figure" style="white-space: nowrap">{figure}</td>' for figure in figures)
    row = f'<tr>{cells}<td style="{_CODE}">{escape(source.text(line))}</td></tr>'
    before = f'<tr><td colspan="{2 + len(columns)}"></td>'
    below = (f"<strong>{escape(one.kind)}</strong>: {escape(one.message)}" for one in findings)
    return row + "".join(f'{before}<td style="{_FOUND}">{text}</td></tr>' for text in below)


def _picture(diagram: Diagram) -> str:
    data = b64encode(diagram.svg().encode()).decode()
    source = f'src="data:image/svg+xml;base64,{data}" alt="{escape(diagram.caption)}"'
    return f'<p><img {source} width="744" style="max-width: 100%"></p>'
