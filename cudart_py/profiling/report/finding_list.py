"""The findings of the simulator's checks, as a list in HTML and as text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from ...findings.places import distinct
from ...findings.records import Finding
from ..source_lines import Source, name_of


def finding_list(findings: Iterable[Finding]) -> str:
    """Return the distinct findings as a list in HTML; "" if there are none."""
    listed = "".join(_item(finding, times) for finding, times in distinct(findings))
    return f'<ul class="advice">{listed}</ul>' if listed else ""


def finding_texts(findings: Iterable[Finding]) -> list[str]:
    """Return the reports of the distinct findings."""
    return [
        finding.text if times == 1 else f"{finding.text}\n    the same {times - 1:,} more times"
        for finding, times in distinct(findings)
    ]


def findings_in(source: Source, findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Return the distinct findings in a source by line number."""
    found: dict[int, list[Finding]] = {}
    for finding, _ in distinct(findings):
        line = finding.line
        # Sources that were passed as strings may have the same name.
        if line and name_of(finding.file) == source.name and source.text(line).strip() in ("", finding.code):
            found.setdefault(line, []).append(finding)
    return found


def _item(finding: Finding, times: int) -> str:
    file, line = (finding.file, finding.line) if finding.line else finding.site
    place = escape(f"{Path(file).name}:{line}") if file else ""
    code = f" <code>{escape(finding.code)}</code>" if finding.code else ""
    kernel = f" in {escape(finding.kernel)}" if finding.kernel else ""
    again = f"<br>The same {times - 1:,} more times." if times > 1 else ""
    return f"<li>{place}{code}<br><strong>{finding.kind}</strong>{kernel}: {escape(finding.message)}{again}</li>"
