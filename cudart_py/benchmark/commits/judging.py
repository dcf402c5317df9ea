"""Judgement of a commit's benchmarks by the rules of the gates for counters and for times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...base.wording import counted
from ..gates import counter_gate
from ..gates.counter_gate import Change, Limit
from ..gates.pytest_runs import PytestRuns
from ..gates.time_gate import Json, Verdict, compare, merge, refusal
from ..gates.votes import judged

TIME = "time"


class Regression(NamedTuple):
    """A figure of a benchmark that became worse: a counter, or "time"."""

    benchmark: str
    figure: str


class Limits(NamedTuple):
    """The limits: of each counter, and of times as a fraction, such as 0.05."""

    counters: Sequence[Limit]
    times: float


class Judgement(NamedTuple):
    """A run compared with a base: changed counters, the verdicts on times with their words, and versions that differ.

    `compared` has the full names of the benchmarks that are in both.
    """

    changes: list[Change]
    verdicts: list[tuple[Verdict, str]]
    compared: frozenset[str]
    remarks: list[str]

    @property
    def worse(self) -> dict[Regression, str]:
        """The figures that became worse by more than their limits, each with its values before and now."""
        counters = {
            Regression(one.benchmark, one.figure): f"{one.before:,.6g} to {one.now:,.6g}"
            for one in self.changes
            if one.failed
        }
        times = {
            Regression(one.benchmark, TIME): f"{one.change:+.1%}" for one, word in self.verdicts if word == "SLOWER"
        }
        return counters | times


class Base:
    """The measurements that others are compared with: the counters of one run, and the times of several."""

    def __init__(self, first: Json) -> None:
        self._runs = [first]

    @property
    def timed(self) -> bool:
        """Whether the runs have times, and not only counters."""
        return bool(self._runs[0]["benchmarks"])

    def measure_again(self, runs: PytestRuns, times: int) -> None:
        """Add further runs if there are times, because several runs show how much the times vary."""
        if self.timed:
            self._runs += [runs.take(silent=True) for _ in range(times)]

    def judge(self, run: Json, again: PytestRuns, limits: Limits, show: Callable[[str], object]) -> Judgement:
        """Compare a run with this base; benchmarks that seem slower are run again."""
        first = self._runs[0]
        before, now = (counter_gate.launches(one.get("counted", ())) for one in (first, run))
        compared = set(before.keys() & now.keys())
        remarks = []
        if compared and first.get("nvrtc") != run.get("nvrtc"):
            remarks.append(counter_gate.other_compiler(first.get("nvrtc", ""), run.get("nvrtc", "")))
        verdicts: list[tuple[Verdict, str]] = []
        if self.timed and run["benchmarks"]:
            baseline = merge(self._runs)
            if problem := refusal(baseline, run, "the run"):
                remarks.append(problem)
            else:

                def take(names: Sequence[str]) -> dict[str, Any]:
                    show(f"{counted(len(names), 'benchmark')} may be slower: measuring again")
                    return again.take(names=names, silent=True)

                verdicts = judged(baseline, compare(baseline, run, limits.times), take, limits.times)
                compared |= {one.benchmark for one, _ in verdicts}
        return Judgement(counter_gate.changes(before, now, limits.counters), verdicts, frozenset(compared), remarks)
