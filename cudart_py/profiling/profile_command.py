"""The command `cudart-py profile`: run a program, then report on its launches."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..driver.program_command import (
    CommandRefusedError,
    add_program_arguments,
    check_program,
    program_of,
    refuse,
    require,
)
from ..findings.options import add_report_options, check_mode, report_format
from ..findings.records import Finding, collected
from ..findings.reports import printed_text, write_file
from ..host.output_files import output_file, output_path
from .columns import DEFAULT, GROUPS, Column, choose, read_choice
from .profiles import Profile, profile
from .report.advice_text import advice_texts
from .report.annotated_source import annotated_sources
from .report.data import profile_data
from .report.drawn_lines import kernel_diagrams, line_diagrams
from .report.explanations import FIGURES, LIMITS
from .report.finding_list import finding_texts
from .report.launch_table import BRIEF, launch_table
from .report.page import profile_page

_WIDTH = 80


def add_command(commands: Any) -> None:
    """Add `profile` to the subcommands of `cudart-py`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "profile",
        help="count the operations of a program's kernels, per launch and per line",
        description="Run a Python program on the simulator, then print the counters of its launches: a table, each "
        "source annotated with the metrics of its lines, and advice. The reports also show the mistakes in kernels "
        "that the simulator finds. Caches are not modelled: sectors that the L1 cache would serve are counted too. The "
        "exit status is the program's, 1 with --fail-on-findings if there are findings, or 2 if nothing can be "
        "profiled or written.",
    )
    parser.add_argument(
        "--json", type=output_file, metavar="FILE", help="write everything as JSON instead; - is standard output"
    )
    parser.add_argument("--html", type=output_file, metavar="FILE", help="write a self-contained HTML page instead")
    parser.add_argument(
        "--draw",
        action="store_true",
        help="draw, for each line, how the first warp of a launch accesses memory, and which lanes of it are active; "
        "kernels run more slowly",
    )
    parser.add_argument(
        "--metrics",
        type=_choice,
        metavar="NAMES",
        help=f"what to show, separated by commas: {', '.join(GROUPS)}, or metrics by their full names, in which * "
        f"stands for any characters (default: {','.join(DEFAULT)}; JSON has all)",
    )
    parser.add_argument(
        "--trace",
        type=output_path,
        metavar="FILE",
        help="also write the driver calls and the work of the streams in order, for Perfetto",
    )
    add_report_options(parser)
    parser.add_argument(
        "--fail-on-findings",
        action="store_true",
        help="exit with status 1 if the simulator finds a mistake in a kernel",
    )
    add_program_arguments(parser)
    parser.set_defaults(run=_profile, parser=parser)


