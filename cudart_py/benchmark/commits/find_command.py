"""The command `cudart-py find`: bisect the commits between a good and a bad one for figures that became worse."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from .bisection import Found, bisect
from .commit_options import REFUSED, add_environment_options, add_limit_options, bench, limits, run_command, show
from .judging import Base, Judgement, Limits, Regression
from .measured_commits import CommitBench, CommitSkippedError
from .repository import Commit

FOUND, NOT_WORSE = 0, 1


def add_command(commands: Any) -> None:
    """Add `find` to the subcommands of `cudart-py`."""
    parser = commands.add_parser(
        "find",
        help="find the commit at which a benchmark became worse",
        description="Compare the benchmarks of two commits, and bisect the commits between them for each counter and "
        "time that became worse. Commits that cannot be built or whose benchmarks fail are skipped. The exit status "
        "is 1 if nothing is worse at BAD, and 2 if the two commits cannot be compared.",
    )
    add_limit_options(parser)
    parser.add_argument("good", metavar="GOOD", help="the commit to compare with, an ancestor of BAD")
    parser.add_argument("bad", metavar="BAD", help="a commit at which figures are worse")
    add_environment_options(parser)
    parser.set_defaults(run=run_command("find", find))


def find(options: argparse.Namespace) -> int:
    """Find the first commit at which each figure is worse, print these, and return the exit status."""
    prepare = bench(options)
    good, bad = (prepare.repository.commit(name) for name in (options.good, options.bad))
    commits = prepare.repository.between(good, bad)
    show(f"{len(commits)} commits from {good} to {bad}")
    if not commits:
        return NOT_WORSE
    with prepare.prepared(good) as runs:
        base = Base(runs.take(silent=True))
        if base.timed:
            for _ in range(options.runs - 1):
                base.add(runs.take(silent=True))
    search = _Search(prepare, base, limits(options))
    last = search.judge(bad)
    if not last.compared:
        show(f"{good} and {bad} have no benchmark in common")
        return REFUSED
    worse = last.worse
    if not worse:
        show(f"nothing is worse at {bad.short}: {len(last.compared)} benchmarks compared")
        return NOT_WORSE
    search.report({figure: bisect(commits, partial(search.is_worse, figure)) for figure in worse})
    return FOUND


class _Search:
    """Judges commits by comparison with the good one; each commit is measured at most once."""

    def __init__(self, prepare: CommitBench, base: Base, limits: Limits) -> None:
        self._prepare, self._base, self._limits = prepare, base, limits
        self._judged: dict[Commit, Judgement | None] = {}
        self._skipped: dict[Commit, str] = {}

    def judge(self, commit: Commit) -> Judgement:
        """Measure a commit and judge it; raise CommitSkippedError if it cannot be measured."""
        with self._prepare.prepared(commit) as runs:
            found = self._base.judge(runs.take(silent=True), runs, self._limits, show)
        for remark in found.remarks:
            show(remark)
        show(f"{commit}: figures that are worse: {len(found.worse)}")
        self._judged[commit] = found
        return found

    def is_worse(self, figure: Regression, commit: Commit) -> bool | None:
        """Return whether a figure is worse at a commit, or None if the commit cannot tell."""
        if commit not in self._judged:
            try:
                self.judge(commit)
            except CommitSkippedError as error:
                show(f"{commit}: skipped, {error}")
                self._judged[commit], self._skipped[commit] = None, str(error)
        found = self._judged[commit]
        if found is None or figure.benchmark not in found.compared:
            return None
        return figure in found.worse

    def report(self, found: Mapping[Regression, Found[Commit]]) -> None:
        """Print the commit at which each figure became worse, and the commits before it that could not be judged."""
        for figure, place in found.items():
            judgement = self._judged[place.first_bad]
            assert judgement is not None  # bisection only returns a commit that was judged
            show(f"\n{figure.benchmark}: {figure.figure} became worse ({judgement.worse[figure]}) at {place.first_bad}")
            if place.undecided:
                show("  or at one of these commits before it, which could not be judged:")
            for commit in place.undecided:
                show(f"  {commit}: {self._skipped.get(commit, 'it does not have this benchmark')}")
