"""The comparison of a run's counters with stored runs: its table, its reports, and annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from ...findings.annotations import in_github_actions, workflow_command
from ...findings.places import relative_path
from ...host.output_files import STANDARD_OUTPUT
from ..gates import counter_gate
from ..gates.collected_tests import CollectedTests
from ..gates.machine import nvrtc_version
from .counter_refusals import profile_command, store_command


class Comparison(NamedTuple):
    """Changes of counts since a stored run.

    `path` is its file, `nvrtc` the version that compiled its kernels, and `common` says whether the runs have a
    benchmark in common.
    """

    path: str
    changes: list[counter_gate.Change]
    nvrtc: str
    common: bool


def report_comparisons(
    terminal: pytest.TerminalReporter, config: pytest.Config, comparisons: list[Comparison], tests: CollectedTests
) -> None:
    """Print the changes and the verdict, and write the reports that the options request."""
    for path, found, nvrtc, _ in comparisons:
        terminal.section(f"Counters compared with {path}", sep="-")
        if nvrtc and nvrtc != nvrtc_version():
            terminal.write_line(counter_gate.other_compiler(nvrtc, nvrtc_version()))
        for line in counter_gate.table(found) if found else ["nothing has changed"]:
            terminal.write_line(line)
    changes = [change for one in comparisons for change in one.changes]
    limits = config.getoption("counters_compare_fail")
    # The verdict says why the run fails. Otherwise nothing would, since pytest's last line says that all tests passed.
    verdict = counter_gate.verdict(changes, limits, store=store_command(config), profile=profile_command(config))
    for line in verdict:
        terminal.write_line(line, red=True)
    compared = any(one.common for one in comparisons)
    for option, text in (
        ("counters_json", counter_gate.json_report(changes, limits, compared=compared)),
        ("counters_markdown", counter_gate.markdown_report(changes, verdict, compared=compared)),
    ):
        place = config.getoption(option)
        if place == STANDARD_OUTPUT:
            terminal.ensure_newline()
            terminal.write(text, flush=True)
        elif place:
            Path(place).write_text(text, encoding="utf-8")
    if in_github_actions():
        for line in _annotations(changes, tests):
            terminal.write_line(line)


def _annotations(changes: Sequence[counter_gate.Change], tests: CollectedTests) -> Iterator[str]:
    """Yield one workflow command per figure that fails the run, at the line of its test."""
    for change in changes:
        if change.failed and change.figure:
            path, line = tests.place(change.benchmark)
            text = f"{change.figure} of {change.benchmark}: {counter_gate.difference(change)}"
            yield workflow_command("error", f"{change.figure} became worse", text, relative_path(path), line)
