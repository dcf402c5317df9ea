"""The outcome of a gate for machines, as JSON, and for comments on pull requests, as Markdown."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...base.wording import counted
from ..table import markdown, markdown_table
from .time_gate import HEADINGS, Verdict, cells

STANDARD_OUTPUT = "-"
_OUTCOMES = {0: "passed", 1: "failed", 2: "refused"}


@dataclass
class GateReport:
    """The outcome of a gate: `verdicts` has each compared benchmark with its word, such as "SLOWER", or "".

    `status` is the exit status, and `reason` says why it is not 0. `new`
    and `missing` are the numbers of benchmarks that only the run, or only the baseline, has. `differences` has a
    sentence per difference in versions.
    """

    baseline: str
    limit: float
    status: int = 0
    reason: str = ""
    verdicts: list[tuple[Verdict, str]] = field(default_factory=list)
    new: int = 0
    missing: int = 0
    differences: list[str] = field(default_factory=list)

    def count(self, word: str) -> int:
        """Return the number of benchmarks with a word."""
        return sum(found == word for _, found in self.verdicts)

    def as_json(self) -> str:
        """Return the outcome as JSON; the number "format" changes whenever the meaning of a key changes."""
        return json.dumps(self._data(), indent=1) + "\n"

    def _data(self) -> dict[str, Any]:
        return {
            "format": 1,
            "outcome": _OUTCOMES[self.status],
            "reason": self.reason,
            "baseline": self.baseline,
            "limit": self.limit,
            "compared": len(self.verdicts),
            "slower": self.count("SLOWER"),
            "faster": self.count("faster"),
            "new": self.new,
            "not_run": self.missing,
            "differences": self.differences,
            "benchmarks": [
                {
                    "benchmark": one.benchmark,
                    "figure": one.figure,
                    "before": one.before,
                    "now": one.now,
                    "change": one.change,
                    "limit": one.limit,
                    "verdict": word.lower(),
                }
                for one, word in self.verdicts
            ],
        }

    def as_markdown(self) -> str:
        """Return the outcome as Markdown: a heading, a table of the benchmarks that changed, and the conditions."""
        slower, compared = self.count("SLOWER"), len(self.verdicts)
        outcome = f"{slower} of {counted(compared, 'benchmark')} became slower" if compared else "nothing was compared"
        parts = [f"### Benchmarks: {outcome}"]
        if self.reason and not self.reason.startswith(outcome):
            parts.extend(_paragraphs(f"cudart-py gate: {self.reason}"))
        shown = [(one, word) for one, word in self.verdicts if word]
        if shown:
            rows = [(*HEADINGS, "verdict"), *((*cells(one), word.lower()) for one, word in shown)]
            parts.append(markdown_table(rows, left=2, last_left=True))
        if compared:
            parts.append(
                f"Compared with `{self.baseline}`: {self.count('faster')} faster, {self.new} new, {self.missing} not "
                f"run. The limit is {100 * self.limit:g} %, or more for benchmarks that vary from run to run."
            )
        if self.differences:
            listed = "\n".join(f"- {markdown(difference)}" for difference in self.differences)
            parts.append(f"Differences from the baseline:\n\n{listed}")
        return "\n\n".join(parts) + "\n"

    def write(self, json_place: str | None, markdown_place: str | None) -> None:
        """Write the requested files, or print what belongs on standard output ("-"); an OSError names the file."""
        for place, text in ((json_place, self.as_json), (markdown_place, self.as_markdown)):
            if place == STANDARD_OUTPUT:
                print(text(), end="", flush=True)  # noqa: T201  # as requested
            elif place:
                Path(place).write_text(text(), encoding="utf-8")


def _paragraphs(reason: str) -> Iterator[str]:
    """Yield the Markdown of a reason, whose indented lines are commands."""
    for is_command, lines in itertools.groupby(reason.split("\n"), lambda line: line.startswith("  ")):
        text = "\n".join(lines)
        yield f"```sh\n{textwrap.dedent(text)}\n```" if is_command else markdown(text)
