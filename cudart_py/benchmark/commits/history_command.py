"""The command `cudart-py history`: run the benchmarks of old commits, and store the runs for `cudart-py report`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..gates.argument_types import count
from .commit_options import REFUSED, add_environment_options, bench_of, run_command, show
from .measured_commits import CommitSkippedError
from .repository import Commit

STORED = 0
# The folder in the store, next to those of pytest-benchmark, which are named after machines.
_FOLDER = "commits"
_NUMBERED = re.compile(r"(\d{4})_[0-9a-f]+")


def add_command(commands: Any) -> None:
    """Add `history` to the subcommands of `cudart-py`."""
    parser = commands.add_parser(
        "history",
        help="run the benchmarks of old commits, and store the runs for the report",
        description="Run the benchmarks of each commit of a range with pytest, each in a temporary worktree and an "
        "environment of its own, and store the runs for `cudart-py report`, dated by their commits. Commits that are "
        "stored already are left out, and those that cannot be measured are skipped. The exit status is 2 if no "
        "commit could be measured.",
    )
    parser.add_argument(
        "--store",
        type=Path,
        default=Path(".benchmarks"),
        metavar="DIR",
        help="the folder for the stored runs (default: .benchmarks)",
    )
    parser.add_argument(
        "--steps",
        type=count,
        metavar="N",
        help="measure only about N commits, at equal distances, with the last one (default: all)",
    )
    parser.add_argument("range", metavar="RANGE", help="the commits, such as v1.0..main")
    add_environment_options(parser)
    parser.set_defaults(run=run_command("history", history))


def history(options: argparse.Namespace) -> int:
    """Store a run of each commit, print which ones, and return the exit status."""
    bench = bench_of(options)
    commits = _thinned(bench.repository.range(options.range), options.steps)
    folder: Path = options.store / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    stored = 0
    for commit in commits:
        if any(folder.glob(f"*_{commit.short}.json")):
            show(f"{commit}: stored already")
            stored += 1
            continue
        try:
            with bench.prepared(commit) as runs:
                run = runs.take(silent=True)
        except CommitSkippedError as error:
            show(f"{commit}: skipped, {error}")
            continue
        path = folder / f"{_next_number(folder):04}_{commit.short}.json"
        path.write_text(json.dumps(_dated(run, commit)), encoding="utf-8")
        show(f"{commit}: {path}")
        stored += 1
    show(f"{stored} of {len(commits)} commits are stored in {options.store}")
    return STORED if stored else REFUSED


def _thinned(commits: Sequence[Commit], steps: int | None) -> list[Commit]:
    """Return at most `steps` commits at equal distances, with the last one."""
    if steps is None or steps >= len(commits):
        return list(commits)
    return [commits[len(commits) * number // steps - 1] for number in range(1, steps + 1)]


def _next_number(folder: Path) -> int:
    numbers = [int(match[1]) for path in folder.iterdir() if (match := _NUMBERED.match(path.name))]
    return max(numbers, default=0) + 1


def _dated(run: dict[str, Any], commit: Commit) -> dict[str, Any]:
    """Return a run with the date of its commit, by which the report sorts, and with the commit itself."""
    info = run.get("commit_info") or {}
    return run | {
        "datetime": commit.when.isoformat(),
        # Copied benchmarks are not changes of the measured code.
        "commit_info": info | {"id": commit.identifier, "dirty": False},
    }