def _choice(text: str) -> tuple[str, ...]:
    try:
        return read_choice(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _profile(options: argparse.Namespace) -> int:
    try:
        return _run(options)
    except CommandRefusedError as error:
        return refuse("profile", error)


def _run(options: argparse.Namespace) -> int:
    require("profile", "counts nothing; on a GPU, use ncu")
    program = program_of(options)
    with program.place():
        check_program(program, options, "profile")
        _check_findings(options)
        if sys.stdout is None and (options.json == "-" or not (options.json or options.html)):
            raise CommandRefusedError(
                "standard output is closed, and the profile would go there; name a file by --json or --html"
            )
        try:
            counted, status = profile(0 if options.draw else None, trace=options.trace), 0
        except ValueError as error:
            raise CommandRefusedError(str(error)) from error
        failure: Exception | None = None
        # If the JSON goes to standard output, nothing else may be printed there.
        aside = contextlib.redirect_stdout(sys.stderr) if options.json == "-" else contextlib.nullcontext()
        found: list[Finding] = []
        try:
            with aside, collected() as found, counted:
                status = program.run()
        except Exception as error:
            failure = error
        finally:
            # The report follows the program's own output, even if the program failed.
            refusal = _report(counted, found, options, failure)
        if failure is not None:
            status = program.failed(failure)
    return status or refusal or int(options.fail_on_findings and bool(found))


def _check_findings(options: argparse.Namespace) -> None:
    """Raise CommandRefusedError if the options for findings cannot have an effect."""
    try:
        report_format(options.sanitize_report, options.sanitize_format)
        if options.fail_on_findings:
            check_mode("--fail-on-findings")
    except ValueError as error:
        raise CommandRefusedError(str(error)) from error


def _report(
    counted: Profile, findings: Sequence[Finding], options: argparse.Namespace, failure: Exception | None
) -> int:
    """Write the requested reports; return 0, or the exit status if that fails.

    `failure` is the exception that has ended the program.
    """
    ended = "" if failure is None else "".join(traceback.format_exception_only(failure)).rstrip()
    try:
        columns = _columns(counted, options.metrics)
        for path, text in _texts(counted, findings, options, columns, ended):
            if path == "-":
                _print(text, sys.stdout)
            else:
                _write(Path(path), text)
                _print(f"written: {path}", sys.stderr if options.json == "-" else sys.stdout)
        if options.sanitize_report:
            format = report_format(options.sanitize_report, options.sanitize_format)
            write_file(findings, options.sanitize_report, format)
            # As above, only the JSON may go to standard output.
            text = printed_text(findings, options.sanitize_report, format)
            _print(text.removesuffix("\n"), sys.stderr if options.json == "-" else sys.stdout) if text else None
    except ValueError as error:
        return refuse("profile", error)
    except BrokenPipeError:
        # The reader of the pipe, such as head, has closed it.
        _discard_output()
    except OSError as error:
        if error.filename is None:
            _discard_output()
        return refuse("profile", f"{error.filename or 'standard output'} cannot be written: {error.strerror}")
    return 0


def _columns(counted: Profile, chosen: Sequence[str] | None) -> list[Column]:
    known = dict.fromkeys(name for launch in counted.launches for name in launch.metrics)
    # Without a launch there are no metrics to choose from.
    return choose(chosen or DEFAULT, known) if known else []


def _texts(
    counted: Profile, findings: Sequence[Finding], options: argparse.Namespace, columns: Sequence[Column], failure: str
) -> Iterator[tuple[str, str]]:
    """Yield each requested report with its file, or the text for the terminal if no file was requested."""
    if options.json:
        requested = {name for column in columns for name in column.metrics} if options.metrics else None
        yield options.json, json.dumps(profile_data(counted.launches, requested, findings, failure), indent=1)
    if options.html:
        title = f"Profile of {Path(options.program).name}"
        page = profile_page(counted.launches, title, columns, findings, failure, counted.unfinished)
        yield options.html, page
    if not options.json and not options.html:
        brief = columns if options.metrics else BRIEF
        yield "-", _fitted("\n" + "\n\n".join(_sections(counted, findings, columns, brief, failure)))


def _sections(
    counted: Profile, findings: Sequence[Finding], columns: Sequence[Column], brief: Sequence[Column], failure: str
) -> Iterator[str]:
    yield launch_table(counted.launches, brief, counted.unfinished)
    if failure:
        yield f"After these launches, the program failed:\n{failure}"
    if findings:
        yield "\n".join(("Findings of the simulator's checks:", *finding_texts(findings)))
    if not counted.launches:
        return
    described = [f"{name}: {text}" for name, text in FIGURES.items() if name not in ("share", "estimate, bound")]
    yield "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="    ") for line in (*described, *LIMITS))
    yield annotated_sources(counted.launches, columns)
    yield from map(str, kernel_diagrams(counted.launches))
    yield from (str(diagram) for drawn in line_diagrams(counted.launches).values() for diagram in drawn)
    yield from advice_texts(counted.launches)


def _fitted(text: str) -> str:
    """Cut lines that are wider than the terminal."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in text.splitlines())


def _write(path: Path, text: str) -> None:
    """Write a file. Every OSError names it, while Python's own names it only if the file cannot be opened."""
    try:
        # A program's name may have bytes that this locale cannot decode.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        error.filename = str(path)
        raise


def _print(text: str, file: TextIO | None) -> None:
    """Print without buffering; each character that the stream's encoding lacks becomes one question mark."""
    if file is not None:
        encoding = file.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding), file=file, flush=True)


def _discard_output() -> None:
    """Redirect standard output to the null device, because Python's own flush at exit would fail otherwise."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
