"""What the scripts that compare speeds share: options, rivals, verdicts, the exit status, tables, records and pages.

Each of them measures on a GPU, holds what it found against bars, and prints a table. With `--json` it keeps what it
found, with `--recorded` it takes that instead of measuring, and with `--markdown`, where it has a page of the
documentation, it writes the table there, behind the line `## Measured`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cudart_py as cuda

__all__ = [
    "HEADING",
    "Verdict",
    "conditions",
    "exit_status",
    "keep",
    "optional",
    "parser",
    "recall",
    "table",
    "write_page",
]

HEADING = "## Measured"


class Verdict(StrEnum):
    """What became of a bar."""

    OK = "ok"
    MISSED = "MISSED"
    NOT_JUDGED = "not judged"
    NO_BAR = ""

    @classmethod
    def of(cls, reached: bool) -> Verdict:
        """Return whether a bar was reached, as a verdict."""
        return cls.OK if reached else cls.MISSED


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """Return 1 when a bar is missed, 2 when none is but one could not be judged, else 0."""
    found = set(verdicts)
    return 1 if Verdict.MISSED in found else 2 if Verdict.NOT_JUDGED in found else 0


def parser(doc: str | None, *, page: bool) -> argparse.ArgumentParser:
    """Return a parser of the options that the scripts share; the first line of `doc` describes the script.

    `page` is whether the script has a page of the documentation.
    """
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    made.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
    made.add_argument("--recorded", type=Path, metavar="FILE", help="measure nothing: take what --json wrote")
    if page:
        made.add_argument("--markdown", type=Path, metavar="PAGE", help=f"put the table behind the page's {HEADING!r}")
    return made


def keep(file: Path | None, record: dict[str, Any]) -> None:
    """Write what was found to the file of `--json`, if there is one."""
    if file is not None:
        file.write_text(json.dumps(record, indent=1) + "\n")


def recall(file: Path) -> dict[str, Any]:
    """Return what `keep` wrote."""
    record: dict[str, Any] = json.loads(file.read_text())
    return record


def conditions(device: cuda.Device, *packages: str) -> str:
    """Name the card, the driver, Python, those of the packages that are installed, and the day."""
    found = [device.name, f"driver for CUDA {'.'.join(map(str, cuda.driver_version()))}"]
    found.append(f"Python {sys.version.split()[0]}")
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"{', '.join(found)}; {datetime.now(UTC):%Y-%m-%d}"


def optional(name: str) -> Any:
    """Import a rival; None where it is not installed or does not load, which is said."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # broken installations raise anything
        print(f"{name} is not here: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "") -> str:
    """Return a table of Markdown, in columns; those whose letter in `right` is "r" end at the right."""
    lines = [tuple(headings), *map(tuple, rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    ends = [mark == "r" for mark in right.ljust(len(widths))]
    rule = tuple("-" * (width - end) + ":" * end for width, end in zip(widths, ends, strict=True))
    return "\n".join(
        "| "
        + " | ".join(
            cell.rjust(width) if end else cell.ljust(width) for cell, width, end in zip(line, widths, ends, strict=True)
        )
        + " |"
        for line in (lines[0], rule, *lines[1:])
    )


def write_page(page: Path | None, text: str) -> None:
    """Replace what the page of `--markdown`, if there is one, says behind its heading `## Measured`."""
    if page is None:
        return
    before, heading, _ = page.read_text().partition(f"{HEADING}\n")
    if not heading:
        raise SystemExit(f"{page} has no line {HEADING!r}")
    page.write_text(f"{before}{heading}\n{text}\n")
