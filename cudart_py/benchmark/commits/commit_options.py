"""The options that the commands about commits share, and how each of these commands runs and ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..gates import counter_gate
from ..gates.argument_types import count, counter_limit, percentage
from ..gates.pytest_runs import NOT_INSTALLED, can_run
from .environments import KINDS, REQUIREMENTS, BuildError, default_kind, default_requirements
from .judging import Limits
from .measured_commits import CommitBench, CommitSkippedError, cleaned_up_when_terminated
from .repository import Repository, RepositoryError

REFUSED = 2
_BUILD_REMEDY = (
    "\nRemedy: name other packages with --install, such as the path of a wheel, or use the packages that are installed "
    "here: --environment existing"
)


def add_environment_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a commit is prepared, and the arguments for pytest."""
    parser.add_argument(
        "--environment",
        choices=KINDS,
        default=default_kind(),
        help="each commit's environment: made by uv, or by venv and pip, or the existing one, in which nothing is "
        "built (default: uv if it is installed, otherwise venv)",
    )
    parser.add_argument(
        "--install",
        action="append",
        metavar="REQUIREMENT",
        help=f"install this and the project in each new environment, instead of {', '.join(REQUIREMENTS)}; may be "
        "repeated",
    )
    parser.add_argument(
        "--copy",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="copy this file or folder of the working tree into each commit, for example a benchmark that is newer "
        "than the commit; may be repeated",
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for pytest: files, options")


def add_comparing_command(
    commands: Any, command: Callable[[argparse.Namespace], int], commit_help: Mapping[str, str], **texts: str
) -> None:
    """Add a command that compares two commits, with the options that say when a figure counts as worse.

    It has the name of the function `command`. `commit_help` has the help of the arguments that name the commits, and
    `texts` the command's help and description.
    """
    name = command.__name__
    parser = commands.add_parser(name, **texts)
    _add_limit_options(parser)
    for argument, text in commit_help.items():
        parser.add_argument(argument, metavar=argument.upper(), help=text)
    add_environment_options(parser)
    parser.set_defaults(run=run_command(name, command))


def _add_limit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--counter",
        type=counter_limit,
        action="append",
        metavar="FIGURE:LIMIT",
        help="a counter that counts as worse if it exceeds this limit ('sectors:5%%', 'conflicts:0'); may be repeated "
        f"(default: {', '.join(counter_gate.FIGURES)}, each with the limit 0)",
    )
    parser.add_argument(
        "--limit",
        type=percentage,
        default=5,
        metavar="PERCENT",
        help="the slowdown in percent from which a time counts as worse (default: 5)",
    )
    parser.add_argument(
        "--runs",
        type=count,
        default=3,
        metavar="N",
        help="number of runs of the base, if times are measured (default: 3)",
    )


def limits_of(options: argparse.Namespace) -> Limits:
    """Return the limits that the options describe: of each counter, and of times."""
    every = [counter_gate.Limit(figure, 0, relative=False) for figure in counter_gate.FIGURES]
    return Limits(options.counter or every, options.limit / 100)


def bench_of(options: argparse.Namespace) -> CommitBench:
    """Return the bench that the options describe; raise RepositoryError if commits cannot be measured so."""
    if options.environment == "existing" and not can_run():
        raise RepositoryError(NOT_INSTALLED)
    requirements = default_requirements() if options.install is None else options.install
    return CommitBench(Repository(Path.cwd()), options.environment, requirements, options.copy, options.arguments)


def show(text: str) -> None:
    """Print a line of a command's result at once."""
    print(text, flush=True)  # noqa: T201  # the command's result


def run_command(name: str, command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return a command that prints why nothing can be measured, and removes its worktrees however it ends."""

    def run(options: argparse.Namespace) -> int:
        try:
            with cleaned_up_when_terminated():
                return command(options)
        except (RepositoryError, CommitSkippedError) as error:
            commit = remedy = ""
            if isinstance(error, CommitSkippedError):
                show(error.output)
                commit = f"{error.commit}: "
            if isinstance(error.__cause__, BuildError):
                remedy = _BUILD_REMEDY
            print(f"cudart-py {name}: {commit}{error}{remedy}", file=sys.stderr)  # noqa: T201  # the command's result
            return REFUSED
        except KeyboardInterrupt:
            print(f"cudart-py {name}: interrupted", file=sys.stderr)  # noqa: T201  # the command's result
            return 130

    return run
