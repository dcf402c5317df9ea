"""Further runs that confirm or refute that a benchmark is slower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from .time_gate import Json, Verdict, compare

# Returns the next run, or None at the end. Given names, it runs only these benchmarks.
Take = Callable[..., Json | None]
# A benchmark that seems slower is measured again until this many of the further runs agree.
AGREE = 2


def judged(baseline: Json, first: Sequence[Verdict], take: Take, limit: float) -> list[tuple[Verdict, str]]:
    """Return the final verdict on each benchmark of a first run with its word: "SLOWER", "faster", "not again" or "".

    Benchmarks that seem slower are taken again.
    """
    votes = _vote(baseline, first, take, limit)
    return [_judge(one, votes.get(one.benchmark)) for one in first]


def _vote(baseline: Json, first: Sequence[Verdict], take: Take, limit: float) -> dict[str, list[Verdict]]:
    """Run benchmarks that seem slower again until enough runs of each agree; return the verdicts per benchmark."""
    votes: dict[str, list[Verdict]] = {one.benchmark: [] for one in first if one.slower}
    for _ in range(2 * AGREE - 1):
        names = [name for name, found in votes.items() if not _agreed(found)]
        if not names:
            break
        run = take(names)
        if run is None:
            break
        for one in compare(baseline, run, limit):
            if one.benchmark in names:
                votes[one.benchmark].append(one)
    return votes


def _agreed(found: Sequence[Verdict]) -> bool:
    slower = sum(one.slower for one in found)
    return max(slower, len(found) - slower) >= AGREE


def _judge(first: Verdict, votes: Sequence[Verdict] | None) -> tuple[Verdict, str]:
    """Return the final verdict on a benchmark and its word in the table.

    The votes of further runs decide. The first run only selects the benchmarks to run again.
    """
    if votes is None:
        return first, "faster" if first.faster else ""
    if not votes:
        return first, "SLOWER"
    slower = sum(one.slower for one in votes)
    found = replace(first, now=median(one.now for one in votes))
    return found, "SLOWER" if 2 * slower > len(votes) else "not again"
