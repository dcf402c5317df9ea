"""The command `cudart-py find`: bisect the commits between a good and a bad one for figures that became worse."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...base.wording import counted
from .bisection import Bisection, bisect
from .commit_options import REFUSED, add_comparing_command, bench_of, limits_of, show
from .judging import Base, Judgement, Limits, Regression
from .measured_commits import CommitBench, CommitSkippedError
from .repository import Commit

FOUND, NOT_WORSE = 0, 1


def add_command(commands: Any) -> None:
    """Add `find` to the subcommands of `cudart-py`."""
    add_comparing_command(
        commands,
        find,
        {"good": "the commit to compare with, an ancestor of BAD", "bad": "a commit at which figures are worse"},
        help="find the commit at which a benchmark became worse",
        description="Compare the benchmarks of two commits, and bisect the commits between them for each counter and "
        "time that became worse. Commits that cannot be built or whose benchmarks fail are skipped. The exit status "
        "is 1 if nothing is worse at BAD, and 2 if the two commits cannot be compared.",
    )


def find(options: argparse.Namespace) -> int:
    """Find the first commit at which each figure is worse, print these, and return the exit status."""
    bench = bench_of(options)
    good, bad = (bench.repository.commit(name) for name in (options.good, options.bad))
    commits = bench.repository.between(good, bad)
    show(f"{counted(len(commits), 'commit')} from {good} to {bad}")
    if not commits:
        return NOT_WORSE
    with bench.prepared(good) as runs:
        base = Base(runs.take(silent=True))
        base.measure_again(runs, options.runs - 1)
    search = _Search(bench, base, limits_of(options))
    last = search.judge(bad)
    if not last.compared:
        show(f"{good} and {bad} have no benchmark in common")
        return REFUSED
    worse = last.worse
    if not worse:
        show(f"nothing is worse at {bad.short}: {counted(len(last.compared), 'benchmark')} compared")
        return NOT_WORSE
    search.report({figure: bisect(commits, partial(search.is_worse, figure)) for figure in worse})
    return FOUND


class _Search:
    """Judges commits by comparison with the good one; each commit is measured at most once."""

    def __init__(self, bench: CommitBench, base: Base, limits: Limits) -> None:
        self._bench, self._base, self._limits = bench, base, limits
        self._judged: dict[Commit, Judgement | None] = {}
        self._skipped: dict[Commit, str] = {}

    def judge(self, commit: Commit) -> Judgement:
        """Measure a commit and judge it; raise CommitSkippedError if it cannot be measured."""
        with self._bench.prepared(commit) as runs:
            judgement = self._base.judge(runs.take(silent=True), runs, self._limits, show)
        for remark in judgement.remarks:
            show(remark)
        show(f"{commit}: figures that are worse: {len(judgement.worse)}")
        self._judged[commit] = judgement
        return judgement

    def is_worse(self, figure: Regression, commit: Commit) -> bool | None:
        """Return whether a figure is worse at a commit, or None if the commit cannot be judged."""
        if commit not in self._judged:
            try:
                self.judge(commit)
            except CommitSkippedError as error:
                show(f"{commit}: skipped, {error}")
                self._judged[commit], self._skipped[commit] = None, str(error)
        judgement = self._judged[commit]
        if judgement is None or figure.benchmark not in judgement.compared:
            return None
        return figure in judgement.worse

    def report(self, bisections: Mapping[Regression, Bisection[Commit]]) -> None:
        """Print the commit at which each figure became worse, and the commits before it that could not be judged."""
        for figure, (first_bad, skipped) in bisections.items():
            judgement = self._judged[first_bad]
            assert judgement is not None  # bisection only returns a commit that was judged
            show(f"\n{figure.benchmark}: {figure.figure} became worse ({judgement.worse[figure]}) at {first_bad}")
            if skipped:
                show("  or at one of these commits before it, which could not be judged:")
            for commit in skipped:
                show(f"  {commit}: {self._skipped.get(commit, 'it does not have this benchmark')}")
