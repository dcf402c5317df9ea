"""The findings of the simulator's checks, as a list in HTML and as text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from ...findings.places import distinct
from ...findings.records import Finding


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


def _item(finding: Finding, times: int) -> str:
    file, line = (finding.file, finding.line) if finding.line else finding.site
    place = escape(f"{Path(file).name}:{line}") if file else ""
    code = f" <code>{escape(finding.code)}</code>" if finding.code else ""
    kernel = f" in {escape(finding.kernel)}" if finding.kernel else ""
    again = f"<br>The same {times - 1:,} more times." if times > 1 else ""
    return f"<li>{place}{code}<br><strong>{finding.kind}</strong>{kernel}: {escape(finding.message)}{again}</li>"
