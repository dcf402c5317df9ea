"""Findings grouped by place, as reports for other programs need them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from .records import Finding


class Place(NamedTuple):
    """A place in a file with one kind of finding, and the place of the other access of a race if it is known.

    `path` and `other_path` are relative to the root of the checkout if they are inside, and "" if there is no file.
    """

    path: str
    line: int
    finding: Finding
    times: int
    other_path: str
    other_line: int

    @property
    def message(self) -> str:
        """The finding's message, with places in files, which are relative to the root of the checkout if inside it.

        A place in a source that is in no file keeps the source's name. The message then begins with the finding's
        place, because the report is shown at the line that compiled the source.
        """
        finding, text = self.finding, self.finding.message
        if finding.source:

            def in_a_file(match: re.Match[str]) -> str:
                path, line = finding.place_in_a_file(finding.source, int(match[1]))
                return f"{path}:{line}" if path else match[0]

            text = re.sub(rf"(?<![\w/.]){re.escape(finding.source)}:(\d+)\b", in_a_file, text)
            if finding.file == finding.source and not finding.begin and os.path.isfile(finding.origin[0]):
                text = f"at {finding.file}:{finding.line}, in the source compiled here: {text}"
        return text.replace(os.path.join(root(), ""), "")


def root() -> str:
    """Return the folder that paths in reports are relative to: the workspace of GitHub Actions, or the working one."""
    return os.path.abspath(os.environ.get("GITHUB_WORKSPACE") or os.getcwd())


def distinct(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """Return the findings in their order, with their number; those of the same kind, kernel and place are one."""
    found: dict[object, tuple[Finding, int]] = {}
    for finding in findings:
        # Kernels of sources with the same name may differ. Work that is not a kernel has no place but the program's.
        place = (finding.file, finding.line, finding.code) if finding.line else finding.site
        key = finding.kind, finding.kernel, place
        first, times = found.get(key, (finding, 0))
        found[key] = first, times + 1
    return list(found.values())


def by_place(findings: Iterable[Finding]) -> list[Place]:
    """Return the distinct findings with their places in files; those without a file have the path "" and line 0."""
    return [_place(finding, times) for finding, times in distinct(findings)]


def _place(finding: Finding, times: int) -> Place:
    path, line = finding.in_a_file()
    other_path, other_line = finding.earlier_in_a_file()
    return Place(relative_path(path), line, finding, times, relative_path(other_path), other_line)


def relative_path(path: str) -> str:
    """Return a path relative to the root of the checkout if it is inside, and otherwise unchanged."""
    inside = path.startswith(os.path.join(root(), ""))
    return os.path.relpath(path, root()) if inside else path
