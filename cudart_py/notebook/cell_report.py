"""The report below a cell: its launches line by line, the findings of the checks, and diagrams of accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..findings.records import Finding
from ..pages.diagram import Diagram
from ..profiling.columns import DEFAULT, choose
from ..profiling.profiles import LaunchProfile
from ..profiling.report.annotated_source import annotated_sources, shown_lines
from ..profiling.report.drawn_lines import kernel_diagrams, line_diagrams
from ..profiling.report.finding_list import finding_list, finding_texts
from ..profiling.report.launch_table import BRIEF, launch_table
from ..profiling.report.page import profile_summary
from ..profiling.report.source_table import STYLE, source_table
from ..profiling.source_lines import Source, findings_in, hot_lines, sources_of

# The colours of the style's variables, from the text's colour, because a notebook may have a light or a dark ground.
_COLORS = (
    "--lines: color-mix(in srgb, currentColor 20%, transparent); "
    "--faint: color-mix(in srgb, currentColor 70%, transparent); "
    "--raised: color-mix(in srgb, #d04040 15%, transparent); --worse: #d04040"
)
_NO_FINDINGS = "No findings: the simulator's checks found no mistakes."


class CellReport:
    """The report on what a cell has run, as HTML and as text.

    `launches` are the profiled launches, and None if there is no profile. `findings` is None if the cell did not ask
    for them. `drawn` says whether to draw accesses and active lanes.
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
        if self._launches is not None:
            yield launch_table(self._launches, BRIEF)
            yield annotated_sources(self._launches)
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
            # The summary would draw the lines with advice, and this report draws all.
            yield profile_summary([replace(launch, warp=None) for launch in self._launches])
            yield f'<style>{STYLE.read_text(encoding="utf-8")}</style><div style="{_COLORS}">{self._listings()}</div>'
        if self._findings is not None:
            yield finding_list(self._findings) or f"<p>{_NO_FINDINGS}</p>"
        for diagram in self._diagrams():
            yield f'<div style="overflow-x:auto">{diagram.svg()}</div>'

    def _listings(self) -> str:
        sources = sources_of(self._launches or ())
        ranked = hot_lines(sources)
        shares = {(id(line.source), line.number): line.share for line in ranked}
        return "".join(
            self._listing(source, {line: shares[id(source), line] for line in source.lines}) for source in sources
        )

    def _listing(self, source: Source, shares: dict[int, float]) -> str:
        found = findings_in(source, self._findings or ())
        shown = shown_lines([*source.lines, *found], len(source.texts))
        return source_table(source, source.name, shown, choose(DEFAULT, ()), shares, findings=found)
