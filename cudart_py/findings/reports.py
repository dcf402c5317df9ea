"""Reports of findings in files: SARIF or GitHub annotations, from a list or from a whole process."""

from __future__ import annotations

import atexit
import fcntl
import functools
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from .annotations import annotation_lines, in_github_actions
from .records import Finding, listen
from .sarif import sarif

FORMATS = ("sarif", "github")
STANDARD_OUTPUT = "-"
# The variables that `cudart-py run` sets for the program that it runs.
FILE_VARIABLE, FORMAT_VARIABLE = "CUDART_PY_SANITIZER_REPORT", "CUDART_PY_SANITIZER_FORMAT"


def report_text(findings: Iterable[Finding], format: str) -> str:
    """Return a report in a format of `FORMATS`."""
    if format == "github":
        return "".join(f"{line}\n" for line in annotation_lines(findings))
    return json.dumps(sarif(findings), indent=1) + "\n"


def printed_text(findings: Iterable[Finding], place: str, format: str) -> str:
    """Return the part of a report that goes to standard output.

    It is the report if its place is "-", and in a workflow of GitHub Actions the annotations.
    """
    found = list(findings)
    text = report_text(found, format) if place == STANDARD_OUTPUT else ""
    if in_github_actions() and not (text and format == "github"):
        text += report_text(found, "github")
    return text


def write_file(findings: Iterable[Finding], place: str, format: str) -> None:
    """Write a report to its file, if its place is not "-"; an OSError names the file."""
    if place != STANDARD_OUTPUT:
        Path(place).write_text(report_text(findings, format), encoding="utf-8", errors="backslashreplace")


def start_process_report() -> None:
    """Write a report at the end of this process if the environment names a file for it.

    Each process of a program adds its findings to the file.
    """
    place = os.environ.get(FILE_VARIABLE)
    if place:
        found: list[Finding] = []
        listen(found.append)
        atexit.register(_add_to_report, found, place, os.environ.get(FORMAT_VARIABLE, FORMATS[0]))
        os.register_at_fork(after_in_child=functools.partial(atexit.unregister, _add_to_report))


def _add_to_report(found: list[Finding], place: str, format: str) -> None:
    try:
        if place != STANDARD_OUTPUT:
            _add_to_file(found, place, format)
    except (OSError, ValueError, LookupError) as error:
        print(f"cudart-py: {place} cannot be written: {error}", file=sys.stderr)  # noqa: T201  # as requested
    print(printed_text(found, place, format), end="", flush=True)  # noqa: T201  # as requested


def _add_to_file(found: list[Finding], place: str, format: str) -> None:
    with open(place, "a+", encoding="utf-8", errors="backslashreplace") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = _merged(file.read(), report_text(found, format), format)
        file.truncate(0)
        file.write(text)


def _merged(before: str, now: str, format: str) -> str:
    """Return a report with the findings of two others."""
    if format == "github" or not before:
        return before + now
    whole = json.loads(before)
    whole["runs"][0]["results"] += json.loads(now)["runs"][0]["results"]
    return json.dumps(whole, indent=1) + "\n"
