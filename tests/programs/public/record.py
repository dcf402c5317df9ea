"""What came out of the programs: kept as JSON, compared, and shown as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.tables import table

from .program import Program

__all__ = ["Outcome", "read_outcomes", "report", "worse", "write_outcomes"]


@dataclass(frozen=True)
class Outcome:
    """What one program gave: the error it ended with, if any, wrong warnings, and the number of right ones."""

    name: str
    suite: str
    error: str
    alarms: tuple[str, ...]
    own: int
    seconds: float
    seed: int

    @property
    def good(self) -> bool:
        """Whether the results were right and nothing was warned of wrongly."""
        return not self.error and not self.alarms

    @property
    def verdict(self) -> str:
        """Say in a word or two what came out."""
        if self.error:
            kind = self.error.splitlines()[0].partition(":")[0]
            return "wrong result" if kind == "AssertionError" else kind
        return f"{len(self.alarms)} alarm{'s' * (len(self.alarms) > 1)}" if self.alarms else "passed"

    @property
    def brief(self) -> str:
        """Say what came out, and how long it took."""
        return f"{self.verdict}, {self.seconds:.1f} s"

    def line(self) -> str:
        """Say what came out in a line, and below it what went wrong."""
        said = [self.error] if self.error else []
        details = [f"    {first_line(text)}" for text in (*said, *self.alarms)]
        return "\n".join([f"{self.suite}/{self.name}: {self.brief}, seed {self.seed}", *details])


def first_line(text: str) -> str:
    """Return a message's first line, or of a compiler's log the first line with an error, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if ": error:" in line]
    return (wrong or lines or [""])[0][:300]


def write_outcomes(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes as JSON."""
    path.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n", encoding="utf-8")


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Return an earlier run's outcomes by the programs' names."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {one["name"]: Outcome(**{**one, "alarms": tuple(one["alarms"])}) for one in found}


def worse(outcomes: Sequence[Outcome], before: Mapping[str, Outcome]) -> list[str]:
    """Return the names of the programs that were good before and aren't now, or whose mistake is no longer seen."""
    pairs = [(one, before[one.name]) for one in outcomes if one.name in before]
    return [one.name for one, earlier in pairs if (earlier.good and not one.good) or (earlier.own and not one.own)]


def report(programs: Sequence[Program], outcomes: Sequence[Outcome], before: Mapping[str, Outcome]) -> str:
    """Return a table of Markdown, with a line below it that sums up."""
    shows = {one.name: one.shows + (f"; {one.why}" if one.why else "") for one in programs}
    rows = []
    for one in outcomes:
        earlier = [before[one.name].brief if one.name in before else "not run"] if before else []
        rows.append([one.suite, one.name, shows[one.name], *earlier, one.brief])
    headings = ["suite", "program", "what it is here for", *(["before"] if before else []), "result"]
    return f"{table(headings, rows)}\n\n{_summary(outcomes, before)}"


def _summary(outcomes: Sequence[Outcome], before: Mapping[str, Outcome]) -> str:
    good = sum(one.good for one in outcomes)
    said = f"{good} of {len(outcomes)} programs passed without a false alarm"
    earlier = [before[one.name] for one in outcomes if one.name in before]
    return f"{said}; {sum(one.good for one in earlier)} of {len(earlier)} before." if earlier else f"{said}."
