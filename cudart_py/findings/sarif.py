"""Findings in SARIF 2.1.0, the format in which code hosts and editors read the results of analyses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..version import __version__
from .places import Place, by_place, root
from .records import KINDS, Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# The name of the folder that relative paths start in.
_BASE = "SRCROOT"
_NAME = "cudart-py"


def sarif(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return a SARIF log with one run, in which each place with a kind of finding is one result."""
    places = by_place(findings)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": _NAME,
                        "version": __version__,
                        "rules": [
                            {"id": kind, "name": kind, "shortDescription": {"text": rule}}
                            for kind, rule in KINDS.items()
                        ],
                    }
                },
                "originalUriBaseIds": {_BASE: {"uri": f"{Path(root()).as_uri()}/"}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(place) for place in places],
            }
        ],
    }


def _result(place: Place) -> dict[str, Any]:
    finding = place.finding
    kernel = f"kernel {finding.kernel}: " if finding.kernel else ""
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": list(KINDS).index(finding.kind),
        "level": "error",
        "message": {"text": kernel + place.message},
        "occurrenceCount": place.times,
    }
    if place.path:
        result["locations"] = [_physical(place.path, place.line)]
    if place.other_path:
        other = {"id": 0, "message": {"text": "the other access"}}
        result["relatedLocations"] = [{**other, **_physical(place.other_path, place.other_line)}]
    return result


def _physical(path: str, line: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _location(path), "region": {"startLine": line}}}


def _location(path: str) -> dict[str, str]:
    if Path(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(Path(path).as_posix()), "uriBaseId": _BASE}
