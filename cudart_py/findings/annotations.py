"""Findings as GitHub annotations: lines that a workflow prints, and that GitHub then shows next to the code."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .places import Place, by_place
from .records import Finding

# The characters that a workflow command must encode, in its message and in its properties.
_IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}


def in_github_actions() -> bool:
    """Return whether this process runs in a workflow of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation_lines(findings: Iterable[Finding]) -> list[str]:
    """Return one workflow command per place with a kind of finding."""
    return [_annotation(place) for place in by_place(findings)]


def workflow_command(level: str, title: str, message: str, path: str = "", line: int = 0) -> str:
    """Return a workflow command that shows a message at a line of a file, or at no line without a path.

    `level` is "error" or "warning", and `path` is relative to the root of the checkout.
    """
    properties = {"title": title}
    if path:
        properties = {"file": path, "line": str(line), **properties}
    written = ",".join(f"{name}={_encoded(value, _IN_PROPERTIES)}" for name, value in properties.items())
    return f"::{level} {written}::{_encoded(message, _IN_MESSAGES)}"


def _annotation(place: Place) -> str:
    finding = place.finding
    title = f"{finding.kind} in {finding.kernel}" if finding.kernel else finding.kind
    return workflow_command(finding.severity, title, place.message, place.path, place.line)


def _encoded(text: str, characters: dict[str, str]) -> str:
    # "%" comes first, so that the encodings of the other characters are not encoded again.
    for character, encoding in characters.items():
        text = text.replace(character, encoding)
    return text
