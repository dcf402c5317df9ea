"""The command `cudart-py report`: write a page about stored benchmark runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .page import page
from .runs import StoreError, read_store

WRITTEN, REFUSED = 0, 2


def add_command(commands: Any) -> None:
    """Add `report` to the subcommands of `cudart-py`."""
    parser = commands.add_parser(
        "report",
        help="write a page about the runs that pytest-benchmark stored",
        description="Write one page of HTML about the runs that pytest-benchmark stored (--benchmark-autosave): the "
        "latest run compared with the previous one, the trend of each benchmark with its steps and their commits, "
        "ratios, counts and a roofline. The exit status is 2 if the store has no runs or a file is broken.",
    )
    parser.add_argument(
        "store",
        type=Path,
        nargs="?",
        default=Path(".benchmarks"),
        metavar="DIR",
        help="the folder with the stored runs (default: .benchmarks)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE", help="default: report.html"
    )
    parser.set_defaults(run=report)


def report(options: argparse.Namespace) -> int:
    """Write the page, print its path or the reason for the failure in one line, and return the exit status."""
    try:
        text = page(read_store(options.store))
    except StoreError as error:
        return _refuse(str(error))
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        return _refuse(f"{options.output} cannot be written: {error.strerror}")
    print(f"written: {options.output}")  # noqa: T201  # the command's result
    return WRITTEN


def _refuse(why: str) -> int:
    print(f"cudart-py report: {why}", file=sys.stderr)  # noqa: T201  # the command's result
    return REFUSED
