"""The options `--sanitize-report` and `--sanitize-format` of commands and of pytest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..host.output_files import output_file
from .modes import MODE_VARIABLE, initial_mode
from .reports import FORMATS


def add_report_options(parser: Any, *, file: Callable[[str], str] = output_file) -> None:
    """Add the options to a parser of argparse, or to a group of options of pytest; `file` parses the file's name."""
    add = getattr(parser, "addoption", None) or parser.add_argument
    add(
        "--sanitize-report",
        type=file,
        metavar="FILE",
        help="write the mistakes in kernels that the simulator finds, and their faults, to a file; - is standard "
        "output. In GitHub Actions, they are also printed as annotations",
    )
    add(
        "--sanitize-format",
        choices=FORMATS,
        help="the format of --sanitize-report: SARIF 2.1.0, or the annotations of GitHub Actions (default: sarif)",
    )


def report_format(file: str | None, format: str | None, mode: str | None = None) -> str:
    """Return the format of the report to a file, from the values of both options and the mode that an option chooses.

    Raises ValueError if the format is chosen without a report, or if the checks are off, because the report would be
    empty whatever the kernels do.
    """
    if file is not None:
        check_mode("--sanitize-report", mode)
    elif format is not None:
        raise ValueError("--sanitize-format is the format of --sanitize-report, which is missing: add its file")
    return format or FORMATS[0]


def check_mode(option: str, mode: str | None = None) -> None:
    """Raise ValueError if the checks whose findings an option uses are off; a mode of None is the environment's."""
    if (mode or initial_mode()) == "off":
        raise ValueError(f"{option} needs the simulator's checks, which are off: set {MODE_VARIABLE} to warn or error")
