"""The command `cudart-py continuous`: compare the benchmarks of two commits."""

from __future__ import annotations

import argparse
from typing import Any

from ..gates import counter_gate, time_gate
from .commit_options import REFUSED, add_environment_options, add_limit_options, bench, limits, run_command, show
from .judging import Base, Judgement

SAME, WORSE = 0, 1


def add_command(commands: Any) -> None:
    """Add `continuous` to the subcommands of `cudart-py`."""
    parser = commands.add_parser(
        "continuous",
        help="compare the benchmarks of two commits",
        description="Check out two commits into temporary worktrees, run their benchmarks with pytest, each commit in "
        "an environment of its own, and compare counters and times. The exit status is 1 if a figure is worse at NEW, "
        "and 2 if nothing can be compared.",
    )
    add_limit_options(parser)
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("new", metavar="NEW", help="the commit to judge")
    add_environment_options(parser)
    parser.set_defaults(run=run_command("continuous", continuous))


def continuous(options: argparse.Namespace) -> int:
    """Compare the two commits, print the changes, and return the exit status."""
    prepare = bench(options)
    first, second = (prepare.repository.commit(name) for name in (options.base, options.new))
    show(f"base: {first}\nnew:  {second}")
    with prepare.prepared(first) as before, prepare.prepared(second) as after:
        base = Base(before.take(silent=True))
        run = after.take(silent=True)
        if base.timed:
            # The base's other runs follow the new commit's, so that a machine that slows down affects both.
            for _ in range(options.runs - 1):
                base.add(before.take(silent=True))
        found = base.judge(run, after, limits(options), show)
    return _report(found)


def _report(found: Judgement) -> int:
    for remark in found.remarks:
        show(remark)
    shown = [(one, word) for one, word in found.verdicts if word]
    for lines in (counter_gate.table(found.changes) if found.changes else (), time_gate.table(shown) if shown else ()):
        for line in lines:
            show(line)
    worse, compared = len(found.worse), len(found.compared)
    show(f"benchmarks compared: {compared}; figures that are worse: {worse}")
    if not compared:
        return REFUSED
    return WORSE if worse else SAME
