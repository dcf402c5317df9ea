"""The options `--sanitize-report` and `--sanitize-format` of commands and of pytest."""

from __future__ import annotations

from typing import Any

from .reports import FORMATS


def add_report_options(parser: Any) -> None:
    """Add the options to a parser of argparse, or to a group of options of pytest."""
    add = getattr(parser, "addoption", None) or parser.add_argument
    add(
        "--sanitize-report",
        metavar="FILE",
        help="write the mistakes in kernels that the simulator finds, and their faults, to a file; - is standard "
        "output. In GitHub Actions, they are also printed as annotations",
    )
    add(
        "--sanitize-format",
        choices=FORMATS,
        default=FORMATS[0],
        help="the format of --sanitize-report: SARIF 2.1.0, or the annotations of GitHub Actions (default: sarif)",
    )
