"""The command `cudart-py continuous`: compare the benchmarks of two commits."""

from __future__ import annotations

import argparse
from typing import Any

from ..gates import counter_gate, time_gate
from .commit_options import REFUSED, add_comparing_command, bench_of, limits_of, show
from .judging import Base, Judgement

SAME, WORSE = 0, 1


def add_command(commands: Any) -> None:
    """Add `continuous` to the subcommands of `cudart-py`."""
    add_comparing_command(
        commands,
        continuous,
        {"base": "the commit to compare with", "new": "the commit to judge"},
        help="compare the benchmarks of two commits",
        description="Check out two commits into temporary worktrees, run their benchmarks with pytest, each commit in "
        "an environment of its own, and compare counters and times. The exit status is 1 if a figure is worse at NEW, "
        "and 2 if nothing can be compared.",
    )


def continuous(options: argparse.Namespace) -> int:
    """Compare the two commits, print the changes, and return the exit status."""
    bench = bench_of(options)
    first, second = (bench.repository.commit(name) for name in (options.base, options.new))
    show(f"base: {first}\nnew:  {second}")
    with bench.prepared(first) as before, bench.prepared(second) as after:
        base = Base(before.take(silent=True))
        run = after.take(silent=True)
        # The base's other runs follow the new commit's, so that a machine that slows down affects both.
        base.measure_again(before, options.runs - 1)
        judgement = base.judge(run, after, limits_of(options), show)
    return _report(judgement)


def _report(judgement: Judgement) -> int:
    shown = [(verdict, word) for verdict, word in judgement.verdicts if word]
    counters = counter_gate.table(judgement.changes) if judgement.changes else ()
    for line in (*judgement.remarks, *counters, *(time_gate.table(shown) if shown else ())):
        show(line)
    worse, compared = len(judgement.worse), len(judgement.compared)
    show(f"benchmarks compared: {compared}; figures that are worse: {worse}")
    if not compared:
        return REFUSED
    return WORSE if worse else SAME
