"""A profile as data for JSON: the launches, the ranked lines and the advice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...findings.places import distinct
from ...findings.records import Finding
from ..advice import advise_on
from ..costs import assumptions, cost
from ..source_lines import hot_lines, name_of, sources_of
from .explanations import LIMITS

if TYPE_CHECKING:
    from ..profiles import LaunchProfile


def profile_data(
    launches: Sequence[LaunchProfile],
    metrics: Collection[str] | None = None,
    findings: Sequence[Finding] = (),
    failure: str = "",
) -> dict[str, Any]:
    """Return a profile as dictionaries and lists; `metrics` has the names of the metrics to include, by default all.

    The key "launches" has each launch with its lines. "lines" has the sums over all launches, the most expensive line
    first, each with the "seconds" of its estimated cost, the "bound" that explains them, and its "share" from 0 to 1.
    "assumptions" are those of the estimates. "advice" has sentences with their rules, and the parts of each sentence:
    "symptom", "cause", "remedy" and the expected "gain", from 0 to 1. "findings" has the distinct mistakes that the
    simulator has found, each with its number of "times". "failure" is the exception that ended the program after
    the launches, or "". The number "format" changes whenever the meaning of a key changes.
    """
    ranked = hot_lines(sources_of(launches))
    return {
        "format": 2,
        "failure": failure,
        "limits": list(LIMITS),
        "assumptions": assumptions(),
        "launches": [
            {
                "kernel": launch.kernel,
                "grid": list(launch.grid),
                "block": list(launch.block),
                "metrics": _chosen(launch.metrics, metrics),
                "lines": [
                    {"file": line.file, "line": line.line, "metrics": _chosen(line.metrics, metrics)}
                    for line in launch.lines
                ],
            }
            for launch in launches
        ],
        "lines": [
            {
                "file": line.source.name,
                "line": line.number,
                "text": line.source.text(line.number).strip(),
                "share": line.share,
                **cost(line.metrics)._asdict(),
                "metrics": _chosen(line.metrics, metrics),
            }
            for line in ranked
        ],
        "advice": [
            {
                "file": found.line.source.name,
                "line": found.line.number,
                "sentence": found.sentence,
                "symptom": found.symptom,
                "cause": found.cause,
                "remedy": found.remedy,
                "gain": found.gain,
                "rule": found.rule,
            }
            for found in advise_on(ranked)
        ],
        "findings": [
            {
                "kind": finding.kind,
                "kernel": finding.kernel,
                "file": name_of(finding.file) if finding.file else "",
                "line": finding.line,
                "message": finding.message,
                "times": times,
            }
            for finding, times in distinct(findings)
        ],
    }


def _chosen(found: Mapping[str, float], requested: Collection[str] | None) -> dict[str, float]:
    return {name: value for name, value in found.items() if requested is None or name in requested}
